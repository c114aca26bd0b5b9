package app

import (
	"path/filepath"

	"onsale/internal/audit"
	"onsale/internal/waitingroom/joinlog"
)

// JoinsFolder is where a house on one machine keeps the log of who has which number in waiting rooms, in its data folder. On
// PostgreSQL it is a table of the control schema.
const JoinsFolder = "joins"

// AuditJoins is that log as an audit reads it: it writes nothing, also beside a server. Close it after use.
func AuditJoins(kind LedgerKind, data string, source *audit.Source) (joins audit.Joins, close func() error) {
	if kind == Postgres {
		return source.JoinsTable(), func() error { return nil }
	}
	log := joinlog.OpenRead(filepath.Join(data, JoinsFolder))
	return log, log.Close
}
