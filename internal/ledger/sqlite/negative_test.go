//go:build negativecontrol

package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"onsale/internal/ledger/ledgertest"
	"onsale/internal/ledger/sqlite"
)

func TestNegativeControls(t *testing.T) {
	ledgertest.Negative(t, func(t *testing.T, clock *ledgertest.Clock) ledgertest.Harness {
		path := filepath.Join(t.TempDir(), "ledger.db")
		l := open(t, path, clock)
		db, err := sql.Open("sqlite", sqlite.DSN(path))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, index := range []string{"orders_one_per_hold", "tickets_one_per_seat", "sessions_number", "wishes_one_open"} {
			if _, err := db.Exec(`DROP INDEX ` + index); err != nil {
				t.Fatal(err)
			}
		}
		return ledgertest.Harness{Ledger: l}
	})
}
