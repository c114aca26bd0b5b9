package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"onsale/internal/control"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/sqlmigrate"
)

// gatherSQLite copies the files: the shard first (see the package's comment).
func gatherSQLite(ctx context.Context, m *Manifest, scratch string, o Options) error {
	for _, part := range []struct {
		name, schema string
		files        fs.FS
	}{{ShardPart, Shard, sqlite.Migrations()}, {ControlPart, Control, control.Migrations(sqlmigrate.SQLite)}} {
		path := filepath.Join(o.Data, part.name)
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("there is nothing to back up in %s (is --data right?): %w", o.Data, err)
		}
		db, err := copySQLite(ctx, m, scratch, path, o)
		if err != nil {
			return err
		}
		state, err := sqlmigrate.Status(ctx, db, sqlmigrate.SQLite, "", part.files)
		m.Schemas[part.schema] = state.Current
		if err == nil && part.name == ControlPart {
			err = m.fromControl(ctx, db)
		}
		if err = errors.Join(err, db.Close()); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		o.reached(part.schema)
	}
	return nil
}

// gatherSandbox copies the sandbox's books where there are any, last: what the shard says was paid is in them.
func gatherSandbox(ctx context.Context, m *Manifest, scratch string, o Options) error {
	path := filepath.Join(o.Data, SandboxPart)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := copySQLite(ctx, m, scratch, path, o)
	if err != nil {
		return err
	}
	return db.Close()
}

// copySQLite copies one file as it is at one instant, also while others write it, and adds it to the manifest. VACUUM INTO
// reads in one transaction, so no writer waits for it and none is half in it; the copy has no log beside it, and no free
// pages. The backup API would begin again with each commit of another process, and never end while tickets are sold.
func copySQLite(ctx context.Context, m *Manifest, scratch, path string, o Options) (*sql.DB, error) {
	name := filepath.Base(path)
	into := filepath.Join(scratch, name)
	part := Part{Name: name, At: instant(o.Now())}
	from, err := openSQLite(path, "ro")
	if err != nil {
		return nil, err
	}
	_, err = from.ExecContext(ctx, `VACUUM INTO ?`, into)
	if err = errors.Join(err, from.Close()); err != nil {
		return nil, fmt.Errorf("copying %s: %w", name, err)
	}
	if err := os.Chmod(into, 0o600); err != nil {
		return nil, err
	}
	copied, err := openSQLite(into, "ro")
	if err != nil {
		return nil, err
	}
	if err := intact(ctx, copied); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), copied.Close())
	}
	if part.Rows, err = countRows(ctx, copied); err != nil {
		return nil, errors.Join(err, copied.Close())
	}
	m.Parts = append(m.Parts, part)
	return copied, nil
}

func openSQLite(path, mode string) (*sql.DB, error) {
	q := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(10000)"}}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String())
}

// intact says what is wrong with a file's pages.
func intact(ctx context.Context, db *sql.DB) error {
	var found string
	if err := db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("the file is damaged: %s", found)
	}
	return nil
}

func countRows(ctx context.Context, db *sql.DB) (map[string]int64, error) {
	tables, err := texts(ctx, db, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`)
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for _, t := range tables {
		var n int64
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM `+quote(t)).Scan(&n); err != nil {
			return nil, err
		}
		counts[t] = n
	}
	return counts, nil
}

// quote spells a name for both databases.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// texts reads a column.
func texts(ctx context.Context, db querier, query string, args ...any) ([]string, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// A querier is a database or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// What the manifest has of the control database, in both dialects; %s is the schema with its dot.
const (
	sqlKeys     = `SELECT kid, purpose, sealed FROM %skeys WHERE state = 'active' ORDER BY kid`
	sqlErasures = `SELECT customer_id, at_ms FROM %serasures ORDER BY at_ms, customer_id`
)

// fromControl reads the active keys, still sealed, and the erasures.
func (m *Manifest) fromControl(ctx context.Context, db querier) error {
	rows, err := db.QueryContext(ctx, fmt.Sprintf(sqlKeys, ""))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var k SealedKey
		if err := rows.Scan(&k.KID, (*string)(&k.Purpose), &k.Sealed); err != nil {
			return err
		}
		m.Keys = append(m.Keys, k)
	}
	if err := rows.Err(); err != nil || m.Schemas[Control] < withErasures {
		return err
	}
	erased, err := db.QueryContext(ctx, fmt.Sprintf(sqlErasures, ""))
	if err != nil {
		return err
	}
	defer erased.Close()
	for erased.Next() {
		var customer, at int64
		if err := erased.Scan(&customer, &at); err != nil {
			return err
		}
		m.Erasures = append(m.Erasures, identity.Erasure{Customer: id.ID(customer), At: time.UnixMilli(at).UTC()})
	}
	return erased.Err()
}

// withErasures is the number of the control database's migration that made the list of erasures.
const withErasures = 2

// checkVersions refuses a backup of a newer program (F3).
func (m *Manifest) checkVersions(files map[string]fs.FS) error {
	for _, schema := range []string{Shard, Control} {
		known, err := greatest(files[schema])
		if err != nil {
			return err
		}
		if is := m.Schemas[schema]; is > known {
			return fmt.Errorf("%s has schema %d, made by %s, and this program knows %d: %w", schema, is, m.Program, known, ErrNewer)
		}
	}
	return nil
}

// greatest is the greatest number of the files of migrations.
func greatest(files fs.FS) (most int64, err error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return 0, err
	}
	for _, n := range names {
		var number int64
		if _, err := fmt.Sscanf(n, "%d_", &number); err != nil {
			return 0, fmt.Errorf("migration %s: %w", n, err)
		}
		most = max(most, number)
	}
	return most, nil
}

// CheckVersions says whether this program can restore the backup: ErrNewer, where it was made by a newer one.
func (m *Manifest) CheckVersions() error {
	if m.Kind == Postgres {
		return m.checkVersions(postgresFiles())
	}
	return m.checkVersions(map[string]fs.FS{Shard: sqlite.Migrations(), Control: control.Migrations(sqlmigrate.SQLite)})
}

// FillSQLite brings the unpacked files in dir up to this program's schema and ahead, so that they can be moved to where
// they are used. It may be done again after it was interrupted only with files unpacked anew.
func FillSQLite(ctx context.Context, dir string, now Jump) error {
	for _, part := range []struct {
		name  string
		files fs.FS
		ahead func(context.Context, querier, names, Jump) error
	}{
		{ShardPart, sqlite.Migrations(), aheadShard},
		{ControlPart, control.Migrations(sqlmigrate.SQLite), aheadControl},
	} {
		if err := fillFile(ctx, filepath.Join(dir, part.name), part.files, func(tx *sql.Tx) error {
			return part.ahead(ctx, tx, names{}, now)
		}); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return syncFolder(dir)
}

func fillFile(ctx context.Context, path string, files fs.FS, ahead func(*sql.Tx) error) (err error) {
	db, err := openSQLite(path, "rw")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	defer func() {
		err = errors.Join(err, db.Close())
		if err == nil {
			err = syncFile(path)
		}
	}()
	if err := intact(ctx, db); err != nil {
		return err
	}
	if _, err := sqlmigrate.Up(ctx, db, sqlmigrate.SQLite, "", files); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	if err := ahead(tx); err != nil {
		return err
	}
	return tx.Commit()
}
