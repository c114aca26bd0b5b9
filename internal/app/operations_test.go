package app

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"onsale/internal/audit"
	"onsale/internal/backup"
	"onsale/internal/id"
	"onsale/internal/keys"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/payment/sandbox"
	"onsale/internal/pgserver"
	"onsale/internal/ticket"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// copyFile copies a file to where it is not yet; what is not there is not copied.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(to), 0o700))
	must(t, os.WriteFile(to, content, 0o600))
}

// audited recomputes the promises of a folder, with the sandbox's books.
func audited(t testing.TB, s Settings) audit.Report {
	t.Helper()
	var source *audit.Source
	var err error
	if s.Ledger == Postgres {
		source, err = audit.OpenPostgres(s.PostgresURL)
	} else {
		source, err = audit.OpenSQLite(filepath.Join(s.Data, ShardFile))
	}
	must(t, err)
	defer source.Close()
	books, err := sandbox.ReadBooks(filepath.Join(s.Data, SandboxFile))
	must(t, err)
	defer books.Close()
	report, err := audit.Run(t.Context(), source, audit.Options{Provider: books})
	must(t, err)
	if !report.OK() {
		var text strings.Builder
		must(t, report.Render(&text))
		t.Errorf("the audit is broken:\n%s", text.String())
	}
	return report
}

// A crowd buys all the time, until it is told to stop.
type crowd struct {
	mu     sync.Mutex
	booked []string // customers whose booking was answered
	stop   chan struct{}
	all    sync.WaitGroup
	bought chan struct{}
}

func (p *program) crowd(event string, name string, buyers int) *crowd {
	c := &crowd{stop: make(chan struct{}), bought: make(chan struct{}, 100_000)}
	for b := range buyers {
		c.all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-c.stop:
					return
				default:
				}
				customer := fmt.Sprintf("%s%d-%d", name, b, n)
				var h, o answer
				if status, err := try(p.t, p.app.Throwaway, customer, "POST", p.public+"/v1/holds", best(event, 2), &h); err != nil || status != 201 {
					continue
				}
				body := fmt.Sprintf(`{"hold_id":%q,"payment_token":"tok_sure"}`, h.Hold)
				if status, err := try(p.t, p.app.Throwaway, customer, "POST", p.public+"/v1/bookings", body, &o); err != nil || status != 201 {
					continue
				}
				c.mu.Lock()
				c.booked = append(c.booked, customer)
				c.mu.Unlock()
				c.bought <- struct{}{}
			}
		})
	}
	return c
}

// wait lets n more bookings come about.
func (c *crowd) wait(t testing.TB, n int) {
	t.Helper()
	deadline := time.After(wait)
	for range n {
		select {
		case <-c.bought:
		case <-deadline:
			t.Fatal("nobody buys")
		}
	}
}

func (c *crowd) end() []string {
	close(c.stop)
	c.all.Wait()
	return c.booked
}

// lostAndFound is a house that was backed up while it sold, went on selling, and was lost: what is left of it is the
// backup, the master key and the provider's books.
func lostAndFound(t *testing.T, s Settings, since func(p *program, before []string)) (file string, before, all []string) {
	t.Helper()
	s.DemoSeats = 4_000
	p := start(t, s)
	event := p.event()
	c := p.crowd(event, "buyer", 4)
	c.wait(t, 20)
	c.mu.Lock()
	before = slices.Clone(c.booked)
	c.mu.Unlock()
	file = filepath.Join(t.TempDir(), "backup.tar.gz")
	m, err := Backup(t.Context(), s, file)
	must(t, err)
	if m.Kind != backupKind(s) {
		t.Errorf("%+v", m)
	}
	c.wait(t, 20)
	all = c.end()
	since(p, before)
	p.stop()
	return file, before, all
}

// Money that went back after the backup: all of a booking's is given back here, too, without being paid twice; a part of it
// is for somebody to look at.
func TestRefundsSinceTheBackup(t *testing.T) {
	s, into := settings(folder(t)), settings(folder(t))
	file, before, _ := lostAndFound(t, s, func(p *program, before []string) { backSinceBackup(t, p, before) })
	for _, name := range []string{masterFile, SandboxFile, SandboxFile + "-wal", "throwaway-issuer.key"} {
		copyFile(t, filepath.Join(s.Data, name), filepath.Join(into.Data, name))
	}
	report, err := Restore(t.Context(), into, RestoreOptions{File: file})
	must(t, err)
	m := report.Money
	if m.Counts["rebuilt"] != 1 || m.Counts["refunded_since"] != 1 || len(m.Refunded) != 1 || m.Refunded[0].Amount*2 != m.Rebuilt[0].Amount {
		t.Errorf("rebuilt %v, listed %v", m.Rebuilt, m.Refunded)
	}
	p := start(t, into)
	for i, want := range []string{"REFUNDED", "PAID", "PAID"} {
		var a answer
		p.ask(before[i], "GET", "/v1/bookings", "", &a)
		if len(a.Bookings) != 1 || a.Bookings[0].State != want {
			t.Fatalf("%s has %+v, want %s", before[i], a.Bookings, want)
		}
		payments, err := p.app.Provider.Lookup(t.Context(), a.Bookings[0].ID)
		must(t, err)
		if got, want := payments[0].RefundedMinor, payments[0].CapturedMinor/[]int64{1, 2, 1 << 40}[i]; got != want {
			t.Errorf("%d went back to %s, not %d", got, before[i], want)
		}
	}
	p.stop()
}

// backSinceBackup gives money back that the backup has as taken: all of one booking's, a part of another's.
func backSinceBackup(t *testing.T, p *program, customers []string) {
	t.Helper()
	until(t, "captures", func() bool { return captured(t, p) })
	for i, share := range []int64{1, 2} {
		var a answer
		p.ask(customers[i], "GET", "/v1/bookings", "", &a)
		payments, err := p.app.Provider.Lookup(t.Context(), a.Bookings[0].ID)
		must(t, err)
		number, err := p.app.NewID(0)
		must(t, err)
		_, err = p.app.Provider.(payment.Refunder).Refund(t.Context(), payments[0].ID, number.Text(id.Refund), payments[0].CapturedMinor/share)
		must(t, err)
	}
}

// F1: a backup made while tickets are sold is restored elsewhere: the audit is right, money that came since goes back, and
// the house sells on.
func TestRestoreOfABackupUnderLoad(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { restoreUnderLoad(t, settings(folder(t)), settings(folder(t))) })
	t.Run("postgres", func(t *testing.T) {
		from, to := settings(folder(t)), settings(folder(t))
		from.Ledger, from.PostgresURL = Postgres, pgserver.DatabaseForTest(t)
		to.Ledger, to.PostgresURL = Postgres, pgserver.DatabaseForTest(t)
		restoreUnderLoad(t, from, to)
	})
}

func restoreUnderLoad(t *testing.T, s, into Settings) {
	file, before, all := lostAndFound(t, s, func(*program, []string) {})
	for _, name := range []string{masterFile, SandboxFile, SandboxFile + "-wal", "throwaway-issuer.key"} {
		copyFile(t, filepath.Join(s.Data, name), filepath.Join(into.Data, name))
	}
	report, err := Restore(t.Context(), into, RestoreOptions{File: file})
	must(t, err)
	if !report.Sound || report.Resumed || !report.Money.Listed || len(report.Paused) != 2 { // the demo's two events
		t.Errorf("sound %v, resumed %v, listed %v, paused %v", report.Sound, report.Resumed, report.Money.Listed, report.Paused)
	}
	lost := report.Money.Counts["unknown"]
	if lost < 20-4 || lost > len(all)-len(before) || report.Money.GivenBackFrom.IsZero() {
		t.Errorf("%d payments of bookings that are lost; %d bookings were answered after the backup began: %+v", lost, len(all)-len(before), report.Money.GivenBackFrom)
	}
	audited(t, into) // unknown money has an hour
	for _, row := range report.Money.Settled {
		if row.State != "PAID" {
			t.Errorf("a booking whose payment came after the backup: %+v", row)
		}
	}

	into.DemoSeats = 4_000
	p := start(t, into)
	for _, customer := range before { // what was answered before the backup is there
		var a answer
		if status := p.ask(customer, "GET", "/v1/bookings", "", &a); status != 200 || len(a.Bookings) != 1 || a.Bookings[0].State != "PAID" {
			t.Fatalf("I8: %s has %d %+v", customer, status, a.Bookings)
		}
	}
	event := p.event()
	var h answer
	if status := p.ask("new", "POST", "/v1/holds", best(event, 1), &h); status != 409 || h.Code != "paused" {
		t.Errorf("it sells before somebody has looked: %d %+v", status, h)
	}
	c := dialed(t, into)
	var shown AdminEvent
	must(t, c.Call(t.Context(), "POST", "/events/"+event+"/resume", nil, &shown))
	must(t, c.Close())
	again := p.crowd(event, "later", 4)
	again.wait(t, 20)
	again.end()
	p.stop()
	audited(t, into)

	// An hour later: the dead letters are due.
	shift(t, into, `UPDATE #webhooks SET at = at - 7200000 WHERE dead = 1`)
	p = start(t, into)
	until(t, "giving back what nobody has bookings for", func() bool {
		// A webhook that only comes now is a dead letter of its own, with an hour of its own.
		left, err := p.app.Store.DeadWebhooks(t.Context(), ledger.TimeOf(time.Now().Add(-time.Hour)), 1000)
		must(t, err)
		return len(left) == 0
	})
	p.stop()
	audited(t, into)
	back := 0
	books, err := sandbox.ReadBooks(filepath.Join(into.Data, SandboxFile))
	must(t, err)
	defer books.Close()
	for cursor := ""; ; {
		page, err := books.List(t.Context(), cursor)
		must(t, err)
		for _, pay := range page.Payments {
			if leftOf(&pay) == 0 {
				back++
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if back != lost {
		t.Errorf("%d payments went back, not %d", back, lost)
	}
}

func dialed(t testing.TB, s Settings) *Client {
	t.Helper()
	c, err := Dial(t.Context(), s)
	must(t, err)
	return c
}

// shift changes rows of a shard that nobody has open.
func shift(t testing.TB, s Settings, statement string) {
	t.Helper()
	driver, from, prefix := "sqlite", "file:"+filepath.Join(s.Data, ShardFile), ""
	if s.Ledger == Postgres {
		driver, from, prefix = "pgx", s.PostgresURL, "shard."
	}
	db, err := sql.Open(driver, from)
	must(t, err)
	_, err = db.Exec(strings.ReplaceAll(statement, "#", prefix))
	must(t, errors.Join(err, db.Close()))
}

// A restore that is interrupted anywhere is noticed, keeps everything else away, and is repeated.
func TestInterruptedRestore(t *testing.T) {
	s := settings(folder(t))
	p := start(t, s)
	event := p.event()
	c := p.crowd(event, "buyer", 2)
	c.wait(t, 3)
	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	_, err := Backup(t.Context(), s, file)
	must(t, err)
	c.end()
	p.stop()
	other := filepath.Join(t.TempDir(), "other.tar.gz")
	_, err = Backup(t.Context(), s, other)
	must(t, err)

	into := settings(folder(t))
	copyFile(t, filepath.Join(s.Data, masterFile), filepath.Join(into.Data, masterFile))
	power := errors.New("the power is off")
	for _, at := range []string{"begun", "unpacked", "filled", "placed " + controlFile, "placed " + ShardFile, "placed " + JoinsFolder, "erased", "compared", "unmarked"} {
		_, err := Restore(t.Context(), into, RestoreOptions{File: file, reached: func(step string) error {
			if step == at {
				return power
			}
			return nil
		}})
		if !errors.Is(err, power) {
			t.Fatalf("at %s: %v", at, err)
		}
		if a, err := Open(t.Context(), into); !errors.Is(err, ErrRestoring) {
			t.Errorf("after %s the folder opens: %v, %v", at, a, err)
		}
		if _, err := Backup(t.Context(), into, filepath.Join(t.TempDir(), "x")); !errors.Is(err, ErrRestoring) {
			t.Errorf("after %s it is backed up: %v", at, err)
		}
		if _, err := Restore(t.Context(), into, RestoreOptions{File: other}); !errors.Is(err, backup.ErrNotEmpty) {
			t.Errorf("after %s another backup is restored over it: %v", at, err)
		}
	}
	report, err := Restore(t.Context(), into, RestoreOptions{File: file})
	must(t, err)
	if !report.Resumed || !report.Sound {
		t.Errorf("resumed %v, sound %v", report.Resumed, report.Sound)
	}
	audited(t, into)
	if _, err := Restore(t.Context(), into, RestoreOptions{File: file}); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("a house is restored over: %v", err)
	}
	p = start(t, into)
	p.stop()
	left, err := os.ReadDir(into.Data)
	must(t, err)
	for _, e := range left {
		if strings.HasPrefix(e.Name(), "restoring") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// With PostgreSQL the mark of an unfinished restore lies in the database and in the folder: the step between taking away
// the one and the other is repeated, too.
func TestRestoreInterruptedAtItsLastStep(t *testing.T) {
	s, into := settings(folder(t)), settings(folder(t))
	for _, of := range []*Settings{&s, &into} {
		of.Ledger, of.PostgresURL = Postgres, pgserver.DatabaseForTest(t)
	}
	a, err := Open(t.Context(), s)
	must(t, err)
	must(t, a.Close(t.Context()))
	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	_, err = Backup(t.Context(), s, file)
	must(t, err)
	copyFile(t, filepath.Join(s.Data, masterFile), filepath.Join(into.Data, masterFile))
	power := errors.New("the power is off")
	if _, err := Restore(t.Context(), into, RestoreOptions{File: file, reached: func(step string) error {
		if step == "unmarked" {
			return power
		}
		return nil
	}}); !errors.Is(err, power) {
		t.Fatal(err)
	}
	report, err := Restore(t.Context(), into, RestoreOptions{File: file})
	must(t, err)
	if !report.Resumed {
		t.Error("it began anew")
	}
	a, err = Open(t.Context(), into)
	must(t, err)
	must(t, a.Close(t.Context()))
}

// What cannot be restored is refused before anything is touched.
func TestRefusedRestores(t *testing.T) {
	s := settings(folder(t))
	a, err := Open(t.Context(), s)
	must(t, err)
	must(t, a.Close(t.Context()))
	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	_, err = Backup(t.Context(), s, file)
	must(t, err)
	another := settings(folder(t))
	a, err = Open(t.Context(), another)
	must(t, err)
	must(t, a.Close(t.Context()))
	full := settings(folder(t))
	copyFile(t, filepath.Join(s.Data, masterFile), filepath.Join(full.Data, masterFile))
	must(t, os.WriteFile(filepath.Join(full.Data, "notes.txt"), nil, 0o600))
	elsewhere := settings(folder(t))
	copyFile(t, filepath.Join(s.Data, masterFile), filepath.Join(elsewhere.Data, masterFile))
	wrong := settings(folder(t))
	copyFile(t, filepath.Join(another.Data, masterFile), filepath.Join(wrong.Data, masterFile))
	postgres := elsewhere
	postgres.Ledger, postgres.PostgresURL = Postgres, "postgres://127.0.0.1:1/x"
	for name, c := range map[string]struct {
		s    Settings
		o    RestoreOptions
		says string
	}{
		"no master key":        {settings(folder(t)), RestoreOptions{File: file}, "never in a backup: put the copy"},
		"another master key":   {wrong, RestoreOptions{File: file}, "the master key is not the one of this backup"},
		"a folder with a file": {full, RestoreOptions{File: file}, "has notes.txt; name an empty folder"},
		"a house":              {s, RestoreOptions{File: file}, "name an empty folder"},
		"another database":     {postgres, RestoreOptions{File: file}, "--ledger sqlite"},
		"no such list":         {elsewhere, RestoreOptions{File: file, Erasures: []string{"/nowhere"}}, "--erasures /nowhere"},
		"another file as list": {elsewhere, RestoreOptions{File: file, Erasures: []string{filepath.Join(s.Data, masterFile)}}, "is neither a list of erasures"},
		"no backup":            {elsewhere, RestoreOptions{File: filepath.Join(s.Data, masterFile)}, "the backup is damaged"},
	} {
		_, err := Restore(t.Context(), c.s, c.o)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if _, err := os.Stat(filepath.Join(c.s.Data, restoringFile)); err == nil {
			t.Errorf("%s: it was begun", name)
		}
	}
}

// E3: a new key signs from now on, what the old one signed still verifies, and both are shown; a running server knows it at
// once, and what was derived from keys lives through a restart.
func TestKeysRotate(t *testing.T) {
	s := settings(folder(t))
	p := start(t, s)
	event := p.event()
	buy := func(p *program, who string) string {
		t.Helper()
		var h answer
		var b struct {
			Tickets []struct {
				ID string `json:"ticket_id"`
			} `json:"tickets"`
		}
		p.ask(who, "POST", "/v1/holds", best(event, 1), &h)
		if status := p.ask(who, "POST", "/v1/bookings", fmt.Sprintf(`{"hold_id":%q,"payment_token":"tok_sure"}`, h.Hold), &b); status != 201 || len(b.Tickets) != 1 {
			t.Fatalf("%d %+v", status, b)
		}
		var shown struct {
			QR string `json:"qr_text"`
		}
		if status := p.ask(who, "GET", "/v1/tickets/"+b.Tickets[0].ID, "", &shown); status != 200 || shown.QR == "" {
			t.Fatalf("%d %+v", status, shown)
		}
		return shown.QR
	}
	old := buy(p, "ann")
	c := dialed(t, s)
	var before, after []AdminKey
	must(t, c.Call(t.Context(), "GET", "/keys", nil, &before))
	must(t, c.Call(t.Context(), "POST", "/keys/rotate", RotateRequest{}, &after))
	count := func(all []AdminKey, purpose keys.Purpose, state keys.State) (n int) {
		for _, k := range all {
			if k.Purpose == string(purpose) && k.State == string(state) {
				n++
			}
		}
		return n
	}
	for _, purpose := range []keys.Purpose{keys.Ticket, keys.TicketTest, keys.Webhook} {
		if count(after, purpose, keys.Active) != 1 || count(after, purpose, keys.Public) != 1 {
			t.Errorf("%s: %+v", purpose, after)
		}
	}
	if count(after, keys.Idempotency, keys.Public) != 0 {
		t.Error("what cannot be found again was rotated")
	}
	must(t, c.Call(t.Context(), "POST", "/keys/rotate", RotateRequest{Purpose: "ticket"}, &after))
	if count(after, keys.Ticket, keys.Public) != 2 || count(after, keys.Webhook, keys.Public) != 1 {
		t.Errorf("%+v", after)
	}
	for purpose, says := range map[string]string{"idempotency": "cannot be rotated", "coffee": "no key for"} {
		if err := c.Call(t.Context(), "POST", "/keys/rotate", RotateRequest{Purpose: purpose}, &after); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", purpose, err)
		}
	}
	must(t, c.Close())
	young := buy(p, "ben")
	public := ticket.CheckingKeys(p.app.Keys)
	for name, qr := range map[string]string{"old": old, "new": young} {
		if _, err := ticket.Verify(qr, public); err != nil {
			t.Errorf("the %s ticket: %v", name, err)
		}
	}
	for _, key := range p.app.Keys.Checking(keys.TicketTest) {
		if !strings.Contains(jwks(t, p), key.KID) {
			t.Errorf("%s is not shown", key.KID)
		}
	}
	until(t, "capture", func() bool { return captured(t, p) })
	p.stop()
	p = start(t, s) // the sandbox's books know their clients by a key, and webhooks are signed by another now
	buy(p, "cyd")
	until(t, "capture", func() bool { return captured(t, p) })
	if _, err := ticket.Verify(old, ticket.CheckingKeys(p.app.Keys)); err != nil {
		t.Error(err)
	}
	p.stop()
	audited(t, s)
}

func jwks(t testing.TB, p *program) string {
	t.Helper()
	var set json.RawMessage
	if status := ask(t, nil, "", "GET", p.public+"/.well-known/jwks.json", "", &set); status != 200 {
		t.Fatalf("status %d", status)
	}
	return string(set)
}

func captured(t testing.TB, p *program) bool {
	t.Helper()
	open, err := p.app.Store.OpenPayments(t.Context(), 10)
	must(t, err)
	return len(open) == 0
}
