package control

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"onsale/internal/sqlmigrate"
)

const (
	readersMax     = 8
	busyTimeoutMS  = "10000"
	idleTimeMax    = 5 * time.Minute
	lifetimeMax    = time.Hour // connections move to a new primary behind a name in time
	postgresConns  = 16
	applicationTag = "onsale-control"
)

// OpenSQLite opens (or makes) the database in a file, and brings it up to date. The caller has the data folder locked.
func OpenSQLite(ctx context.Context, path string) (*DB, error) {
	write, err := openFile(path, url.Values{"_txlock": {"immediate"}})
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	d := &DB{dialect: sqlmigrate.SQLite, write: write, read: write, now: time.Now}
	if err := d.migrate(ctx, write); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read, err := openFile(path, url.Values{}, "query_only(1)")
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(readersMax)
	d.read = read
	if err := errors.Join(d.CheckDurable(ctx), d.foldAnew(ctx)); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func openFile(path string, parameters url.Values, pragmas ...string) (*sql.DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// busy_timeout first: the others may have to wait for a lock.
	for _, pragma := range append([]string{"busy_timeout(" + busyTimeoutMS + ")", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}, pragmas...) {
		parameters.Add("_pragma", pragma)
	}
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(absolute), RawQuery: parameters.Encode()}
	return sql.Open("sqlite", dsn.String())
}

// PostgresOptions say where the database is.
type PostgresOptions struct {
	URL       string // may lead through PgBouncer, then with default_query_exec_mode=exec
	DirectURL string // for migrations; "": URL
	// ConnectionsMax is how many connections are kept at most. Defaults to 16.
	ConnectionsMax int
}

// OpenPostgres connects, and brings the schema up to date.
func OpenPostgres(ctx context.Context, o PostgresOptions) (*DB, error) {
	if o.DirectURL == "" {
		o.DirectURL = o.URL
	}
	direct, err := connect(o.DirectURL, 2)
	if err != nil {
		return nil, err
	}
	err = (&DB{dialect: sqlmigrate.Postgres}).migrate(ctx, direct)
	if err = errors.Join(err, direct.Close()); err != nil {
		return nil, err
	}
	if o.ConnectionsMax == 0 {
		o.ConnectionsMax = postgresConns
	}
	pool, err := connect(o.URL, o.ConnectionsMax)
	if err != nil {
		return nil, err
	}
	d := &DB{dialect: sqlmigrate.Postgres, write: pool, read: pool, now: time.Now}
	if err := errors.Join(d.CheckDurable(ctx), d.foldAnew(ctx)); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func connect(rawURL string, connectionsMax int) (*sql.DB, error) {
	config, err := pgx.ParseConfig(rawURL)
	if err != nil {
		// The cause quotes the URL, and with it the password.
		return nil, errors.New("control database: the URL cannot be read: write postgres://user:password@host:5432/database")
	}
	if _, ok := config.RuntimeParams["application_name"]; !ok && config.DefaultQueryExecMode != pgx.QueryExecModeExec {
		config.RuntimeParams["application_name"] = applicationTag
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(connectionsMax)
	pool.SetMaxIdleConns(connectionsMax)
	pool.SetConnMaxIdleTime(idleTimeMax)
	pool.SetConnMaxLifetime(lifetimeMax)
	return pool, nil
}

func (d *DB) migrate(ctx context.Context, db *sql.DB) error {
	_, err := sqlmigrate.Up(ctx, db, d.dialect, d.schema(), Migrations(d.dialect))
	return wrap("bringing it up to date", err)
}

// CheckDurable refuses a database that may forget what it has committed (F1).
func (d *DB) CheckDurable(ctx context.Context) error {
	if d.dialect == sqlmigrate.SQLite {
		var synchronous int
		if err := d.write.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&synchronous); err != nil {
			return wrap("reading PRAGMA synchronous", err)
		}
		if synchronous < 2 {
			return fmt.Errorf("control database: synchronous is %d: FULL (2) is needed, else a power loss forgets", synchronous)
		}
		return nil
	}
	for _, setting := range []string{"fsync", "synchronous_commit"} {
		var value string
		if err := d.write.QueryRowContext(ctx, `SELECT current_setting($1)`, setting).Scan(&value); err != nil {
			return wrap("reading "+setting, err)
		}
		if value == "off" {
			return fmt.Errorf("control database: %s is off: switch it on in postgresql.conf, else a power loss forgets", setting)
		}
	}
	return nil
}
