package control

import (
	"database/sql"
	"errors"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"

	"onsale/internal/fault"
)

// A database that cannot be reached is busy, not broken: clients come back with the same request.
func TestAway(t *testing.T) {
	db, err := sql.Open("pgx", "host="+t.TempDir()+" user=nobody dbname=none")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "SELECT 1")
	if got := wrap("asking", err); fault.CodeOf(got) != fault.Busy || !errors.Is(got, err) {
		t.Errorf("a database that is not there: %v", got)
	}
	for _, other := range []error{errors.New("something else"), sql.ErrNoRows, sql.ErrTxDone} {
		if got := wrap("asking", other); fault.CodeOf(got) == fault.Busy {
			t.Errorf("%v became busy", other)
		}
	}
}
