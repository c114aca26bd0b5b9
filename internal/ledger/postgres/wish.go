package postgres

import (
	"cmp"
	"context"
	"math"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// This file is the waitlist's rows. Commands name a wish; its event, its hold and the order behind that are learned first.
// Nothing of a wish is remembered from batch to batch: there are few of these commands.

const wishColumns = `w.wish_id, w.event_id, w.customer_id, w.state, w.quantity, w.least, w.categories, w.sections, w.together, w.price_max, w.line_order,
 w.hold_id, w.offer_count, w.created_at, w.updated_at, w.sequence`

type wishScan struct {
	wish, event, customer, price, order, hold, created, updated, sequence int64
	state, together                                                       int16
	quantity, least, offers                                               int32
	categories, sections                                                  string
}

func (s *wishScan) dest() []any {
	return []any{&s.wish, &s.event, &s.customer, &s.state, &s.quantity, &s.least, &s.categories, &s.sections, &s.together, &s.price, &s.order,
		&s.hold, &s.offers, &s.created, &s.updated, &s.sequence}
}

func (s *wishScan) take() (w ledger.Wish, err error) {
	w = ledger.Wish{
		ID: id.ID(s.wish), Event: id.ID(s.event), Customer: id.ID(s.customer), State: ledger.WishState(s.state), Quantity: int(s.quantity),
		Least: int(s.least), Together: s.together != 0, PriceMax: s.price, Order: s.order, Hold: id.ID(s.hold), Offers: int(s.offers),
		Created: ledger.Time(s.created), Updated: ledger.Time(s.updated), Sequence: s.sequence,
	}
	if w.Categories, err = decide.DecodeNames(s.categories); err != nil {
		return w, err
	}
	w.Sections, err = decide.DecodeNames(s.sections)
	return w, err
}

// wishNamed is the wish that a command is about, 0 none.
func wishNamed(c ledger.Command) id.ID {
	switch c := c.(type) {
	case ledger.WithdrawWish:
		return c.Wish
	case ledger.SettleWish:
		return c.Wish
	case ledger.Offer:
		return c.Wish
	}
	return 0
}

// learnWishes finds the wishes that commands are about.
func (t *transaction) learnWishes(ctx context.Context, commands []ledger.Command) error {
	t.set.known, t.set.newest = map[id.ID]*ledger.Wish{}, map[decide.WishKey]id.ID{}
	named, of := set[id.ID]{}, set[decide.WishKey]{}
	for _, c := range commands {
		if w := wishNamed(c); w != 0 {
			named.add(w)
		}
		if c, ok := c.(ledger.AddWish); ok {
			of.add(decide.WishKey{Event: c.Wish.Event, Customer: c.Wish.Customer})
			if subject, ok := t.l.facts.keys.Get(wishKey(c)); ok {
				named.add(subject)
			}
		}
	}
	for w := range t.batch.missed.wishes {
		named.add(w)
	}
	for k := range t.batch.missed.wishOf {
		of.add(k)
	}
	if len(named)+len(of) == 0 {
		return nil
	}
	keys := sorted(of, compareWishKeys)
	for _, k := range keys {
		t.set.newest[k] = 0
	}
	var row wishScan
	take := func() error {
		w, err := row.take()
		t.set.known[w.ID] = &w
		k := decide.WishKey{Event: w.Event, Customer: w.Customer}
		if newest, asked := t.set.newest[k]; asked {
			t.set.newest[k] = max(newest, w.ID)
		}
		return err
	}
	p := t.pipeline()
	p.rows(`SELECT `+wishColumns+` FROM shard.wishes w WHERE w.wish_id = ANY ($1::bigint[])`,
		[]any{column(sorted(named, cmp.Compare[id.ID]), asInt64)}, row.dest(), take)
	p.rows(`SELECT `+wishColumns+` FROM unnest($1::bigint[], $2::bigint[]) AS k(event_id, customer_id), LATERAL (SELECT * FROM shard.wishes o
 WHERE o.customer_id = k.customer_id AND o.event_id = k.event_id ORDER BY o.wish_id DESC LIMIT 1) AS w`, []any{
		column(keys, func(k decide.WishKey) int64 { return int64(k.Event) }),
		column(keys, func(k decide.WishKey) int64 { return int64(k.Customer) }),
	}, row.dest(), take)
	return p.send(ctx, t.conn)
}

func compareWishKeys(a, b decide.WishKey) int {
	return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Customer, b.Customer))
}

func wishKey(c ledger.AddWish) decide.IdemKey {
	return decide.IdemKey{Customer: c.Wish.Customer, Operation: ledger.OpWish, Value: c.Key.Value}
}

// offersBehind gives the holds of the offers that a command may settle.
func (t *transaction) offersBehind(c ledger.Command, each func(id.ID)) {
	of := func(wish id.ID) {
		if w := t.set.known[wish]; w != nil && w.State == ledger.WishOffered {
			each(w.Hold)
		}
	}
	of(wishNamed(c))
	if c, ok := c.(ledger.AddWish); ok {
		of(t.set.newest[decide.WishKey{Event: c.Wish.Event, Customer: c.Wish.Customer}])
	}
}

// wish adds a wish, with its event, the count of the event's wishes, and what the end of its offer frees.
func (s *lockset) wish(wish id.ID) *ledger.Wish {
	if wish == 0 {
		return nil
	}
	s.wishes.add(wish)
	w := s.known[wish]
	if w == nil {
		return nil
	}
	s.events.add(w.Event)
	s.quotas.add(decide.WaitlistKey(w.Event))
	if w.State == ledger.WishOffered {
		if h := s.hold(w.Hold); h != nil {
			s.order(h.Order)
		}
	}
	return w
}

func (s *lockset) newestWish(k decide.WishKey) {
	s.wishOf.add(k)
	s.wish(s.newest[k])
}

func (s *lockset) addWish(c ledger.AddWish) {
	s.events.add(c.Wish.Event)
	s.quotas.add(decide.WaitlistKey(c.Wish.Event))
	s.wish(s.key(wishKey(c)))
	s.newestWish(decide.WishKey{Event: c.Wish.Event, Customer: c.Wish.Customer})
}

func (s *lockset) offer(c ledger.Offer) {
	w := s.wish(c.Wish)
	if w == nil || w.State != ledger.WishWaiting {
		return
	}
	e, layout := s.facts.event(w.Event)
	if e == nil {
		return
	}
	h := ledger.Hold{Event: w.Event, Customer: w.Customer, Area: -1}
	for _, index := range c.Seats {
		if index < 0 || int(index) >= len(layout.Category) {
			return // it will be refused
		}
		h.Lines = append(h.Lines, ledger.Line{Seat: index, Category: layout.Category[index]})
	}
	for _, index := range c.Seats {
		s.seat(decide.SeatKey{Event: w.Event, Index: index})
	}
	if len(c.Seats) == 0 {
		if c.Area < 0 || int(c.Area) >= len(layout.Areas) || c.Quantity < 1 || c.Quantity > ledger.OfferSeatsMax {
			return
		}
		h.Area = c.Area
		s.areas.add(decide.AreaKey{Event: w.Event, Area: c.Area})
		for range c.Quantity {
			h.Lines = append(h.Lines, ledger.Line{Seat: -1, Category: layout.Areas[c.Area].Category})
		}
	}
	s.counters(e, layout, &h)
}

func (s *lockset) releaseReturned(c ledger.ReleaseReturned) {
	s.organizer(c.Event, c.Seats)
	if _, layout := s.facts.event(c.Event); layout != nil && c.Quantity > 0 && c.Area >= 0 && int(c.Area) < len(layout.Areas) {
		s.areas.add(decide.AreaKey{Event: c.Event, Area: c.Area})
	}
}

const sqlWishes = `SELECT ` + wishColumns + ` FROM unnest($1::bigint[]) WITH ORDINALITY AS k(wish_id, n) JOIN shard.wishes w ON w.wish_id = k.wish_id
 ORDER BY k.n FOR UPDATE OF w`

// lockWishes locks wishes, behind the counter of their event's and before the orders.
func (t *transaction) lockWishes(p *pipeline) {
	keys := sorted(t.set.wishes, cmp.Compare[id.ID])
	t.source.wishes = make(map[id.ID]*decide.Wish, len(keys))
	if len(keys) == 0 {
		return
	}
	for _, k := range keys {
		t.source.wishes[k] = nil
	}
	var row wishScan
	p.rows(sqlWishes, []any{column(keys, asInt64)}, row.dest(), func() error {
		w, err := row.take()
		t.source.wishes[w.ID] = &decide.Wish{Wish: w}
		return err
	})
}

// Wish implements decide.Source.
func (s *source) Wish(wish id.ID) (*decide.Wish, error) {
	if w, ok := s.wishes[wish]; ok {
		return w, nil
	}
	s.missed.wishes.add(wish)
	return nil, decide.ErrMissing
}

// WishOf implements decide.Source. Which one is the newest was found by a plain read: where another node makes a newer one
// meanwhile that is open, the insert of one more fails, and the batch begins again.
func (s *source) WishOf(k decide.WishKey) (*decide.Wish, error) {
	newest, ok := s.t.set.newest[k]
	switch {
	case !ok:
		s.missed.wishOf.add(k)
		return nil, decide.ErrMissing
	case newest == 0:
		return nil, nil
	}
	return s.Wish(newest)
}

// wishes writes changed ones first: one that has ended makes room for its customer's next one.
func (w *writer) wishes() {
	added, set := split(w.out.Wishes, func(r *decide.Wish) bool { return r.New })
	columns := func(r *rowset, list []*decide.Wish) {
		r.small("state", func(i int) int16 { return int16(list[i].State) })
		r.mid("quantity", func(i int) int32 { return int32(list[i].Quantity) })
		r.mid("least", func(i int) int32 { return int32(list[i].Least) })
		r.word("categories", func(i int) string { return decide.EncodeNames(list[i].Categories) })
		r.word("sections", func(i int) string { return decide.EncodeNames(list[i].Sections) })
		r.yes("together", func(i int) bool { return list[i].Together })
		r.big("price_max", func(i int) int64 { return list[i].PriceMax })
		r.big("hold_id", func(i int) int64 { return int64(list[i].Hold) })
		r.mid("offer_count", func(i int) int32 { return int32(list[i].Offers) })
		r.big("updated_at", func(i int) int64 { return int64(list[i].Updated) })
		r.big("sequence", func(i int) int64 { return list[i].Sequence })
	}
	r := w.rowset("wishes", len(set))
	r.match("wish_id", r.int64s(func(i int) int64 { return int64(set[i].ID) }))
	columns(r, set)
	r.update(changed("a wish", func() id.ID { return set[0].Event }))

	r = w.rowset("wishes", len(added))
	r.big("wish_id", func(i int) int64 { return int64(added[i].ID) })
	r.big("event_id", func(i int) int64 { return int64(added[i].Event) })
	r.big("customer_id", func(i int) int64 { return int64(added[i].Customer) })
	r.big("line_order", func(i int) int64 { return added[i].Order })
	r.big("created_at", func(i int) int64 { return int64(added[i].Created) })
	columns(r, added)
	r.insert("")
}

func (r *reader) wishes(ctx context.Context, where string, args ...any) ([]ledger.Wish, error) {
	var row wishScan
	return list(ctx, r.pool, row.dest(), row.take, `SELECT `+wishColumns+` FROM shard.wishes w WHERE `+where, args...)
}

func (r *reader) oneWish(ctx context.Context, where string, args ...any) (ledger.Wish, error) {
	var row wishScan
	return one(ctx, r.pool, row.dest(), row.take, `SELECT `+wishColumns+` FROM shard.wishes w WHERE `+where, args...)
}

// Wish implements ledger.Reader.
func (r *reader) Wish(ctx context.Context, wish id.ID) (ledger.Wish, error) {
	return r.oneWish(ctx, `w.wish_id = $1`, int64(wish))
}

// WishOf implements ledger.Reader.
func (r *reader) WishOf(ctx context.Context, event, customer id.ID) (ledger.Wish, error) {
	return r.oneWish(ctx, `w.customer_id = $1 AND w.event_id = $2 ORDER BY w.wish_id DESC LIMIT 1`, int64(customer), int64(event))
}

// Wishes implements ledger.Reader.
func (r *reader) Wishes(ctx context.Context, event id.ID, state ledger.WishState, after ledger.WishCursor, most int) ([]ledger.Wish, error) {
	return r.wishes(ctx, `w.event_id = $1 AND w.state = $2 AND (w.offer_count, w.line_order, w.wish_id) > ($3::integer, $4::bigint, $5::bigint)
	    ORDER BY w.offer_count, w.line_order, w.wish_id LIMIT $6`, int64(event), int16(state), int32(after.Offers), after.Order, int64(after.Wish), clip(most))
}

// WishesOfCustomer implements ledger.Reader.
func (r *reader) WishesOfCustomer(ctx context.Context, customer, before id.ID, most int) ([]ledger.Wish, error) {
	return r.wishes(ctx, `w.customer_id = $1 AND w.wish_id < $2 ORDER BY w.wish_id DESC LIMIT $3`,
		int64(customer), int64(cmp.Or(before, id.ID(math.MaxInt64))), clip(most))
}

// Returned implements ledger.Reader. There is no index over returned seats: one over the state would make every hold of a seat
// write to it.
func (r *reader) Returned(ctx context.Context, event id.ID, most int) (p ledger.ReturnedPlaces, err error) {
	if _, err = r.Event(ctx, event); err != nil {
		return p, err
	}
	var v int32
	take := func() (int32, error) { return v, nil }
	p.Seats, err = list(ctx, r.pool, []any{&v}, take, `SELECT seat_index FROM shard.seats WHERE event_id = $1 AND state = 4 ORDER BY seat_index LIMIT $2`,
		int64(event), clip(most))
	if err != nil {
		return p, err
	}
	p.Areas, err = list(ctx, r.pool, []any{&v}, take, `SELECT sum(returned)::integer FROM shard.buckets WHERE event_id = $1 GROUP BY area ORDER BY area`, int64(event))
	return p, err
}
