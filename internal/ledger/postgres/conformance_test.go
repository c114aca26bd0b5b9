package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"onsale/internal/ledger"
	"onsale/internal/ledger/ledgertest"
	"onsale/internal/ledger/postgres"
	"onsale/internal/pgserver"
)

func TestMain(m *testing.M) { pgserver.Main(m) }

// open opens a ledger; Exercise closes it.
func open(t testing.TB, o postgres.Options) *postgres.Ledger {
	t.Helper()
	l, err := postgres.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestConformance(t *testing.T) {
	database := pgserver.DatabaseForTest(t)
	ledgertest.Exercise(t, func(t *testing.T, clock *ledgertest.Clock) ledgertest.Harness {
		return harness(t, postgres.Options{URL: database, Now: clock.Now})
	})
}

// harness opens a ledger on an emptied database: making one for each scenario would take longer than the scenarios.
func harness(t *testing.T, o postgres.Options) ledgertest.Harness {
	empty(t, o.URL)
	l := open(t, o)
	return ledgertest.Harness{
		Ledger: l,
		Reopen: func() ledger.Ledger {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l = open(t, o)
			return l
		},
		Another:       func() ledger.Ledger { return open(t, o) },
		WaitsForClock: true,
	}
}

// empty deletes every row of a shard, where there is one yet.
func empty(t *testing.T, database string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'shard' AND tablename NOT IN ('clock', 'goose_db_version') LOOP
			EXECUTE 'DELETE FROM shard.' || name;
		END LOOP;
		IF to_regclass('shard.clock') IS NOT NULL THEN UPDATE shard.clock SET now = 0; END IF;
	END $$`)
	if err != nil {
		t.Fatal(err)
	}
}
