package ledger

import (
	"cmp"
	"context"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// The waitlist (A23).

func (m *Model) addWish(c AddWish) Result {
	if answer, ok := m.known(c.Wish.Customer, OpWish, c.Key); ok {
		return answer
	}
	e := m.events[c.Wish.Event]
	if e == nil {
		return refuse(fault.EventUnknown, "")
	}
	if field := e.wishProblem(&c.Wish); field != "" {
		return refuseField(fault.Invalid, field)
	}
	if e.State != OnSale && e.State != Paused || m.saleOver(e) {
		return refuse(fault.NotOnSale, "the event is %s", e.State)
	}
	if !e.Waitlist {
		return refuse(fault.Conflict, "there is no waitlist")
	}
	wish := cloneWish(c.Wish)
	wish.State, wish.Hold, wish.Offers, wish.Created, wish.Sequence = WishWaiting, 0, 0, m.now, 0
	own := m.newestWish(e.ID, c.Wish.Customer)
	if own != nil {
		m.settle(own)
	}
	switch {
	case own != nil && own.State == WishOffered:
		return refuse(fault.Conflict, "one is offered to them")
	case own != nil && own.State == WishWaiting:
		wish.ID, wish.Order, wish.Offers, wish.Hold = own.ID, own.Order, own.Offers, own.Hold
		wish.Created, wish.Sequence = own.Created, own.Sequence
	case own != nil && own.State != WishTaken && own.Offers >= WishOffersMax:
		return refuse(fault.Conflict, "they let too many offers lapse")
	case m.openWishes(e.ID) >= WishesPerEventMax:
		return refuse(fault.Busy, "the list is full")
	case own != nil && own.State != WishTaken:
		wish.Offers = own.Offers
	}
	m.wishes[wish.ID] = &wish
	m.publishWish(&wish, NoticeWishAdded)
	m.remember(wish.Customer, OpWish, c.Key, wish.ID)
	return Result{Wish: m.wishNow(wish.ID)}
}

// wishProblem is the first field of a wish that cannot be, "" where all can.
func (e *modelEvent) wishProblem(w *Wish) string {
	named := func(list []int16) bool {
		sorted := slices.Sorted(slices.Values(list))
		return len(list) <= WishNamesMax && (len(list) == 0 || sorted[0] >= 0) && len(slices.Compact(sorted)) == len(list)
	}
	unpriced := func(category int16) bool { _, ok := e.Tier(category); return !ok }
	switch {
	case w.ID <= 0:
		return "id"
	case w.Customer <= 0:
		return "customer"
	case w.Quantity < 1 || w.Quantity > e.SeatsPerHoldMax:
		return "quantity"
	case w.Least < 1 || w.Least > w.Quantity:
		return "least"
	case !named(w.Categories) || slices.ContainsFunc(w.Categories, unpriced):
		return "categories"
	case !named(w.Sections):
		return "sections"
	case w.PriceMax < 0:
		return "price_max"
	case w.Order < 0:
		return "order"
	}
	return ""
}

// saleOver says that an event's sale has ended for good.
func (m *Model) saleOver(e *modelEvent) bool {
	return e.State == Ended || e.State == Cancelled || e.SaleCloses <= m.now
}

func (m *Model) newestWish(event, customer id.ID) (newest *Wish) {
	for _, w := range m.wishes {
		if w.Event == event && w.Customer == customer && (newest == nil || w.ID > newest.ID) {
			newest = w
		}
	}
	return newest
}

func (m *Model) openWishes(event id.ID) int {
	n := 0
	for _, w := range m.wishes {
		if w.Event == event && w.Open() {
			n++
		}
	}
	return n
}

func (m *Model) withdrawWish(c WithdrawWish) Result {
	w := m.wishes[c.Wish]
	if w == nil {
		return refuse(fault.WishUnknown, "")
	}
	if w.Customer != c.Customer {
		return refuse(fault.WrongCustomer, "")
	}
	m.settle(w)
	switch w.State {
	case WishOffered:
		return refuse(fault.Conflict, "it is offered")
	case WishWaiting:
		m.endWish(w, WishWithdrawn)
		return Result{Wish: m.wishNow(w.ID)}
	}
	return Result{Wish: m.wishNow(w.ID), Repeat: true}
}

func (m *Model) settleWish(c SettleWish) Result {
	w := m.wishes[c.Wish]
	if w == nil {
		return refuse(fault.WishUnknown, "")
	}
	before := w.Sequence
	m.settle(w)
	if e := m.events[w.Event]; w.State == WishWaiting && m.saleOver(e) {
		m.endWish(w, WishEnded)
	}
	return Result{Wish: m.wishNow(w.ID), Repeat: w.Sequence == before}
}

// settle writes down what became of an offer, if that is known.
func (m *Model) settle(w *Wish) {
	if w.State != WishOffered {
		return
	}
	h := m.holds[w.Hold]
	m.expireIfDue(h)
	o := m.orders[h.Order]
	switch {
	case h.State == HoldSold || slices.ContainsFunc(h.Lines, func(l Line) bool { return l.Gone }),
		o != nil && (o.State == OrderPaid || o.State == OrderRefunded): // by a rescue
		m.endWish(w, WishTaken)
	case h.State == HoldLive || o != nil && o.State == OrderPending: // its money may still come
	case w.Offers >= WishOffersMax:
		m.endWish(w, WishEnded)
	default:
		w.State = WishWaiting
		m.publishWish(w, NoticeWishLapsed)
	}
}

func (m *Model) endWish(w *Wish, state WishState) {
	w.State = state
	m.publishWish(w, NoticeWishEnded)
}

func (m *Model) offer(c Offer) Result {
	w := m.wishes[c.Wish]
	if w == nil {
		return refuse(fault.WishUnknown, "")
	}
	if w.State == WishOffered && w.Hold == c.Hold {
		return Result{Hold: m.holdNow(c.Hold), Wish: m.wishNow(w.ID), Repeat: true}
	}
	if w.State != WishWaiting {
		return refuse(fault.Conflict, "the wish is %s", w.State)
	}
	e := m.events[w.Event]
	if f := e.Selling(m.now); f != nil {
		return Result{Fault: f}
	}
	if c.TTL <= 0 || c.TTL > OfferTTLMax {
		return refuseField(fault.Invalid, "ttl_ms")
	}
	h := &Hold{
		ID: c.Hold, Event: e.ID, Customer: w.Customer, State: HoldLive, Area: -1, Currency: e.Currency,
		Created: m.now, Expires: m.now + Time(c.TTL), Offer: w.ID,
	}
	var places []modelPlace
	if len(c.Seats) > 0 {
		seats := slices.Sorted(slices.Values(c.Seats))
		if len(e.unknownOf(seats)) > 0 || twice(seats) || w.Together && !e.neighbours(seats) {
			return refuseField(fault.Invalid, "seat_ids")
		}
		for _, seat := range seats {
			places = append(places, e.seatPlace(seat))
		}
	} else {
		if c.Area < 0 || int(c.Area) >= len(e.areas) || c.Quantity < 1 || c.Quantity > OfferSeatsMax {
			return refuseField(fault.Invalid, "area_id")
		}
		h.Area = c.Area
		places = slices.Repeat([]modelPlace{e.areaPlace(c.Area)}, c.Quantity)
	}
	if len(places) < w.Least || len(places) > min(w.Quantity, e.SeatsPerHoldMax) {
		return refuseField(fault.Invalid, "quantity")
	}
	for _, place := range places {
		if !e.wants(w, place) {
			return refuseField(fault.Invalid, "wish")
		}
		h.Lines = append(h.Lines, e.price(place))
	}
	if f := m.notReturned(e, h); f != nil {
		return Result{Fault: f}
	}
	if f := m.overBounds(e, w.Customer, places, nil); f != nil {
		return Result{Fault: f}
	}
	if h.Area >= 0 {
		a := &e.areas[h.Area]
		a.returned, a.returnedAt = a.returned-len(places), m.now
	} else {
		m.claimSeats(e, h, Held)
	}
	m.holds[h.ID] = h
	m.step(h, "", "live", "offer", h.Lines)
	w.State, w.Hold, w.Offers = WishOffered, h.ID, w.Offers+1
	m.publishWish(w, NoticeWishOffered)
	return Result{Hold: m.holdNow(h.ID), Wish: m.wishNow(w.ID)}
}

// notReturned refuses an offer of what is not promised to the waitlist, after ending holds on it whose time is up.
func (m *Model) notReturned(e *modelEvent, h *Hold) *fault.Error {
	if h.Area >= 0 {
		if e.areas[h.Area].returned < len(h.Lines) {
			m.expireSome(ExpireBoundMax, func(o *Hold) bool { return o.Event == e.ID && o.Area == h.Area })
		}
		if e.areas[h.Area].returned < len(h.Lines) {
			return &fault.Error{Code: fault.PlacesTaken}
		}
		return nil
	}
	for _, line := range h.Lines {
		m.expireHolderOf(e, line.Seat)
	}
	var taken []int32
	for _, line := range h.Lines {
		if e.seats[line.Seat].state != Returned {
			taken = append(taken, line.Seat)
		}
	}
	if len(taken) > 0 {
		return &fault.Error{Code: fault.SeatsTaken, Seats: taken}
	}
	return nil
}

// wants says whether a place would do for a wish.
func (e *modelEvent) wants(w *Wish, p modelPlace) bool {
	if _, priced := e.Tier(p.category); !priced {
		return false
	}
	return (len(w.Categories) == 0 || slices.Contains(w.Categories, p.category)) &&
		(len(w.Sections) == 0 || slices.Contains(w.Sections, p.section)) &&
		(w.PriceMax == 0 || e.price(p).Total <= w.PriceMax)
}

func (m *Model) releaseReturned(c ReleaseReturned) Result {
	e := m.events[c.Event]
	if e == nil {
		return refuse(fault.EventUnknown, "")
	}
	seats := slices.Sorted(slices.Values(c.Seats))
	if len(seats) > BatchSeatsMax || twice(seats) || c.Quantity < 0 || len(seats) == 0 && c.Quantity == 0 {
		return refuseField(fault.Invalid, "seat_ids")
	}
	if unknown := e.unknownOf(seats); len(unknown) > 0 {
		return refuseSeats(fault.SeatUnknown, unknown)
	}
	if c.Quantity > 0 && (c.Area < 0 || int(c.Area) >= len(e.areas)) {
		return refuse(fault.SeatUnknown, "no area %d", c.Area)
	}
	count := 0
	for _, seat := range seats {
		if s := &e.seats[seat]; s.state == Returned {
			s.state, s.returnedAt = Available, 0
			count++
		}
	}
	if c.Quantity > 0 {
		if a := &e.areas[c.Area]; a.returned > 0 {
			n := min(c.Quantity, a.returned)
			a.returned, a.returnedAt = a.returned-n, m.now
			count += n
		}
	}
	return Result{Count: count}
}

func (m *Model) setReturns(c SetReturns) Result {
	e := m.events[c.Event]
	switch {
	case e == nil:
		return refuse(fault.EventUnknown, "")
	case c.Returns > ReturnsWaitlist:
		return refuseField(fault.Invalid, "returns")
	case e.Returns == c.Returns:
		return Result{Repeat: true}
	case c.Returns == ReturnsWaitlist && !e.Waitlist:
		return refuse(fault.Conflict, "the event has no waitlist")
	}
	if _, r := m.roomOf(e.ID); c.Returns == ReturnsWaitlist && !r.LineEmpty(&e.Room, c.Line, m.now) {
		return refuse(fault.Conflict, "somebody is left in the line")
	}
	e.Returns = c.Returns
	m.publishEvent(e)
	return Result{}
}

// publishWish puts a notice of a wish into the outbox, with the next number of that wish.
func (m *Model) publishWish(w *Wish, kind string) {
	w.Sequence++
	w.Updated = m.now
	body := []string{
		"wish_id", w.ID.Text(id.Wish), "event_id", w.Event.Text(id.Event), "customer_id", w.Customer.Text(id.Customer),
		"state", w.State.String(),
	}
	m.notices = append(m.notices, modelNotice{Notice: Notice{
		Order: w.ID, Sequence: w.Sequence, Kind: kind, At: m.now, Body: noticeBody(body),
	}})
}

func cloneWish(w Wish) Wish {
	w.Categories, w.Sections = slices.Clone(w.Categories), slices.Clone(w.Sections)
	return w
}

func (m *Model) wishNow(wish id.ID) *Wish {
	w := cloneWish(*m.wishes[wish])
	return &w
}

func (m *Model) wishesWhere(which func(*Wish) bool, maxCount int, order func(a, b Wish) int) []Wish {
	var found []Wish
	for _, w := range m.wishes {
		if which(w) {
			found = append(found, cloneWish(*w))
		}
	}
	return page(found, maxCount, order)
}

// servedFirst is the order of the list.
func servedFirst(a, b Wish) int {
	return cmp.Or(cmp.Compare(a.Offers, b.Offers), cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID))
}

func newestWishFirst(a, b Wish) int { return cmp.Compare(b.ID, a.ID) }

// Wish is a wish as it is now.
func (m *Model) Wish(_ context.Context, wish id.ID) (Wish, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wishes[wish] == nil {
		return Wish{}, ErrNotFound
	}
	return *m.wishNow(wish), nil
}

// WishOf is a customer's newest wish for an event.
func (m *Model) WishOf(_ context.Context, event, customer id.ID) (Wish, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.wishesWhere(func(w *Wish) bool { return w.Event == event && w.Customer == customer }, 1, newestWishFirst)
	if len(found) == 0 {
		return Wish{}, ErrNotFound
	}
	return found[0], nil
}

// Wishes are an event's in a state.
func (m *Model) Wishes(_ context.Context, event id.ID, state WishState, after WishCursor, maxCount int) ([]Wish, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := Wish{ID: after.Wish, Order: after.Order, Offers: after.Offers}
	which := func(w *Wish) bool { return w.Event == event && w.State == state && servedFirst(*w, last) > 0 }
	return m.wishesWhere(which, maxCount, servedFirst), nil
}

// WishesOfCustomer are one customer's.
func (m *Model) WishesOfCustomer(_ context.Context, customer, before id.ID, maxCount int) ([]Wish, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wishesWhere(func(w *Wish) bool { return w.Customer == customer && (before == 0 || w.ID < before) }, maxCount, newestWishFirst), nil
}

// Returned are an event's places that are returned.
func (m *Model) Returned(_ context.Context, event id.ID, maxCount int) (ReturnedPlaces, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.events[event]
	if e == nil {
		return ReturnedPlaces{}, ErrNotFound
	}
	var r ReturnedPlaces
	for i, s := range e.seats {
		if s.state == Returned && len(r.Seats) < maxCount {
			r.Seats = append(r.Seats, int32(i))
		}
	}
	for _, a := range e.areas {
		r.Areas = append(r.Areas, int32(a.returned))
	}
	return r, nil
}
