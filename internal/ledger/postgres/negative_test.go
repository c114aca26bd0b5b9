//go:build negativecontrol

package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"onsale/internal/ledger/ledgertest"
	"onsale/internal/ledger/postgres"
	"onsale/internal/pgserver"
)

func TestNegativeControls(t *testing.T) {
	database := pgserver.DatabaseForTest(t)
	ledgertest.Negative(t, func(t *testing.T, clock *ledgertest.Clock) ledgertest.Harness {
		h := harness(t, postgres.Options{URL: database, Now: clock.Now})
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, database)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, `DROP INDEX IF EXISTS shard.orders_one_per_hold, shard.tickets_one_per_seat, shard.sessions_number, shard.wishes_one_open`); err != nil {
			t.Fatal(err)
		}
		return h
	})
}
