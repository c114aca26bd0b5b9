// Package backup puts everything that must survive a house's machines into one file, and brings it back.
//
// The one idea: a backup is consistent in the sense that matters, that a reference always leads somewhere. The shard names
// customers and events, which lie in the control database and were written there before; so the shard is read first and the
// control database after it, and last the sandbox's books, which the shard's payments name, and the log of joins, whose
// numbers its sessions name. What was written in between
// stands in the later ones without anybody naming it, and does no harm. PostgreSQL has both in one database: there it is one
// transaction.
//
// The other half is coming back. Between the backup and its restoring the world went on: numbers were given out, browsers
// saw versions, webhooks told sequences, and money moved. Ahead jumps over all numbers that may have been given out, so that
// nothing new is taken for something that is lost. What money did meanwhile is for app.Restore to find out.
//
// Neither reading nor writing needs the server: a backup only reads, as the audit does, and may be taken of a running one. The
// master key is never in it (E3): it is to be kept apart, and without it a backup cannot be restored.
//
// Start reading at Make and Manifest, then Archive, then ahead.go. sqlite.go and postgres.go are how each database is read
// and filled.
package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"onsale/internal/identity"
	"onsale/internal/keys"
)

// Format is the version of the file: a tar, gzipped, whose first entry is the manifest (D5).
const Format = 1

// Limits of what is read back.
const (
	ManifestBytesMax = 256 << 20 // a million erasures have 60 MB
	PartsMax         = 20_000    // one for each event that ever had a line
)

// Names of the parts of a SQLite backup, which are those of the data folder.
const (
	ShardPart   = "shard.db"
	ControlPart = "control.db"
	SandboxPart = "sandbox.db"
	JoinsPart   = "joins" // a folder: the log of joins, a part for each event; of PostgreSQL the control database has it
)

// Names of what is migrated, each with numbers of its own.
const (
	Shard   = "shard"
	Control = "control"
)

// A Kind is which database a backup is of. One cannot be restored into another.
type Kind string

// The kinds.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
)

// A Manifest says what is in a backup. It is JSON, and can be read with tar.
type Manifest struct {
	Format  int       `json:"format"`
	ID      string    `json:"backup_id"` // random: says whether two files are the same backup
	Program string    `json:"program"`   // its version
	Kind    Kind      `json:"database"`
	Began   time.Time `json:"began_at"` // before anything was read: what is newer may be missing
	Ended   time.Time `json:"ended_at"`
	// Schemas are the numbers of the migrations, by Shard and Control.
	Schemas map[string]int64 `json:"schemas"`
	Parts   []Part           `json:"parts"`
	// Keys are the active keys, sealed as they are in the database: whoever cannot open them has not the right master key.
	Keys []SealedKey `json:"keys"`
	// Erasures are all that the control database knows of, so that restoring an older backup can ask this one for what was
	// erased in between (F2).
	Erasures []identity.Erasure `json:"erasures"`
}

// A Part is one entry of the tar.
type Part struct {
	Name    string    `json:"name"`
	At      time.Time `json:"at"` // when it was read: a picture of this instant or a later one
	Bytes   int64     `json:"bytes"`
	SHA256  string    `json:"sha256"`
	Columns []string  `json:"columns,omitempty"` // PostgreSQL: of the table, in the order of the rows
	// Rows counts the rows of each table of a SQLite file, or of the table that the part is.
	Rows map[string]int64 `json:"rows"`
}

// A SealedKey is a key as the control database has it.
type SealedKey struct {
	KID     string       `json:"kid"`
	Purpose keys.Purpose `json:"purpose"`
	Sealed  []byte       `json:"sealed"`
}

// CheckMaster says whether a master key opens the keys of the backup. The error names the mend.
func (m *Manifest) CheckMaster(master keys.Master) error {
	for _, k := range m.Keys {
		if _, err := master.Open(k.KID, k.Purpose, k.Sealed); err != nil {
			return fmt.Errorf("the master key is not the one of this backup: %w", err)
		}
	}
	return nil
}

// Part finds a part.
func (m *Manifest) Part(name string) (Part, bool) {
	for _, p := range m.Parts {
		if p.Name == name {
			return p, true
		}
	}
	return Part{}, false
}

// Options say of what a backup is made, and where to.
type Options struct {
	File    string // must not exist
	Data    string // the data folder: of SQLite all, of PostgreSQL only the sandbox's books
	Kind    Kind
	URL     string // of PostgreSQL, straight to the server
	Program string
	Now     func() time.Time // Defaults to time.Now
	// reached is told of each step, for tests that end the process there; may be nil.
	reached func(step string)
}

// ErrExists says that a file of the name is there already: a backup never replaces another.
var ErrExists = errors.New("a file of this name is there already: choose another name")

// Make makes a backup. The file appears under its name whole and on disk, or not at all; what is gathered before lies beside
// it in FILE.partial, which the next Make of the same name takes away where a kill has left it. It needs room for what it
// copies: as much as the databases have, and a fifth of that for the file.
func Make(ctx context.Context, o Options) (_ Manifest, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.reached == nil {
		o.reached = func(string) {}
	}
	if _, err := os.Lstat(o.File); !errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, errors.Join(fmt.Errorf("backup %s: %w", o.File, ErrExists), err)
	}
	scratch, done, err := makeScratch(o.File + ".partial")
	if err != nil {
		return Manifest{}, fmt.Errorf("backup %s: %w", o.File, err)
	}
	defer func() { err = errors.Join(err, done()) }()
	m := Manifest{Format: Format, ID: newID(), Program: o.Program, Kind: o.Kind, Began: instant(o.Now()), Schemas: map[string]int64{}}
	if o.Kind == Postgres {
		err = gatherPostgres(ctx, &m, scratch, o)
	} else {
		err = gatherSQLite(ctx, &m, scratch, o)
	}
	if err == nil {
		err = gatherSandbox(ctx, &m, scratch, o)
	}
	if err == nil {
		err = gatherJoins(ctx, &m, scratch, o)
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("backup %s: %w", o.File, err)
	}
	m.Ended = instant(o.Now())
	o.reached("gathered")
	packed := filepath.Join(scratch, "backup.tar.gz")
	if err := pack(packed, &m, scratch); err != nil {
		return Manifest{}, fmt.Errorf("backup %s: %w", o.File, err)
	}
	o.reached("packed")
	if err := os.Rename(packed, o.File); err != nil {
		return Manifest{}, err
	}
	o.reached("renamed")
	return m, syncFolder(filepath.Dir(o.File))
}

// newID names a backup.
func newID() string { return hex.EncodeToString(random(8)) }

// instant cuts a time to what is written.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
