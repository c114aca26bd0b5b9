package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"onsale/internal/backup"
	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
)

// ErasuresFile, in the data folder, repeats the control database's list of erasures: ids and times, no names. It is to be
// kept beside the backups, so that restoring one of them erases also who was erased after it (F2).
const ErasuresFile = "erasures.json"

const (
	erasuresFormat   = 1
	erasuresBytesMax = 256 << 20
	erasuresEvery    = time.Minute // how long an erasure asked for by a customer, or on another node, may not be in the file
	keysEvery        = time.Minute // how long a node may not know another's new keys
)

// ErasureList is the file, and what `onsale customer erasures` prints.
type ErasureList struct {
	Format   int       `json:"format"`
	Erasures []Erasure `json:"erasures"`
}

// An Erasure is one of them.
type Erasure struct {
	Customer string    `json:"customer_id"`
	At       time.Time `json:"at"`
}

// An Erased is what `onsale customer erase` did.
type Erased struct {
	Customer string    `json:"customer_id"`
	At       time.Time `json:"erased_at"`
	Before   bool      `json:"before"` // it was erased already
	Tickets  int       `json:"ticket_count"`
}

// eraseCustomer removes what names a person. Orders and money stay under the id. Again is harmless.
func (a *App) eraseCustomer(ctx context.Context, s *identity.Service, customer id.ID, evenSo bool) (*Erased, error) {
	profile, err := s.Profile(ctx, customer)
	if err != nil {
		return nil, err // an unknown one may be a typing error
	}
	done := &Erased{Customer: customer.Text(id.Customer), At: profile.Erased, Before: !profile.Erased.IsZero()}
	if done.Tickets, err = a.ticketsToCome(ctx, customer); err != nil {
		return nil, err
	}
	paying, err := a.isPaying(ctx, customer)
	if err != nil {
		return nil, err
	}
	switch {
	case evenSo || done.Before:
	case paying:
		return nil, fault.New(fault.Conflict, "%s is paying for a booking just now: try again in some minutes, or erase --even-so", done.Customer)
	case done.Tickets > 0:
		return nil, fault.New(fault.Conflict, "%s has %d tickets for events to come: once erased nobody can be told of a change, and no name is on the tickets (they still let in). "+
			"Give them back first, or erase --even-so", done.Customer, done.Tickets)
	}
	if err := s.Erase(ctx, identity.Actor{}, customer); err != nil {
		return nil, err
	}
	if profile, err = s.Profile(ctx, customer); err != nil {
		return nil, err
	}
	done.At = profile.Erased
	return done, a.keepErasures(ctx)
}

// ticketsToCome counts the tickets of a customer whose event has not begun.
func (a *App) ticketsToCome(ctx context.Context, customer id.ID) (n int, err error) {
	starts := map[id.ID]time.Time{}
	err = a.ticketsOf(ctx, customer, func(t *ledger.Ticket) error {
		start, known := starts[t.Event]
		if !known {
			e, err := a.Catalog.Event(ctx, t.Event)
			if err != nil && fault.CodeOf(err) != fault.EventUnknown {
				return err
			}
			if err == nil && e.State != catalog.Cancelled {
				start = e.Starts
			}
			starts[t.Event] = start
		}
		if t.State == ledger.TicketValid && start.After(time.Now()) {
			n++
		}
		return nil
	})
	return n, err
}

func (a *App) isPaying(ctx context.Context, customer id.ID) (paying bool, err error) {
	err = a.ordersOf(ctx, customer, func(o *ledger.Order) error {
		paying = paying || o.State == ledger.OrderPending
		return nil
	})
	return paying, err
}

func (a *App) erasureList(ctx context.Context) (*ErasureList, error) {
	all, err := a.Control.People().Erasures(ctx)
	return erasureList(all), err
}

func erasureList(all []identity.Erasure) *ErasureList {
	list := &ErasureList{Format: erasuresFormat, Erasures: make([]Erasure, 0, len(all))}
	for _, e := range all {
		list.Erasures = append(list.Erasures, Erasure{e.Customer.Text(id.Customer), e.At})
	}
	return list
}

// keepErasures adds to the file who is on the control database's list. Nobody is ever taken out of it: beside a database
// that was brought back from before, the file alone knows who was erased since.
func (a *App) keepErasures(ctx context.Context) error {
	all, err := a.Control.People().Erasures(ctx)
	if err != nil {
		return err
	}
	kept, err := a.ownErasures()
	if err != nil {
		return fmt.Errorf("%w; move it away, and it is made anew", err)
	}
	if all = merged(kept, all); slices.Equal(all, kept) {
		return nil
	}
	text, err := json.MarshalIndent(erasureList(all), "", " ")
	if err != nil {
		return err
	}
	return writeFile(a.path(ErasuresFile), text)
}

// ownErasures is the data folder's file, nil where there is none.
func (a *App) ownErasures() ([]identity.Erasure, error) {
	path := a.path(ErasuresFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := parseErasures(text)
	if err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return merged(all), nil
}

// merged is all of some lists, by time, each customer once.
func merged(lists ...[]identity.Erasure) []identity.Erasure {
	first := map[id.ID]identity.Erasure{}
	for _, list := range lists {
		for _, e := range list {
			if old, ok := first[e.Customer]; !ok || e.At.Before(old.At) {
				first[e.Customer] = e
			}
		}
	}
	return slices.SortedFunc(maps.Values(first), func(a, b identity.Erasure) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Customer, b.Customer))
	})
}

// writeFile makes a file that appears whole and on disk, in place of what was there.
func writeFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// erasedSince are the lists given and the data folder's own, and how many these are.
func (a *App) erasedSince(given []string) (all []identity.Erasure, lists int, err error) {
	own, err := a.ownErasures()
	if err != nil {
		return nil, 0, err
	}
	if all, err = readErasures(given); err != nil {
		return nil, 0, err
	}
	lists = len(given)
	if own != nil {
		lists++
	}
	return merged(all, own), lists, nil
}

// readErasures reads lists of erasures: files as keepErasures writes them, or other (newer) backups.
func readErasures(paths []string) ([]identity.Erasure, error) {
	var lists [][]identity.Erasure
	for _, path := range paths {
		all, err := readErasureList(path)
		if err != nil {
			return nil, fmt.Errorf("--erasures %s: %w", path, err)
		}
		lists = append(lists, all)
	}
	return merged(lists...), nil
}

func readErasureList(path string) ([]identity.Erasure, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if a, err := backup.Open(path); err == nil {
		return a.Manifest.Erasures, a.Close()
	} else if !errors.Is(err, backup.ErrDamaged) {
		return nil, err
	}
	if info.Size() > erasuresBytesMax {
		return nil, fmt.Errorf("has %d bytes: it is another file", info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseErasures(text)
}

func parseErasures(text []byte) ([]identity.Erasure, error) {
	var list ErasureList
	if err := json.Unmarshal(text, &list); err != nil || list.Format < 1 {
		return nil, errors.New("is neither a list of erasures (" + ErasuresFile + ") nor a backup")
	}
	if list.Format > erasuresFormat {
		return nil, fmt.Errorf("has format %d, and this program reads %d: use a newer program", list.Format, erasuresFormat)
	}
	all := make([]identity.Erasure, 0, len(list.Erasures))
	for _, e := range list.Erasures {
		customer, err := id.Parse(id.Customer, e.Customer)
		if err != nil {
			return nil, fmt.Errorf("%.40q: %w", e.Customer, err)
		}
		all = append(all, identity.Erasure{Customer: customer, At: e.At})
	}
	return all, nil
}
