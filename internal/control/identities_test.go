package control

import (
	"context"
	"errors"
	"net/url"
	"path"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/pgserver"
	"onsale/internal/sqlmigrate"
)

// I13: who signs in for the first time while the database stands still is told to come back, once enough are waiting.
func TestI13NewCustomersWaitInABoundedQueue(t *testing.T) {
	db, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stuck, err := db.write.Conn(t.Context()) // the only one
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	put := func(ctx context.Context, number id.ID) error {
		_, err := db.Identities().PutCustomer(ctx, identity.Named{Issuer: "house", Sub: number.Text("sub")}, number)
		return err
	}
	for number := range id.ID(identityWaitingMax) {
		if err := put(gone, number+1); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	// One batch is being worked on; what it took from the queue has made room.
	var refused error
	for number := range id.ID(identityBatchMax + 1) {
		if refused = put(gone, identityWaitingMax+number+1); fault.CodeOf(refused) == fault.Busy {
			break
		}
	}
	if fault.CodeOf(refused) != fault.Busy {
		t.Errorf("I13: %d wait, and another may: %v", identityWaitingMax, refused)
	}
	if err := stuck.Close(); err != nil {
		t.Fatal(err)
	}
	for err = errors.New("not yet"); err != nil; { // the queue empties, and all is as before
		err = put(t.Context(), 1<<40)
		if err != nil && fault.CodeOf(err) != fault.Busy {
			t.Fatal(err)
		}
	}
}

// An installation of the first release has migration 1 alone, and people in it.
func TestPeopleOfTheFirstReleaseStay(t *testing.T) {
	address, file := pgserver.DatabaseForTest(t), filepath.Join(t.TempDir(), "control.db")
	for dialect, open := range map[sqlmigrate.Dialect]struct{ old, now func() (*DB, error) }{
		sqlmigrate.SQLite: {func() (*DB, error) {
			write, err := openFile(file, url.Values{})
			return &DB{dialect: sqlmigrate.SQLite, write: write, read: write, now: time.Now}, err
		}, func() (*DB, error) { return OpenSQLite(t.Context(), file) }},
		sqlmigrate.Postgres: {func() (*DB, error) {
			pool, err := connect(address, 2)
			return &DB{dialect: sqlmigrate.Postgres, write: pool, read: pool, now: time.Now}, err
		}, func() (*DB, error) { return OpenPostgres(t.Context(), PostgresOptions{URL: address}) }},
	} {
		t.Run(string(dialect), func(t *testing.T) {
			const first = "00001_control.sql"
			text, err := files.ReadFile(path.Join("migrations", string(dialect), first))
			if err != nil {
				t.Fatal(err)
			}
			old, err := open.old()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sqlmigrate.Up(t.Context(), old.write, dialect, old.schema(), fstest.MapFS{first: {Data: text}}); err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{
				`INSERT INTO {customers} (id, created_ms) VALUES (7, 1800000000000)`,
				`INSERT INTO {identities} (issuer, sub, customer_id, created_ms) VALUES ('https://house.example', 'ann', 7, 1800000000000)`,
			} {
				if err := old.exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			if err := old.write.Close(); err != nil {
				t.Fatal(err)
			}
			now, err := open.now()
			if err != nil {
				t.Fatal(err)
			}
			defer now.Close()
			customer, err := now.People().PutCustomer(t.Context(), identity.Named{Issuer: "https://house.example", Sub: "ann", Email: "ann@example.com"}, 8)
			if err != nil || customer != 7 {
				t.Fatal(customer, err)
			}
			p, err := now.People().Profile(t.Context(), 7)
			if err != nil || p.Email() != "ann@example.com" || p.Name != "" || !p.Erased.IsZero() || p.Created.UnixMilli() != 1_800_000_000_000 {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

// E5: somebody who becomes the only owner while they are being erased is the last owner all the same.
func TestE5TheLastOwnerIsNotErasedOnTheWay(t *testing.T) {
	db, err := OpenPostgres(t.Context(), PostgresOptions{URL: pgserver.DatabaseForTest(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, people := t.Context(), db.People()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var entries int64
	role := func(customer, organizer id.ID, role identity.Role) error {
		entries++
		return people.PutRole(ctx, identity.Membership{Customer: customer, Organizer: organizer, Role: role, Since: time.Now()},
			identity.Entry{ID: id.ID(entries), At: time.Now(), Action: "role.set"})
	}
	for organizer := range id.ID(2) {
		_, err := db.Catalog().EnsureOrganizer(ctx, catalog.Organizer{ID: organizer + 1, Key: organizer.Text("key"), Name: "An organizer"})
		do(err)
	}
	for customer, address := range map[id.ID]identity.Email{1: "ann@example.com", 2: "bob@example.com"} {
		_, err := people.PutCustomer(ctx, identity.Named{Issuer: identity.EmailIssuer, Sub: string(address), Email: address}, customer)
		do(err)
	}
	do(role(1, 1, identity.Viewer))
	do(role(2, 2, identity.Owner))

	// The erasure has read Ann's roles and waits for the first organizer, while she follows Bob at the second.
	lock, err := db.write.BeginTx(ctx, nil)
	do(err)
	_, err = lock.ExecContext(ctx, db.q(`SELECT id FROM {organizers} WHERE id = 1 FOR UPDATE`))
	do(err)
	erased := make(chan error, 1)
	go func() { erased <- people.EraseCustomer(context.WithoutCancel(ctx), 1, time.Now(), false) }()
	for waits := false; !waits; {
		do(db.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits))
	}
	do(role(1, 2, identity.Owner))
	entries++
	do(people.RemoveRole(ctx, 2, 2, identity.Entry{ID: id.ID(entries), At: time.Now(), Action: "role.remove"}))
	do(lock.Rollback())
	if err := <-erased; !errors.Is(err, identity.ErrLastOwner) {
		t.Errorf("E5: the last owner was erased: %v", err)
	}
}
