package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"onsale/internal/control"
	"onsale/internal/identity"
	"onsale/internal/ledger/postgres"
	"onsale/internal/sqlmigrate"
)

// PostgreSQL is copied by our own COPY, not by pg_dump: one transaction sees both schemas at one instant, no program of the
// right version needs to be there, and the schema comes from our migrations, which pg_dump would write down a second time.

// stage is what a schema is called until all of it is there.
func stage(schema string) string { return "restore_" + schema }

// schemas of the database, in the order in which they are read and filled.
var schemas = []struct {
	name, schema string
	files        func() fs.FS
}{
	{Shard, postgres.Schema, postgres.Migrations},
	{Control, control.Schema, func() fs.FS { return control.Migrations(sqlmigrate.Postgres) }},
}

func postgresFiles() map[string]fs.FS {
	files := map[string]fs.FS{}
	for _, s := range schemas {
		files[s.name] = s.files()
	}
	return files
}

// connect opens one connection without prepared statements, so that PgBouncer may stand between.
func connect(ctx context.Context, rawURL string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(rawURL)
	if err != nil {
		// The cause quotes the URL, and with it the password.
		return nil, errors.New("the URL of PostgreSQL cannot be read: write postgres://user:password@host:5432/database")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return pgx.ConnectConfig(ctx, config)
}

// openPool is a database/sql pool for the migrations, which need two connections.
func openPool(rawURL string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(rawURL)
	if err != nil {
		return nil, errors.New("the URL of PostgreSQL cannot be read: write postgres://user:password@host:5432/database")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(3)
	return db, nil
}

// gatherPostgres copies all tables of both schemas as they are at one instant.
func gatherPostgres(ctx context.Context, m *Manifest, scratch string, o Options) (err error) {
	db, err := openPool(o.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, s := range schemas {
		state, err := sqlmigrate.Status(ctx, db, sqlmigrate.Postgres, s.schema, s.files())
		if err != nil {
			return err
		}
		if state.Current == 0 {
			return fmt.Errorf("there is nothing to back up: the database has no schema %s", s.schema)
		}
		m.Schemas[s.name] = state.Current
	}
	conn, err := connect(ctx, o.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // it only reads
	for _, s := range schemas {
		if err := copySchema(ctx, m, tx, s.name, s.schema, scratch, o); err != nil {
			return fmt.Errorf("schema %s: %w", s.schema, err)
		}
		o.reached(s.name)
	}
	return m.fromCopied(ctx, tx)
}

// fromCopied is fromControl.
func (m *Manifest) fromCopied(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, fmt.Sprintf(sqlKeys, control.Schema+"."))
	if err != nil {
		return err
	}
	if m.Keys, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (k SealedKey, err error) {
		err = row.Scan(&k.KID, (*string)(&k.Purpose), &k.Sealed)
		return k, err
	}); err != nil || m.Schemas[Control] < withErasures {
		return err
	}
	if rows, err = tx.Query(ctx, fmt.Sprintf(sqlErasures, control.Schema+".")); err != nil {
		return err
	}
	m.Erasures, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e identity.Erasure, err error) {
		var at int64
		err = row.Scan((*int64)(&e.Customer), &at)
		e.At = time.UnixMilli(at).UTC()
		return e, err
	})
	return err
}

func copySchema(ctx context.Context, m *Manifest, tx pgx.Tx, name, schema, scratch string, o Options) error {
	if err := os.MkdirAll(filepath.Join(scratch, name), 0o700); err != nil {
		return err
	}
	tables, err := tablesOf(ctx, tx, schema)
	if err != nil {
		return err
	}
	for _, table := range tables {
		part := Part{Name: name + "/" + table + ".copy", At: instant(o.Now())}
		if part.Columns, err = columnsOf(ctx, tx, schema, table); err != nil {
			return err
		}
		n, err := copyTable(ctx, tx, schema, table, part.Columns, filepath.Join(scratch, filepath.FromSlash(part.Name)))
		if err != nil {
			return fmt.Errorf("table %s: %w", table, err)
		}
		part.Rows = map[string]int64{table: n}
		m.Parts = append(m.Parts, part)
	}
	return nil
}

// copyTable writes a table as text: a program of any later version can read it, on any machine.
func copyTable(ctx context.Context, tx pgx.Tx, schema, table string, columns []string, path string) (n int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	tag, err := tx.Conn().PgConn().CopyTo(ctx, f, fmt.Sprintf(`COPY %s.%s (%s) TO STDOUT`, quote(schema), quote(table), list(columns)))
	return tag.RowsAffected(), err
}

func list(columns []string) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = quote(c)
	}
	return strings.Join(quoted, ", ")
}

// tablesOf are a schema's tables but goose's own, those that others refer to first, so that they can be filled in order.
func tablesOf(ctx context.Context, tx pgx.Tx, schema string) ([]string, error) {
	all, err := pairs(ctx, tx, `SELECT c.relname, '' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> $2 ORDER BY c.relname`, schema, sqlmigrate.Table)
	if err != nil {
		return nil, err
	}
	refers, err := pairs(ctx, tx, `SELECT c.relname, f.relname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class f ON f.oid = k.confrelid
		JOIN pg_namespace n ON n.oid = k.connamespace WHERE n.nspname = $1 AND k.contype = 'f' AND c.oid <> f.oid`, schema)
	if err != nil {
		return nil, err
	}
	to := map[string][]string{}
	for _, r := range refers {
		to[r[0]] = append(to[r[0]], r[1])
	}
	var order []string
	seen := map[string]bool{}
	var visit func(string)
	visit = func(table string) {
		if seen[table] {
			return
		}
		seen[table] = true
		for _, t := range to[table] {
			visit(t)
		}
		order = append(order, table)
	}
	for _, t := range all {
		visit(t[0])
	}
	return order, nil
}

func columnsOf(ctx context.Context, tx pgx.Tx, schema, table string) ([]string, error) {
	found, err := pairs(ctx, tx, `SELECT a.attname, '' FROM pg_attribute a WHERE a.attrelid = ($1::text || '.' || $2::text)::regclass
		AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum`, quote(schema), quote(table))
	if err != nil {
		return nil, err
	}
	columns := make([]string, len(found))
	for i, p := range found {
		columns[i] = p[0]
	}
	return columns, nil
}

// pairs reads two columns of text.
func pairs(ctx context.Context, tx pgx.Tx, query string, args ...any) ([][2]string, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p [2]string, err error) {
		err = row.Scan(&p[0], &p[1])
		return p, err
	})
}

// ErrNotEmpty says that there is something where a backup should be restored to.
var ErrNotEmpty = errors.New("a backup is restored only where nothing is yet")

// CheckEmptyPostgres refuses a database that has one of our schemas, unless it is what an interrupted restore of this
// backup has left: then resumed is true, and all is in place but the last steps.
func CheckEmptyPostgres(ctx context.Context, rawURL, backupID string) (resumed bool, err error) {
	conn, err := connect(ctx, rawURL)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var there bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname IN ($1, $2))`, postgres.Schema, control.Schema).Scan(&there)
	if err != nil || !there {
		return false, err
	}
	var value []byte
	var meta bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, control.Schema+".meta").Scan(&meta); err != nil {
		return false, err
	}
	if meta {
		err = conn.QueryRow(ctx, `SELECT value FROM `+control.Schema+`.meta WHERE name = $1`, MetaRestoring).Scan(&value)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return false, err
		}
	}
	switch {
	case string(value) == backupID:
		return true, nil
	case value != nil:
		return false, fmt.Errorf("%w: the restore of another backup (%s) into this database was interrupted: restore that one again, or make a new database", ErrNotEmpty, value)
	}
	return false, fmt.Errorf("%w: this database has schemas of Onsale; name an empty one", ErrNotEmpty)
}

// FillPostgres fills an empty database from the unpacked parts in dir: in schemas of other names, which get their own in one
// transaction with the last step. So nobody ever sees half of it, and what an interrupted one has left is taken away.
func FillPostgres(ctx context.Context, m *Manifest, dir, rawURL string, now Jump) (err error) {
	db, err := openPool(rawURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, s := range schemas {
		if _, err := db.ExecContext(ctx, `DROP SCHEMA IF EXISTS `+quote(stage(s.schema))+` CASCADE`); err != nil {
			return err
		}
		files, err := until(s.files(), m.Schemas[s.name], filepath.Join(dir, "migrations-"+s.name))
		if err != nil {
			return err
		}
		if _, err := sqlmigrate.Up(ctx, db, sqlmigrate.Postgres, stage(s.schema), files); err != nil {
			return err
		}
		if err := fillSchema(ctx, m, s.name, stage(s.schema), dir, rawURL); err != nil {
			return err
		}
		if _, err := sqlmigrate.Up(ctx, db, sqlmigrate.Postgres, stage(s.schema), s.files()); err != nil {
			return err
		}
	}
	return putInPlace(ctx, db, now)
}

// putInPlace jumps ahead and gives the schemas their names.
func putInPlace(ctx context.Context, db *sql.DB, now Jump) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	if err := aheadShard(ctx, tx, names{stage(postgres.Schema)}, now); err != nil {
		return err
	}
	if err := aheadControl(ctx, tx, names{stage(control.Schema)}, now); err != nil {
		return err
	}
	for _, s := range schemas {
		if err := aheadNumbers(ctx, tx, stage(s.schema)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(`ALTER SCHEMA %s RENAME TO %s`, quote(stage(s.schema)), quote(s.schema))); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// aheadNumbers sets the sequences behind identity columns past what was copied.
func aheadNumbers(ctx context.Context, tx *sql.Tx, schema string) error {
	columns, err := texts(ctx, tx, `SELECT quote_ident(table_name) || ' ' || quote_ident(column_name) FROM information_schema.columns
		WHERE table_schema = $1 AND is_identity = 'YES'`, schema)
	if err != nil {
		return err
	}
	for _, c := range columns {
		table, column, _ := strings.Cut(c, " ")
		table = quote(schema) + "." + table
		_, err := tx.ExecContext(ctx, fmt.Sprintf(`SELECT setval(pg_get_serial_sequence($1, $2), (SELECT coalesce(max(%s), 0) + %d FROM %s))`, column, historyJump, table),
			table, strings.Trim(column, `"`))
		if err != nil {
			return err
		}
	}
	return nil
}

// until are the migrations up to a number, written into a folder.
func until(files fs.FS, most int64, dir string) (fs.FS, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	found, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range found {
		var number int64
		if _, err := fmt.Sscanf(name, "%d_", &number); err != nil || number > most {
			continue
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return os.DirFS(dir), nil
}

// fillSchema copies all tables of a schema in one transaction.
func fillSchema(ctx context.Context, m *Manifest, name, schema, dir, rawURL string) (err error) {
	conn, err := connect(ctx, rawURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // after Commit it has nothing to do
	for _, p := range m.Parts {
		folder, file, _ := strings.Cut(p.Name, "/")
		table, ok := strings.CutSuffix(file, ".copy")
		if folder != name || !ok {
			continue
		}
		// Migrations may have filled it with a first row.
		if _, err := tx.Exec(ctx, `DELETE FROM `+quote(schema)+`.`+quote(table)); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		n, err := fillTable(ctx, tx, schema, table, p.Columns, filepath.Join(dir, filepath.FromSlash(p.Name)))
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if n != p.Rows[table] {
			return damaged(fmt.Sprintf("%s gave %d rows, not %d", p.Name, n, p.Rows[table]))
		}
	}
	return tx.Commit(ctx)
}

func fillTable(ctx context.Context, tx pgx.Tx, schema, table string, columns []string, path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	tag, err := tx.Conn().PgConn().CopyFrom(ctx, f, fmt.Sprintf(`COPY %s.%s (%s) FROM STDIN`, quote(schema), quote(table), list(columns)))
	return tag.RowsAffected(), err
}
