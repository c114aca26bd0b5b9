package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"onsale/internal/ledger"
	"onsale/internal/ledger/ledgertest"
	"onsale/internal/ledger/sqlite"
)

// The suite that every ledger must pass. Reopen is a kill -9 between batches: the files are copied while the old ledger
// still has them open, and the copy is what the next program finds.
func TestConformance(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.db") // made once: making a schema takes longer than most scenarios
	if err := open(t, empty, ledgertest.NewClock(0)).Close(); err != nil {
		t.Fatal(err)
	}
	ledgertest.Exercise(t, func(t *testing.T, clock *ledgertest.Clock) ledgertest.Harness {
		path := filepath.Join(t.TempDir(), "ledger.db")
		copyFile(t, empty, path)
		l := open(t, path, clock)
		return ledgertest.Harness{
			Ledger: l,
			Reopen: func() ledger.Ledger {
				next := filepath.Join(t.TempDir(), "ledger.db")
				copyFile(t, path, next)
				copyFile(t, path+"-wal", next+"-wal")
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				path, l = next, open(t, next, clock)
				return l
			},
		}
	})
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string, clock *ledgertest.Clock) *sqlite.Ledger {
	t.Helper()
	l, err := sqlite.Open(context.Background(), path, sqlite.Options{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
