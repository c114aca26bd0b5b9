package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"onsale/internal/backup"
	"onsale/internal/control"
	"onsale/internal/keys"
	"onsale/internal/ledger/postgres"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/sqlmigrate"
)

func (d *doctor) sqlite(ctx context.Context) {
	for _, file := range []struct {
		name   string
		states fs.FS
	}{{ShardFile, sqlite.Migrations()}, {controlFile, control.Migrations(sqlmigrate.SQLite)}} {
		path := filepath.Join(d.Data, file.name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			d.well(file.name, "not there yet; serve makes it")
			continue
		}
		db, err := sql.Open("sqlite", sqlite.ReadOnlyDSN(path))
		if err != nil {
			d.ill(file.name, err, "restore the file from a backup")
			continue
		}
		d.file(ctx, file.name, db, file.states)
		_ = db.Close()
	}
}

func (d *doctor) file(ctx context.Context, what string, db *sql.DB, states fs.FS) {
	var found string
	if err := db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&found); err != nil || found != "ok" {
		if err == nil {
			err = errors.New(found)
		}
		d.ill(what, fmt.Errorf("the file is damaged: %w", err), "stop the server, keep the folder as it is, and restore the last backup into another (onsale restore); then have the disk looked at")
		return
	}
	state, err := sqlmigrate.Status(ctx, db, sqlmigrate.SQLite, "", states)
	d.schema(what, state, err)
}

func (d *doctor) schema(what string, state sqlmigrate.State, err error) {
	switch {
	case errors.Is(err, sqlmigrate.ErrNewer):
		d.ill(what, fmt.Errorf("its schema is %d, and this program knows %d", state.Current, state.Target), "run the version of onsale that wrote it, or a newer one")
	case err != nil:
		d.ill(what, err, "see the message")
	case state.Pending():
		d.warn(what, fmt.Sprintf("schema %d, this program knows %d", state.Current, state.Target), "onsale migrate, or the next start, brings it up to date; make a backup before")
	default:
		d.well(what, "schema %d", state.Current)
	}
}

func (d *doctor) postgres(ctx context.Context) {
	const what = "PostgreSQL"
	db, err := sql.Open("pgx", d.directURL())
	if err != nil {
		d.ill(what, errors.New("ledger.url cannot be read"), "write it as postgres://user:password@host:5432/database")
		return
	}
	defer db.Close()
	var version string
	var clock time.Time
	before := d.now()
	if err := db.QueryRowContext(ctx, `SELECT current_setting('server_version'), clock_timestamp()`).Scan(&version, &clock); err != nil {
		d.ill(what, err, "start the server, or correct ledger.url (host, port, user, database)")
		return
	}
	d.clock(before, clock)
	if d.lasting(ctx, what, db) {
		d.well(what, "%s, durable", version)
	}
	for _, part := range []struct {
		schema string
		files  fs.FS
	}{{postgres.Schema, postgres.Migrations()}, {control.Schema, control.Migrations(sqlmigrate.Postgres)}} {
		state, err := sqlmigrate.Status(ctx, db, sqlmigrate.Postgres, part.schema, part.files)
		d.schema("schema "+part.schema, state, err)
	}
	d.halfRestored(ctx, db)
}

// clock compares the database's with this machine's: ids and holds go by both.
func (d *doctor) clock(before, clock time.Time) {
	off := clock.Sub(before)
	if off.Abs() <= clockAhead {
		return
	}
	d.warn("clock", fmt.Sprintf("the database's differs from this machine's by %v", off.Abs().Round(time.Second)), "let both follow a time server (chronyc tracking, timedatectl)")
}

// lasting says whether what is answered stays.
func (d *doctor) lasting(ctx context.Context, what string, db *sql.DB) bool {
	good := true
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := db.QueryRowContext(ctx, `SELECT current_setting($1)`, setting).Scan(&value); err != nil {
			d.ill(what, err, "the setting "+setting+" cannot be read")
			return false
		}
		if value == "off" || (setting == "synchronous_commit" && value == "local") {
			good = false
			d.ill(what, fmt.Errorf("%s is %s: what was answered could be lost", setting, value), "set "+setting+" = on in postgresql.conf (and in no ALTER DATABASE or ALTER ROLE) and reload")
		}
	}
	return good
}

func (d *doctor) halfRestored(ctx context.Context, db *sql.DB) {
	var value []byte
	err := db.QueryRowContext(ctx, `SELECT value FROM `+control.Schema+`.meta WHERE name = $1`, backup.MetaRestoring).Scan(&value)
	if err == nil {
		d.ill("PostgreSQL", fmt.Errorf("the restore of backup %s was interrupted", value), "run onsale restore with the same backup again: it goes on where it was")
	}
}

// key looks for the master key, and tries it on the keys that are stored.
func (d *doctor) key(ctx context.Context) {
	const what = "master key"
	path := d.MasterKeyFile
	sealed, err := d.sealedKeys(ctx)
	if err != nil && ctx.Err() == nil {
		sealed = nil // said already where the database is looked at
	}
	if d.MasterKey == "" && path == "" {
		path = filepath.Join(d.Data, masterFile)
		_, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(sealed) > 0:
			d.ill(what, fmt.Errorf("%s is not there, and the database has %d keys that only it opens", path, len(sealed)), "put the key back from where you keep it: without it no ticket can be signed or checked")
			return
		case errors.Is(err, fs.ErrNotExist):
			d.warn(what, "there is none yet", "serve makes one in the data folder; keep a copy of it apart from the backups")
			return
		}
	}
	if info, err := os.Stat(path); path != "" && err == nil && info.Mode().Perm()&0o077 != 0 {
		d.ill(what, fmt.Errorf("%s can be read by others (%v)", path, info.Mode().Perm()), "chmod 600 "+path)
		return
	}
	master, err := (&App{Settings: d.Settings}).master()
	if err != nil {
		d.ill(what, err, "put the key back from where you keep it: without it no ticket can be signed")
		return
	}
	for _, k := range sealed {
		if _, err := master.Open(k.KID, k.Purpose, k.Sealed); err != nil {
			d.ill(what, fmt.Errorf("it is another one than the database's keys were sealed with (%d keys)", len(sealed)), "put back the key that belongs to this database, or name its file with master_key_file")
			return
		}
	}
	if path == "" {
		path = "from the environment"
	}
	d.well(what, "%s, opens %d keys", path, len(sealed))
}

// sealedKeys reads what the master key must open.
func (d *doctor) sealedKeys(ctx context.Context) ([]keys.Record, error) {
	driver, from, schema := "pgx", d.directURL(), control.Schema+"."
	if d.Ledger != Postgres {
		path := filepath.Join(d.Data, controlFile)
		if _, err := os.Stat(path); err != nil {
			return nil, nil
		}
		driver, from, schema = "sqlite", sqlite.ReadOnlyDSN(path), ""
	}
	db, err := sql.Open(driver, from)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT kid, purpose, sealed FROM `+schema+`keys ORDER BY kid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []keys.Record
	for rows.Next() {
		var r keys.Record
		if err := rows.Scan(&r.KID, (*string)(&r.Purpose), &r.Sealed); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}
