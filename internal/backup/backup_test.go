package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"onsale/internal/control"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/keys"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
	"onsale/internal/ledger/postgres"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/pgserver"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/joinlog"
)

// childStep, where it is set, makes this test program back a folder up, say how far it is, and stop at one step for ever.
const childStep = "ONSALE_TEST_BACKUP_STOP"

func TestMain(m *testing.M) {
	if step := os.Getenv(childStep); step != "" {
		_, err := Make(context.Background(), Options{
			File: os.Getenv("ONSALE_TEST_BACKUP_FILE"), Data: os.Getenv("ONSALE_TEST_BACKUP_DATA"), Kind: SQLite, Program: "child",
			reached: func(at string) {
				if at == step {
					fmt.Println("at", at)
					_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
				}
			},
		})
		fmt.Println("ended", err)
		return
	}
	goleak.VerifyTestMain(pgserver.Wrap(m))
}

// A house is a pair of databases with something in them.
type house struct {
	t      testing.TB
	kind   Kind
	data   string
	url    string
	master keys.Master
	shard  *sql.DB
	people *control.DB
}

func houses(t *testing.T, test func(t *testing.T, h *house)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, newHouse(t, SQLite)) })
	t.Run("postgres", func(t *testing.T) { test(t, newHouse(t, Postgres)) })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newHouse(t testing.TB, kind Kind) *house {
	t.Helper()
	h := &house{t: t, kind: kind, data: t.TempDir()}
	var err error
	h.master, err = keys.NewMaster([]byte(strings.Repeat("m", keys.MasterBytes)))
	must(t, err)
	if kind == Postgres {
		h.url = pgserver.DatabaseForTest(t)
		l, err := postgres.Open(t.Context(), postgres.Options{URL: h.url})
		must(t, err)
		must(t, l.Close())
	} else {
		l, err := sqlite.Open(t.Context(), filepath.Join(h.data, ShardPart), sqlite.Options{})
		must(t, err)
		must(t, l.Close())
	}
	h.open()
	ring, err := keys.Load(t.Context(), h.people.Keys(), h.master, keys.Options{})
	must(t, err)
	_, err = ring.EnsureActive(t.Context(), keys.Ticket)
	must(t, err)
	return h
}

func (h *house) open() {
	h.t.Helper()
	var err error
	if h.kind == Postgres {
		h.people, err = control.OpenPostgres(h.t.Context(), control.PostgresOptions{URL: h.url})
		must(h.t, err)
		h.shard, err = sql.Open("pgx", h.url)
	} else {
		h.people, err = control.OpenSQLite(h.t.Context(), filepath.Join(h.data, ControlPart))
		must(h.t, err)
		h.shard, err = sql.Open("sqlite", sqlite.DSN(filepath.Join(h.data, ShardPart)))
		h.shard.SetMaxOpenConns(1)
	}
	must(h.t, err)
	people, shard := h.people, h.shard
	h.t.Cleanup(func() { must(h.t, errors.Join(people.Close(), shard.Close())) })
}

func (h *house) q(query string) string {
	if h.kind == Postgres {
		return strings.ReplaceAll(query, "#", "shard.")
	}
	return strings.ReplaceAll(query, "#", "")
}

func (h *house) exec(query string) {
	h.t.Helper()
	_, err := h.shard.ExecContext(h.t.Context(), h.q(query))
	must(h.t, err)
}

func (h *house) number(query string) (n int64) {
	h.t.Helper()
	must(h.t, h.shard.QueryRowContext(h.t.Context(), h.q(query)).Scan(&n))
	return n
}

func (h *house) text(query string) (s string) {
	h.t.Helper()
	must(h.t, h.shard.QueryRowContext(h.t.Context(), h.q(query)).Scan(&s))
	return s
}

// join writes joins into the log, as a server does that runs meanwhile.
func (h *house) join(event id.ID, customers ...int) {
	h.t.Helper()
	l, err := joinlog.Open(filepath.Join(h.data, JoinsPart))
	must(h.t, err)
	defer l.Close()
	for _, c := range customers {
		_, err := l.Append(h.t.Context(), []waitingroom.Record{{Event: event, Customer: id.ID(c), Number: int64(c), Drawn: true}})
		must(h.t, err)
	}
}

// joins are the customers of a line.
func (h *house) joins(event id.ID) (customers []id.ID) {
	h.t.Helper()
	l, err := joinlog.Open(filepath.Join(h.data, JoinsPart))
	must(h.t, err)
	defer l.Close()
	must(h.t, l.Replay(h.t.Context(), event, true, func(r waitingroom.Record) error {
		customers = append(customers, r.Customer)
		return nil
	}))
	return customers
}

func (h *house) options(file string) Options {
	return Options{File: file, Data: h.data, Kind: h.kind, URL: h.url, Program: "v1"}
}

// sell writes an order of a new customer: the customer first, as the program does.
func (h *house) sell(n int) {
	customer := id.ID(1000 + n)
	got, err := h.people.Identities().PutCustomer(h.t.Context(), identity.Named{Issuer: identity.EmailIssuer, Sub: fmt.Sprintf("buyer%d@example.com", n), Email: identity.Email(fmt.Sprintf("buyer%d@example.com", n))}, customer)
	if err != nil {
		h.t.Error(err)
		return
	}
	_, err = h.shard.ExecContext(context.WithoutCancel(h.t.Context()), h.q(fmt.Sprintf(`INSERT INTO #orders (order_id, hold_id, event_id, customer_id, state, amount, currency, provider, created_at, updated_at, sequence)
		VALUES (%d, %d, 7, %d, 2, 100, 'EUR', 'sandbox', 1, 1, 2)`, n, n, int64(got))))
	if err != nil {
		h.t.Error(err)
	}
}

// unpack restores a backup into a new place and opens it.
func (h *house) restored(file string) *house {
	h.t.Helper()
	a, err := Open(file)
	must(h.t, err)
	defer a.Close()
	into := &house{t: h.t, kind: h.kind, data: h.t.TempDir(), master: h.master}
	must(h.t, a.Manifest.CheckVersions())
	must(h.t, a.Manifest.CheckMaster(h.master))
	must(h.t, a.Unpack(h.t.Context(), into.data))
	now := Jump{Now: time.Now(), Backup: a.Manifest.ID}
	if h.kind == Postgres {
		into.url = pgserver.DatabaseForTest(h.t)
		must(h.t, FillPostgres(h.t.Context(), &a.Manifest, into.data, into.url, now))
	} else {
		must(h.t, FillSQLite(h.t.Context(), into.data, now))
	}
	into.open()
	return into
}

// F1: what is restored is what was there, and every number that may have been given out since is jumped over.
func TestRestoredIsAheadOfWhatWasLost(t *testing.T) {
	houses(t, func(t *testing.T, h *house) {
		h.exec(`INSERT INTO #events (event_id, version, state, body, sequence) VALUES (7, 3, 1, '{"HoldTTL":600000}', 4)`)
		h.exec(`INSERT INTO #seats_versions (event_id, version) VALUES (7, 41)`)
		h.exec(`INSERT INTO #seats (event_id, seat_index, state, claim_id, epoch) VALUES (7, 0, 0, 0, 5), (7, 1, 2, 99, 6)`)
		h.exec(`INSERT INTO #changes (event_id, version, body, at) VALUES (7, 41, '[]', 1)`)
		h.exec(`INSERT INTO #leases (name, holder, fence, until_at) VALUES ('outbox', 'somebody', 9, 99999999999999)`)
		h.exec(`INSERT INTO #history (event_id, claim_id, was, becomes, why, seats, at) VALUES (7, 99, '', 'live', '', '[[1,6]]', 1)`)
		body, err := decide.EncodeRoom(&ledger.Room{Event: 7, Phase: ledger.RoomWaiting, Commitment: "c", Lanes: []ledger.Lane{{Key: "general", HighWater: 500, Joined: 20}, {Key: "late", HighWater: ledger.RoomNumbersMax}}})
		must(t, err)
		h.exec(`INSERT INTO #rooms (event_id, version, body) VALUES (7, 3, '` + body + `')`)
		h.join(7, 1, 2, 3)
		h.join(8, 9)
		h.sell(1)
		node, err := h.people.ClaimNode(t.Context(), "lost", time.Hour)
		must(t, err)
		lost := node.Generator(func() time.Time { return time.Now().Add(30 * time.Second) }) // its clock is ahead of ours

		file := filepath.Join(t.TempDir(), "one.tar.gz")
		m, err := Make(t.Context(), h.options(file))
		must(t, err)
		if len(m.Keys) != 1 || m.Schemas[Shard] == 0 || m.Schemas[Control] == 0 || m.Kind != h.kind {
			t.Errorf("%+v", m)
		}
		last, err := lost.Next(0) // after the backup, which knows no high-water mark of it
		must(t, err)
		other, err := keys.NewMaster([]byte(strings.Repeat("x", keys.MasterBytes)))
		must(t, err)
		if err := m.CheckMaster(other); !errors.Is(err, keys.ErrSealed) {
			t.Errorf("E3: another master key is taken: %v", err)
		}
		if _, err := Make(t.Context(), h.options(file)); !errors.Is(err, ErrExists) {
			t.Errorf("a backup replaces another: %v", err)
		}

		r := h.restored(file)
		for query, want := range map[string]int64{
			`SELECT count(*) FROM #orders`:                                      1,
			`SELECT customer_id FROM #orders`:                                   1001,
			`SELECT sequence FROM #orders`:                                      2 + sequenceJump,
			`SELECT version FROM #seats_versions`:                               41 + versionJump,
			`SELECT count(*) FROM #changes`:                                     0,
			`SELECT epoch FROM #seats WHERE seat_index = 0`:                     5 + epochJump,
			`SELECT epoch FROM #seats WHERE seat_index = 1`:                     6, // named by its claim
			`SELECT fence FROM #leases`:                                         9 + fenceJump,
			`SELECT until_at FROM #leases`:                                      0,
			`SELECT version FROM #events`:                                       3,
			`SELECT count(*) FROM #events WHERE body LIKE '%"HoldTTL":600000%'`: 1,
			`SELECT sequence FROM #events`:                                      4 + sequenceJump,
			`SELECT count(*) FROM #clock WHERE now > 1700000000000`:             1,
		} {
			if got := r.number(query); got != want {
				t.Errorf("%s: %d, want %d", query, got, want)
			}
		}
		room, err := decide.DecodeRoom(r.text(`SELECT body FROM #rooms WHERE version = 4`), 7)
		must(t, err)
		if got, top := room.Lanes[0].HighWater, room.Lanes[1].HighWater; got != 500+numbersJump || top != ledger.RoomNumbersMax || room.Commitment != "c" || room.Lanes[0].Joined != 20 {
			t.Errorf("F1: numbers go on at %d and %d: %+v", got, top, room)
		}
		if got := fmt.Sprint(r.joins(7), r.joins(8)); got != "[1 2 3] [9]" {
			t.Errorf("joins are %s", got)
		}
		if left, err := r.people.Meta(t.Context(), MetaRestoring); err != nil || string(left) != m.ID {
			t.Errorf("nothing says that it is not finished: %q, %v", left, err)
		}
		r.exec(`INSERT INTO #history (event_id, claim_id, was, becomes, why, seats, at) VALUES (7, 99, 'live', 'sold', '', '[[1,6]]', 2)`)
		again, err := r.people.ClaimNode(t.Context(), "new", time.Hour)
		must(t, err)
		next, err := again.Generator(time.Now).Next(0)
		must(t, err)
		if next <= last {
			t.Errorf("A7: %d comes after %d", next, last)
		}
		if h.kind == Postgres && next.Time().Before(time.Now()) {
			t.Errorf("a node that has no row in the backup begins at %v", next.Time())
		}
		ring, err := keys.Load(t.Context(), r.people.Keys(), h.master, keys.Options{})
		must(t, err)
		if _, err := ring.Active(keys.Ticket); err != nil {
			t.Error(err)
		}
	})
}

// The shard is read before the control database: an order's customer is always there, whatever is written meanwhile.
func TestReferencesResolveUnderLoad(t *testing.T) {
	houses(t, func(t *testing.T, h *house) {
		stop := make(chan struct{})
		var sellers sync.WaitGroup
		sold := make(chan int, 100_000)
		sellers.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
					h.sell(n)
					sold <- n
				}
			}
		})
		for range 20 {
			<-sold // there is something
		}
		file := filepath.Join(t.TempDir(), "busy.tar.gz")
		o := h.options(file)
		o.reached = func(step string) {
			if step == Shard { // between the two databases a lot is sold
				for range 20 {
					<-sold
				}
			}
		}
		_, err := Make(t.Context(), o)
		close(stop)
		sellers.Wait()
		must(t, err)
		r := h.restored(file)
		count := r.number(`SELECT count(*) FROM #orders`)
		if count < 20 {
			t.Errorf("%d orders are there", count)
		}
		rows, err := r.shard.QueryContext(t.Context(), r.q(`SELECT customer_id FROM #orders`))
		must(t, err)
		defer rows.Close()
		for rows.Next() {
			var customer int64
			must(t, rows.Scan(&customer))
			if _, err := r.people.People().Profile(t.Context(), id.ID(customer)); err != nil {
				t.Fatalf("the customer of an order is missing: %v", err)
			}
		}
		must(t, rows.Err())
	})
}

// A killed backup leaves nothing under the file's name, and does not keep the next one from being made.
func TestKilledBackup(t *testing.T) {
	h := newHouse(t, SQLite)
	h.sell(1)
	file := filepath.Join(t.TempDir(), "killed.tar.gz")
	for _, step := range []string{Shard, Control, "gathered", "packed", "renamed"} {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childStep+"="+step, "ONSALE_TEST_BACKUP_FILE="+file, "ONSALE_TEST_BACKUP_DATA="+h.data)
		stdin, err := child.StdinPipe() // open: it waits
		must(t, err)
		out, err := child.StdoutPipe()
		must(t, err)
		must(t, child.Start())
		line := make([]byte, 200)
		n, _ := out.Read(line)
		if got := strings.TrimSpace(string(line[:n])); got != "at "+step {
			t.Errorf("the child says %q at %s", got, step)
		}
		if step == Shard { // it is under way
			if _, err := Make(t.Context(), h.options(file)); !errors.Is(err, ErrUnderWay) {
				t.Errorf("two make the same file: %v", err)
			}
		}
		must(t, child.Process.Kill())
		_ = child.Wait()
		_ = stdin.Close()
		_, err = os.Stat(file)
		if step != "renamed" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("killed at %s, there is half a file: %v", step, err)
		}
		if step == "renamed" {
			must(t, err) // it is whole
			must(t, os.Remove(file))
		}
	}
	_, err := Make(t.Context(), h.options(file))
	must(t, err)
	left, err := os.ReadDir(filepath.Dir(file))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("something is left beside the file: %v", left)
	}
	h.restored(file)
}

// Whatever is wrong with a file is found before anything is made of it.
func TestDamagedAndNewerBackups(t *testing.T) {
	h := newHouse(t, SQLite)
	h.sell(1)
	dir := t.TempDir()
	good := filepath.Join(dir, "good.tar.gz")
	m, err := Make(t.Context(), h.options(good))
	must(t, err)
	content, err := os.ReadFile(good)
	must(t, err)
	try := func(name string, content []byte) error {
		t.Helper()
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, content, 0o600))
		a, err := Open(path)
		if err != nil {
			return err
		}
		defer a.Close()
		if err := a.Manifest.CheckVersions(); err != nil {
			return err
		}
		return a.Unpack(t.Context(), t.TempDir())
	}
	must(t, try("same", content))
	for name, changed := range map[string][]byte{
		"empty": nil, "text": []byte("not a backup"), "head": content[:100], "half": content[:len(content)/2], "tail": content[:len(content)-1],
		"flipped": append(append(slices.Clone(content[:len(content)/2]), content[len(content)/2]^1), content[len(content)/2+1:]...),
	} {
		if err := try(name, changed); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	rewrite := func(name string, change func(m *Manifest)) error {
		t.Helper()
		scratch := t.TempDir()
		a, err := Open(good)
		must(t, err)
		must(t, a.Unpack(t.Context(), scratch))
		must(t, a.Close())
		other := m
		other.Parts = slices.Clone(m.Parts)
		other.Schemas = map[string]int64{Shard: m.Schemas[Shard], Control: m.Schemas[Control]}
		path := filepath.Join(dir, name)
		change(&other)
		must(t, pack(path, &other, scratch))
		content, err := os.ReadFile(path)
		must(t, err)
		return try(name+".again", content)
	}
	if err := rewrite("format", func(m *Manifest) { m.Format++ }); !errors.Is(err, ErrNewer) {
		t.Errorf("D5: a newer format is taken: %v", err)
	}
	if err := rewrite("schema", func(m *Manifest) { m.Schemas[Control] += 100 }); !errors.Is(err, ErrNewer) {
		t.Errorf("F3: a newer schema is taken: %v", err)
	}
	if err := rewrite("missing", func(m *Manifest) { m.Parts = m.Parts[:1] }); !errors.Is(err, ErrDamaged) {
		t.Errorf("a backup without its control database is taken: %v", err)
	}
}

// What comes out of a tar is no path of its choice.
func TestPartNamesStayInside(t *testing.T) {
	base := Manifest{Format: 1, ID: strings.Repeat("a", 16), Kind: Postgres, Began: time.Now(), Ended: time.Now()}
	for _, name := range []string{"../x", "/etc/x", `..\x`, manifestName, "", "a/../../x"} {
		m := base
		m.Parts = []Part{{Name: name}}
		if err := m.check(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q is taken: %v", name, err)
		}
	}
}

// A restore into PostgreSQL that was interrupted leaves nothing under the schemas' names, and can be repeated.
func TestInterruptedFillOfPostgres(t *testing.T) {
	h := newHouse(t, Postgres)
	h.sell(1)
	file := filepath.Join(t.TempDir(), "one.tar.gz")
	m, err := Make(t.Context(), h.options(file))
	must(t, err)
	a, err := Open(file)
	must(t, err)
	defer a.Close()
	dir := t.TempDir()
	must(t, a.Unpack(t.Context(), dir))
	into := pgserver.DatabaseForTest(t)
	path := filepath.Join(dir, "control", "customers.copy")
	content, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, []byte("x\n"), 0o600)) // it fails in the middle of the second schema
	if err := FillPostgres(t.Context(), &m, dir, into, Jump{Now: time.Now(), Backup: m.ID}); err == nil {
		t.Fatal("nonsense was taken")
	}
	if resumed, err := CheckEmptyPostgres(t.Context(), into, m.ID); err != nil || resumed {
		t.Fatalf("something is there: %v, %v", resumed, err)
	}
	must(t, os.WriteFile(path, content, 0o600))
	must(t, FillPostgres(t.Context(), &m, dir, into, Jump{Now: time.Now(), Backup: m.ID}))
	if resumed, err := CheckEmptyPostgres(t.Context(), into, m.ID); err != nil || !resumed {
		t.Errorf("it cannot be gone on with: %v, %v", resumed, err)
	}
	if _, err := CheckEmptyPostgres(t.Context(), into, "another"); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("another backup is restored over it: %v", err)
	}
	if _, err := CheckEmptyPostgres(t.Context(), h.url, m.ID); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a backup is restored over a house: %v", err)
	}
}
