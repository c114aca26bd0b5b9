package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"onsale/internal/control"
	"onsale/internal/disk"
	"onsale/internal/ledger/postgres"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/sqlmigrate"
)

// Bounds of what the doctor finds healthy.
const (
	diskFreeLow  = 1 << 30 // bytes
	fsyncSlow    = 20 * time.Millisecond
	clockAhead   = 2 * time.Second
	doctorTime   = 30 * time.Second
	shardSchema  = "shard"
	controlTable = "control"
)

// A Finding is one thing that the doctor looked at. Mend says what to do where it is not well.
type Finding struct {
	What string
	Well bool
	Warn bool // not well, but it runs
	Says string
	Mend string
}

// Doctor looks at what the settings name, changing nothing but for a file in the data folder that it takes away again.
func Doctor(ctx context.Context, s Settings) []Finding {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	d := &doctor{Settings: s}
	d.folder()
	d.disk()
	d.key()
	if s.Ledger == Postgres {
		d.postgres(ctx)
	} else {
		d.sqlite(ctx)
	}
	d.ports()
	return d.findings
}

type doctor struct {
	Settings
	findings []Finding
}

func (d *doctor) well(what, format string, args ...any) {
	d.findings = append(d.findings, Finding{What: what, Well: true, Says: fmt.Sprintf(format, args...)})
}

func (d *doctor) ill(what string, err error, mend string) {
	d.findings = append(d.findings, Finding{What: what, Says: err.Error(), Mend: mend})
}

func (d *doctor) warn(what, says, mend string) {
	d.findings = append(d.findings, Finding{What: what, Warn: true, Says: says, Mend: mend})
}

func (d *doctor) folder() {
	const what = "data folder"
	info, err := os.Stat(d.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.warn(what, d.Data+" does not exist yet", "serve makes it; check that this is the path you mean")
		return
	case err != nil:
		d.ill(what, err, "give this user the right to read it")
		return
	case !info.IsDir():
		d.ill(what, fmt.Errorf("%s is no folder", d.Data), "name a folder with --data")
		return
	}
	f, err := os.CreateTemp(d.Data, "doctor-*")
	if err != nil {
		d.ill(what, err, "give this user the right to write into it, or make room on its disk")
		return
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	if info.Mode().Perm()&0o077 != 0 {
		d.warn(what, fmt.Sprintf("%s can be read by others (%v)", d.Data, info.Mode().Perm()), "chmod 700 "+d.Data)
		return
	}
	unlock, err := lockFolder(d.Data)
	if errors.Is(err, ErrLocked) {
		d.well(what, "%s, in use by a running server", d.Data)
		return
	}
	if err != nil {
		d.ill(what, err, "give this user the right to write into it")
		return
	}
	_ = unlock()
	d.well(what, "%s", d.Data)
}

func (d *doctor) disk() {
	const what = "disk"
	dir := d.Data
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	var room syscall.Statfs_t
	if err := syscall.Statfs(dir, &room); err == nil {
		if free := room.Bavail * uint64(room.Bsize); free < diskFreeLow {
			d.ill(what, fmt.Errorf("%d MiB are free", free>>20), "make room: a full disk stops the sale")
			return
		}
	}
	report, err := disk.Measure(dir)
	switch {
	case errors.Is(err, disk.ErrMemory):
		d.ill(what, err, "put the data folder on a disk: what is sold would be lost with the power")
	case err != nil:
		d.warn(what, err.Error(), "the figures of the disk are not known; the sale runs all the same")
	case report.Fsync > fsyncSlow:
		d.warn(what, report.String(), "a disk that syncs in a few milliseconds lets more be sold a second")
	default:
		d.well(what, "%s", report)
	}
}

func (d *doctor) key() {
	const what = "master key"
	path := d.MasterKeyFile
	if d.MasterKey == "" && path == "" {
		path = filepath.Join(d.Data, masterFile)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			d.warn(what, "there is none yet", "serve makes one in the data folder; keep a copy of it apart from the backups")
			return
		}
	}
	a := &App{Settings: d.Settings}
	if _, err := a.master(); err != nil {
		d.ill(what, err, "put the key back from where you keep it: without it no ticket can be signed")
		return
	}
	if path == "" {
		d.well(what, "from the environment")
		return
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		d.ill(what, fmt.Errorf("%s can be read by others (%v)", path, info.Mode().Perm()), "chmod 600 "+path)
		return
	}
	d.well(what, "%s", path)
}

func (d *doctor) sqlite(ctx context.Context) {
	for _, file := range []struct {
		name   string
		states fs.FS
	}{{ShardFile, sqlite.Migrations()}, {controlFile, control.Migrations(sqlmigrate.SQLite)}} {
		path := filepath.Join(d.Data, file.name)
		what := file.name
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			d.well(what, "not there yet; serve makes it")
			continue
		}
		db, err := sql.Open("sqlite", sqlite.ReadOnlyDSN(path))
		if err != nil {
			d.ill(what, err, "restore the file from a backup")
			continue
		}
		d.file(ctx, what, db, file.states)
		_ = db.Close()
	}
}

func (d *doctor) file(ctx context.Context, what string, db *sql.DB, states fs.FS) {
	var found string
	if err := db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&found); err != nil || found != "ok" {
		if err == nil {
			err = errors.New(found)
		}
		d.ill(what, err, "the file is damaged: stop the server and restore it from a backup")
		return
	}
	state, err := sqlmigrate.Status(ctx, db, sqlmigrate.SQLite, "", states)
	d.schema(what, state, err)
}

func (d *doctor) schema(what string, state sqlmigrate.State, err error) {
	switch {
	case errors.Is(err, sqlmigrate.ErrNewer):
		d.ill(what, err, "run the version that wrote it, or a newer one")
	case err != nil:
		d.ill(what, err, "see the message")
	case state.Pending():
		d.warn(what, fmt.Sprintf("schema %d, this program knows %d", state.Current, state.Target), "onsale migrate, or the next start, brings it up to date")
	default:
		d.well(what, "schema %d", state.Current)
	}
}

func (d *doctor) postgres(ctx context.Context) {
	const what = "PostgreSQL"
	url := d.PostgresDirectURL
	if url == "" {
		url = d.PostgresURL
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		d.ill(what, err, "correct ledger.url: postgres://user:password@host:port/database")
		return
	}
	defer db.Close()
	var version string
	var clock time.Time
	before := time.Now()
	if err := db.QueryRowContext(ctx, `SELECT current_setting('server_version'), clock_timestamp()`).Scan(&version, &clock); err != nil {
		d.ill(what, err, "start the server, or correct ledger.url")
		return
	}
	if off := clock.Sub(before.Add(time.Since(before) / 2)).Abs(); off > clockAhead {
		d.warn(what+" clock", fmt.Sprintf("differs from this machine's by %v", off.Round(time.Millisecond)), "let both follow a time server")
	}
	lasting := true
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := db.QueryRowContext(ctx, `SELECT current_setting($1)`, setting).Scan(&value); err != nil {
			d.ill(what, err, "the setting "+setting+" cannot be read")
			return
		}
		if value == "off" || (setting == "synchronous_commit" && value == "local") {
			lasting = false
			d.ill(what, fmt.Errorf("%s is %s: what was answered could be lost", setting, value), "set "+setting+" = on in postgresql.conf and reload")
		}
	}
	if lasting {
		d.well(what, "%s, durable", version)
	}
	for _, part := range []struct {
		schema string
		files  fs.FS
	}{{shardSchema, postgres.Migrations()}, {controlTable, control.Migrations(sqlmigrate.Postgres)}} {
		state, err := sqlmigrate.Status(ctx, db, sqlmigrate.Postgres, part.schema, part.files)
		d.schema("schema "+part.schema, state, err)
	}
}

func (d *doctor) ports() {
	for _, port := range []struct{ what, address string }{{"listen", d.Listen}, {"metrics_listen", d.InternalListen}} {
		if port.address == "" {
			continue
		}
		l, err := net.Listen("tcp", port.address)
		if err != nil {
			d.warn(port.what, err.Error(), "a server that runs already is fine; else free the address or choose another")
			continue
		}
		_ = l.Close()
		d.well(port.what, "%s is free", port.address)
	}
}

// Migrate brings the databases up to date.
func Migrate(ctx context.Context, s Settings) error {
	a, err := Open(ctx, s)
	if err != nil {
		return err
	}
	return a.Close(ctx)
}
