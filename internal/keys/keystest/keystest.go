// Package keystest has the contract of keys.Store as tests, and a store in memory for tests of those who use keys.
//
// Start reading at Exercise.
package keystest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"onsale/internal/keys"
)

// Memory is a keys.Store in memory. Its zero value is empty and ready.
type Memory struct {
	mu      sync.Mutex
	records []keys.Record
}

var _ keys.Store = (*Memory)(nil)

// List implements keys.Store.
func (m *Memory) List(context.Context) ([]keys.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Clone(m.records)
	for i := range all {
		all[i].Sealed = bytes.Clone(all[i].Sealed)
	}
	slices.SortFunc(all, func(a, b keys.Record) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.KID, b.KID))
	})
	return all, nil
}

// Insert implements keys.Store.
func (m *Memory) Insert(_ context.Context, r keys.Record, replaces string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	active := -1
	for i, k := range m.records {
		if k.KID == r.KID {
			return fmt.Errorf("keystest: %s exists", r.KID)
		}
		if k.Purpose == r.Purpose && k.State == keys.Active {
			active = i
		}
	}
	if active < 0 && replaces != "" || active >= 0 && m.records[active].KID != replaces {
		return keys.ErrReplaced
	}
	if active >= 0 {
		m.records[active].State = keys.Public
	}
	r.Sealed = bytes.Clone(r.Sealed)
	m.records = append(m.records, r)
	return nil
}

// Exercise runs the contract on empty stores that open makes.
func Exercise(t *testing.T, open func(t *testing.T) keys.Store) {
	at := time.Date(2026, 5, 1, 10, 0, 0, int(123*time.Millisecond), time.UTC)
	record := func(kid string, purpose keys.Purpose, after time.Duration) keys.Record {
		return keys.Record{KID: kid, Purpose: purpose, Algorithm: keys.Ed25519, State: keys.Active, CreatedAt: at.Add(after),
			Sealed: []byte("sealed \x00\xff " + kid)}
	}
	want := func(t *testing.T, s keys.Store, all ...keys.Record) {
		t.Helper()
		got, err := s.List(t.Context())
		if err != nil || len(got) != len(all) {
			t.Fatalf("list: %v, %v; want %d", got, err, len(all))
		}
		for i := range got {
			g, w := got[i], all[i]
			if g.KID != w.KID || g.Purpose != w.Purpose || g.Algorithm != w.Algorithm || g.State != w.State ||
				!g.CreatedAt.Equal(w.CreatedAt) || !bytes.Equal(g.Sealed, w.Sealed) {
				t.Fatalf("record %d: %+v, want %+v", i, g, w)
			}
		}
	}

	t.Run("insert and replace", func(t *testing.T) {
		s := open(t)
		want(t, s)
		a, b, other := record("AAAAAAAA", keys.Ticket, 0), record("BBBBBBBB", keys.Ticket, time.Millisecond), record("CCCCCCCC", keys.Queue, 0)
		if err := s.Insert(t.Context(), b, "AAAAAAAA"); !errors.Is(err, keys.ErrReplaced) {
			t.Fatalf("replace a key that is not there: %v", err)
		}
		want(t, s)
		for _, r := range []keys.Record{a, other} {
			if err := s.Insert(t.Context(), r, ""); err != nil {
				t.Fatal(err)
			}
		}
		want(t, s, a, other)
		for _, replaces := range []string{"", "CCCCCCCC", "BBBBBBBB"} {
			if err := s.Insert(t.Context(), b, replaces); !errors.Is(err, keys.ErrReplaced) {
				t.Fatalf("second active key in place of %q: %v", replaces, err)
			}
		}
		want(t, s, a, other)
		if err := s.Insert(t.Context(), b, a.KID); err != nil {
			t.Fatal(err)
		}
		a.State = keys.Public
		want(t, s, a, other, b)
		twice := record("AAAAAAAA", keys.Ticket, 2*time.Millisecond)
		if err := s.Insert(t.Context(), twice, b.KID); err == nil {
			t.Fatal("a kid was given twice")
		}
		want(t, s, a, other, b)
	})

	t.Run("at once", func(t *testing.T) {
		s := open(t)
		var won atomic.Int64
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				err := s.Insert(t.Context(), record(fmt.Sprintf("AAAAAAA%d", i), keys.Pepper, 0), "")
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, keys.ErrReplaced):
					t.Errorf("insert: %v", err)
				}
			})
		}
		all.Wait()
		got, err := s.List(t.Context())
		if err != nil || len(got) != 1 || won.Load() != 1 {
			t.Fatalf("%d active keys, %d inserts won: %v", len(got), won.Load(), err)
		}
	})
}
