package app

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"onsale/internal/disk"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/outbox/mail/smtp"
	"onsale/internal/payment/stripe"
	"onsale/internal/pgserver"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A patient is a set-up that the doctor is shown.
type patient struct {
	t       *testing.T
	s       Settings
	d       *doctor
	outside []Check
	hide    map[string]string // what differs from run to run, by what stands in the golden file for it
}

func newPatient(t *testing.T) *patient {
	p := &patient{t: t, s: settings(folder(t)), hide: map[string]string{
		`schema \d+`: "schema N", `schema is \d+, and this program knows \d+`: "schema is 99999, and this program knows N", `\d+ keys`: "N keys",
		`PostgreSQL      .*, durable`: "PostgreSQL      VERSION, durable",
	}}
	p.s.Demo, p.s.Payment.Provider, p.s.Listen, p.s.InternalListen = false, noProvider, "", ""
	p.d = &doctor{
		now: time.Now, free: func(string) (uint64, error) { return 100 << 30, nil },
		measure: func(string) (disk.Report, error) {
			return disk.Report{FileSystem: "ext4", Fsync: time.Millisecond}, nil
		},
	}
	return p
}

// healthy makes the databases.
func (p *patient) healthy() {
	p.t.Helper()
	a, err := Open(p.t.Context(), p.s)
	must(p.t, err)
	must(p.t, a.Close(p.t.Context()))
}

// says is what the doctor prints.
func (p *patient) says() string {
	p.t.Helper()
	p.d.Settings = p.s
	hidden := func(said string) string {
		said = strings.ReplaceAll(said, p.s.Data, "DIR")
		for is, shown := range p.hide {
			said = regexp.MustCompile(is).ReplaceAllString(said, shown)
		}
		return said
	}
	found := p.d.look(p.t.Context(), p.outside)
	for i := range found { // before it is printed: where a line is broken must not depend on where this test runs
		found[i].Says, found[i].Mend = hidden(found[i].Says), hidden(found[i].Mend)
	}
	var text strings.Builder
	_, err := PrintFindings(&text, found)
	must(p.t, err)
	return text.String()
}

func (p *patient) golden() {
	p.t.Helper()
	name := strings.ReplaceAll(strings.TrimPrefix(p.t.Name(), "TestDoctor/"), "_", "-")
	path := filepath.Join("testdata", "doctor", name+".txt")
	got := p.says()
	if *update {
		must(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(p.t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(p.t, err)
	if got != string(want) {
		p.t.Errorf("%s:\n%s\nwant:\n%s", path, got, want)
	}
}

func (p *patient) exec(file, statement string) {
	p.t.Helper()
	db, err := sql.Open("sqlite", sqlite.DSN(filepath.Join(p.s.Data, file)))
	must(p.t, err)
	_, err = db.Exec(statement)
	must(p.t, errors.Join(err, db.Close()))
}

func (p *patient) onPostgres(server *pgserver.Server) (rawURL string) {
	p.t.Helper()
	p.s.Ledger = Postgres
	if server == nil {
		rawURL = pgserver.DatabaseForTest(p.t)
	} else {
		var err error
		rawURL, _, err = server.FreshDatabase(p.t.Context())
		must(p.t, err)
	}
	p.s.PostgresURL = rawURL
	return rawURL
}

func execPostgres(t testing.TB, rawURL string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), rawURL)
	must(t, err)
	defer func() { must(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	for _, s := range statements {
		_, err := conn.Exec(t.Context(), s)
		must(t, err)
	}
}

// The doctor names the fault and the mend. Each case is the whole printed text, in testdata/doctor.
func TestDoctor(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *patient){
		"healthy":     func(t *testing.T, p *patient) { p.healthy(); p.golden() },
		"nothing yet": func(t *testing.T, p *patient) { p.golden() },
		"folder is a file": func(t *testing.T, p *patient) {
			must(t, os.WriteFile(p.s.Data, nil, 0o600))
			p.golden()
		},
		"folder not writable":       notWritable,
		"folder readable by others": func(t *testing.T, p *patient) { p.healthy(); must(t, os.Chmod(p.s.Data, 0o755)); p.golden() },
		"folder in use":             inUse,
		"half restored":             func(t *testing.T, p *patient) { halfRestored(t, p); p.golden() },
		"disk nearly full": func(t *testing.T, p *patient) {
			p.healthy()
			p.d.free = func(string) (uint64, error) { return 300 << 20, nil }
			p.golden()
		},
		"disk in memory": func(t *testing.T, p *patient) { p.healthy(); p.d.measure = inMemory; p.golden() },
		"master key missing": func(t *testing.T, p *patient) {
			p.healthy()
			must(t, os.Remove(filepath.Join(p.s.Data, masterFile)))
			p.golden()
		},
		"master key wrong": anotherKey,
		"master key is not one": func(t *testing.T, p *patient) {
			p.healthy()
			must(t, os.WriteFile(filepath.Join(p.s.Data, masterFile), []byte("secret"), 0o600))
			p.golden()
		},
		"master key open to others": func(t *testing.T, p *patient) {
			p.healthy()
			must(t, os.Chmod(filepath.Join(p.s.Data, masterFile), 0o644))
			p.golden()
		},
		"database newer": func(t *testing.T, p *patient) {
			p.healthy()
			p.exec(controlFile, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)`)
			p.hide[`knows \d+ at most`] = "knows N at most"
			p.golden()
		},
		"database damaged":          damaged,
		"port taken":                portTaken,
		"prices without a provider": func(t *testing.T, p *patient) { priced(t, p); p.golden() },
		"sandbox with real prices": func(t *testing.T, p *patient) {
			priced(t, p)
			p.s.Demo, p.s.Payment.Provider = true, "sandbox"
			p.golden()
		},
		"proxy that is not trusted": func(t *testing.T, p *patient) {
			p.healthy()
			p.s.PublicURL = "https://tickets.example"
			p.golden()
		},
		"throw-away issuer only": func(t *testing.T, p *patient) { p.healthy(); p.s.Throwaway = true; p.golden() },
		"postgres unreachable": func(t *testing.T, p *patient) {
			p.s.Ledger, p.s.PostgresURL = Postgres, "postgres://u:secret@127.0.0.1:1/d?connect_timeout=2"
			p.golden()
		},
		"postgres commits later": commitsLater,
		"postgres without fsync": withoutFsync,
		"postgres with another time": func(t *testing.T, p *patient) {
			p.onPostgres(nil)
			p.healthy()
			p.d.now = func() time.Time { return time.Now().Add(-90 * time.Second) }
			p.golden()
		},
		"postgres master key wrong": anotherKey,
		"stripe key of the wrong mode": func(t *testing.T, p *patient) {
			p.healthy()
			p.outside = []Check{
				CheckStripe(stripe.Config{SecretKey: "sk_test_abc", WebhookSecrets: []string{"whsec_abcdefgh"}}, false),
				CheckStripe(stripe.Config{SecretKey: "sk_live_abc", WebhookSecrets: []string{"whsec_abcdefgh"}}, true),
			}
			p.golden()
		},
		"stripe without a webhook secret": func(t *testing.T, p *patient) {
			p.healthy()
			p.outside = []Check{CheckStripe(stripe.Config{SecretKey: "sk_live_abc"}, false)}
			p.golden()
		},
		"mail server away": func(t *testing.T, p *patient) {
			p.healthy()
			p.outside = []Check{CheckSMTP(smtp.Options{Host: "127.0.0.1", Port: 1, From: "a@example.com"})}
			p.golden()
		},
	} {
		t.Run(name, func(t *testing.T) { test(t, newPatient(t)) })
	}
}

// notWritable looks as another user: to root everything is writable.
func notWritable(t *testing.T, p *patient) {
	p.healthy()
	parent := p.s.Data
	for range 3 { // the test's folders are closed to others
		parent = filepath.Dir(parent)
		if err := os.Chmod(parent, 0o755); err != nil {
			break
		}
	}
	if os.Getuid() == 0 {
		must(t, os.Chmod(p.s.Data, 0o755))
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		must(t, syscall.Setfsuid(65534))
		defer func() { must(t, syscall.Setfsuid(0)) }()
	} else {
		must(t, os.Chmod(p.s.Data, 0o500))
		defer func() { must(t, os.Chmod(p.s.Data, 0o700)) }()
	}
	if f, err := os.CreateTemp(p.s.Data, "x"); err == nil {
		must(t, errors.Join(f.Close(), os.Remove(f.Name())))
		t.Skip("this user may write everywhere")
	}
	said := p.says() // only the folder's lines: what else this user may not read is another matter
	want := "MEND  data folder     DIR cannot be written to: permission denied\n                      → give this user the right to write into it, or make room\n                      on its disk\n"
	if !strings.HasPrefix(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

func inUse(t *testing.T, p *patient) {
	p.healthy()
	unlock, err := lockFolder(p.s.Data)
	must(t, err)
	defer func() { must(t, unlock()) }()
	p.golden()
}

func halfRestored(t *testing.T, p *patient) {
	t.Helper()
	must(t, os.MkdirAll(p.s.Data, 0o700))
	must(t, (&App{Settings: p.s}).putRestoring(restoring{Backup: "0123456789abcdef"}))
}

func inMemory(string) (disk.Report, error) {
	return disk.Report{}, fmt.Errorf("DIR (tmpfs) %w", disk.ErrMemory)
}

func anotherKey(t *testing.T, p *patient) {
	if strings.Contains(t.Name(), "postgres") {
		p.onPostgres(nil)
	}
	p.healthy()
	other := newPatient(t)
	other.healthy()
	content, err := os.ReadFile(filepath.Join(other.s.Data, masterFile))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(p.s.Data, masterFile), content, 0o600))
	p.golden()
}

// damaged writes over pages in the middle of the file.
func damaged(t *testing.T, p *patient) {
	p.healthy()
	f, err := os.OpenFile(filepath.Join(p.s.Data, ShardFile), os.O_RDWR, 0)
	must(t, err)
	for page := range 6 {
		_, err = f.WriteAt([]byte(strings.Repeat("\xff", 100)), int64(2+page)*4096)
		must(t, err)
	}
	must(t, f.Close())
	p.hide[`the file is damaged: .*`] = "the file is damaged: …"
	p.golden()
}

func portTaken(t *testing.T, p *patient) {
	p.healthy()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	p.s.Listen, p.s.InternalListen = l.Addr().String(), "127.0.0.1:0"
	p.hide[regexp.QuoteMeta(l.Addr().String())] = "ADDRESS"
	p.golden()
}

// priced makes an event that costs something.
func priced(t *testing.T, p *patient) {
	t.Helper()
	c := dialed(t, p.s)
	var made []AdminEvent
	must(t, c.Call(t.Context(), "POST", "/events", fileOf(t, "one", ""), &made))
	must(t, c.Close())
	p.hide[made[0].ID] = "EVENT"
}

func commitsLater(t *testing.T, p *patient) {
	rawURL := p.onPostgres(nil)
	p.healthy()
	config, err := pgx.ParseConfig(rawURL)
	must(t, err)
	execPostgres(t, rawURL, `ALTER DATABASE `+config.Database+` SET synchronous_commit = off`)
	p.golden()
}

func withoutFsync(t *testing.T, p *patient) {
	server := pgserver.CrashableForTest(t)
	rawURL := p.onPostgres(server)
	p.healthy()
	execPostgres(t, rawURL, `ALTER SYSTEM SET fsync = off`, `SELECT pg_reload_conf()`)
	until(t, "the setting", func() bool {
		conn, err := pgx.Connect(t.Context(), rawURL)
		must(t, err)
		defer func() { must(t, conn.Close(context.WithoutCancel(t.Context()))) }()
		var value string
		must(t, conn.QueryRow(t.Context(), `SELECT current_setting('fsync')`).Scan(&value))
		return value == "off"
	})
	p.golden()
	execPostgres(t, rawURL, `ALTER SYSTEM RESET fsync`, `SELECT pg_reload_conf()`)
}

// The doctor sees a running server, and changes nothing there.
func TestDoctorBesideAServer(t *testing.T) {
	s := settings(folder(t))
	p := start(t, s)
	for _, f := range Doctor(t.Context(), s) {
		if !f.Well && !f.Warn && f.What != "disk" {
			t.Errorf("%+v", f)
		}
		if f.What == "data folder" && !strings.HasSuffix(f.Says, "in use by a running server") {
			t.Errorf("%+v", f)
		}
	}
	p.stop()
}
