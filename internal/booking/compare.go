package booking

import (
	"context"
	"slices"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// walkAgain is how often the provider's books are read from their beginning, for what has changed in old pages.
const walkAgain = time.Hour

// A walk is how far the provider's books have been compared.
type walk struct {
	mu     sync.Mutex
	cursor string
	began  ledger.Time
}

// Compare reads one page of the provider's books and settles every payment in it that the ledger has never heard of: a
// second payment of an order that is PAID, whose webhook never came, is found by nothing else (I6). One whose order is not
// here is left alone: on a shared account it is another shard's or another house's. more says that there are further pages
// to be read now.
//
// A provider that cannot list its payments has nothing to compare.
func (s *Service) Compare(ctx context.Context) (more bool, err error) {
	lister, ok := s.o.Provider.(payment.Lister)
	if !ok || !s.books.mu.TryLock() {
		return false, nil
	}
	defer s.books.mu.Unlock()
	now, err := s.o.Shard.Ledger().Now(ctx)
	if err != nil {
		return false, err
	}
	if again := s.books.began + ledger.Time(walkAgain.Milliseconds()); s.books.cursor == "" || now >= again {
		s.books.cursor, s.books.began = "", now
	}
	talk, cancel := context.WithTimeout(ctx, s.o.AttemptTimeout)
	defer cancel()
	page, err := lister.List(talk, s.books.cursor)
	if err != nil {
		return false, err
	}
	old := now - ledger.Time(s.o.CompareAfter.Milliseconds())
	for _, p := range page.Payments {
		if ledger.TimeOf(p.CreatedAt) > old {
			return false, nil // what follows may still be on its way: this page is read again
		}
		if err := s.compare(ctx, p); err != nil {
			return false, err
		}
	}
	if page.Next == "" {
		return false, nil // payments to come are on this page
	}
	s.books.cursor = page.Next
	return true, nil
}

// compare settles a payment that the ledger does not know.
func (s *Service) compare(ctx context.Context, p payment.Payment) error {
	if !hasMoney(p) {
		return nil
	}
	o, err := s.orderOf(ctx, p.OrderID)
	if fault.CodeOf(err) == fault.OrderUnknown {
		return nil
	}
	if err != nil || s.busyWith(o.ID) {
		return err
	}
	known, err := s.o.Shard.Ledger().Payments(ctx, o.ID)
	if err != nil || slices.ContainsFunc(known, func(k ledger.Payment) bool { return k.ID == p.ID && k.Provider == s.o.Provider.Name() }) {
		return err
	}
	s.o.Alert(ctx, "a payment stands in the provider's books that nobody told of: "+p.ID, o.ID, nil)
	talk, cancel := context.WithTimeout(ctx, s.o.AttemptTimeout)
	defer cancel()
	defer s.talk(o.ID)()
	_, err = s.settle(talk, o, p, 0)
	return err
}
