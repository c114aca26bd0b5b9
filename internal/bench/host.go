package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"onsale/internal/audit"
	"onsale/internal/disk"
	"onsale/internal/ledger"
	"onsale/internal/ledger/postgres"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/payment"
	"onsale/internal/pgserver"
)

// HostOptions say where the databases of a bench lie.
type HostOptions struct {
	Ledger string // SQLite or Postgres
	// Dir is where the bench makes its own folder, removed at the end. It must lie on a disk (F6). Defaults to the
	// system's temporary folder.
	Dir string
	// PostgresURL names an existing server on which the bench makes databases of its own. Defaults to "": a private one is
	// started.
	PostgresURL string
}

// A Machine is what the figures were measured on.
type Machine struct {
	CPUs       int     `json:"cpus"`
	FileSystem string  `json:"file_system"` // under the data; "" for a server of somebody else
	FsyncMS    float64 `json:"fsync_ms"`    // median of writing and syncing one page
	Server     string  `json:"server"`      // "embedded", "private" or "existing"
}

// A Host has the databases: each design gets a fresh one. Close removes them.
type Host struct {
	Machine Machine
	ledger  string
	dir     string
	server  *pgserver.Server
}

// OpenHost makes the folder, starts a server where one is needed, and measures the disk. It refuses a folder in memory.
func OpenHost(o HostOptions) (*Host, error) {
	if o.Ledger != SQLite && o.Ledger != Postgres {
		return nil, fmt.Errorf("ledger %q is not one of %s, %s", o.Ledger, SQLite, Postgres)
	}
	h := &Host{ledger: o.Ledger, Machine: Machine{CPUs: runtime.GOMAXPROCS(0), Server: "embedded"}}
	if err := h.open(o); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (h *Host) open(o HostOptions) (err error) {
	if h.dir, err = os.MkdirTemp(o.Dir, "onsale-bench-"); err != nil {
		return err
	}
	data := h.dir
	switch {
	case o.Ledger == SQLite:
	case o.PostgresURL != "":
		h.Machine.Server = "existing"
		h.server, err = pgserver.Adopt(o.PostgresURL)
		return err // whose disk cannot be seen from here
	default:
		// Measured before anything is started; the server's own folder may lie elsewhere, where its user can reach it.
		if _, err := disk.Measure(h.dir); err != nil {
			return err
		}
		h.Machine.Server = "private"
		if h.server, err = pgserver.Start(pgserver.Options{Dir: h.dir}); err != nil {
			return err
		}
		data = h.server.Dir()
	}
	report, err := disk.Measure(data)
	if err != nil {
		return err
	}
	h.Machine.FileSystem, h.Machine.FsyncMS = report.FileSystem, float64(report.Fsync.Microseconds())/1000
	return nil
}

// Close ends what was started and removes what was made.
func (h *Host) Close() error {
	var err error
	if h.server != nil {
		err = h.server.Stop()
	}
	if h.dir != "" {
		err = errors.Join(err, os.RemoveAll(h.dir))
	}
	return err
}

// cpu is a meter over this process and a server that it started.
func (h *Host) cpu() *cpuMeter {
	if h.server == nil || h.server.Dir() == "" {
		return newCPUMeter("")
	}
	return newCPUMeter(filepath.Join(h.server.Dir(), "data", "postmaster.pid"))
}

// A place is one fresh database.
type place struct {
	host *Host
	path string // of an SQLite file
	url  string // of a PostgreSQL database
	name string
}

func (h *Host) fresh(ctx context.Context) (*place, error) {
	p := &place{host: h}
	if h.ledger == SQLite {
		dir, err := os.MkdirTemp(h.dir, "run-")
		p.path = filepath.Join(dir, "shard.db")
		return p, err
	}
	var err error
	p.url, p.name, err = h.server.FreshDatabase(ctx)
	return p, err
}

func (p *place) remove(ctx context.Context) error {
	if p.path != "" {
		return os.RemoveAll(filepath.Dir(p.path))
	}
	return p.host.server.DropDatabase(context.WithoutCancel(ctx), p.name)
}

// A store is a shard's ledger, whichever database keeps it.
type store interface {
	ledger.Ledger
	ledger.Webhooks
}

func (p *place) open(ctx context.Context) (store, error) {
	if p.path != "" {
		return sqlite.Open(ctx, p.path, sqlite.Options{})
	}
	l, err := postgres.Open(ctx, postgres.Options{URL: p.url})
	if err != nil {
		return nil, err
	}
	if err := l.CheckDurability(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// db opens the database for the queries of this package.
func (p *place) db() (*sql.DB, error) {
	if p.path != "" {
		return sql.Open("sqlite", sqlite.DSN(p.path))
	}
	return sql.Open("pgx", p.url)
}

// audit fills in what the audit says. provider may be nil: its books are then not compared.
func (p *place) audit(ctx context.Context, provider payment.Lister, r *Result) (err error) {
	var source *audit.Source
	if p.path != "" {
		source, err = audit.OpenSQLite(p.path)
	} else {
		source, err = audit.OpenPostgres(p.url)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	report, err := audit.Run(ctx, source, audit.Options{Provider: provider})
	if err != nil {
		return err
	}
	ok := report.OK()
	r.AuditOK, r.AuditBroken = &ok, report.Broken()
	return nil
}
