package decide

import (
	"slices"
	"strconv"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// waitlistCategory is the category under which the open wishes of an event are counted among its quotas' counters: like a
// quota it is a bound on how many of something an event has, and no plan has such a category.
const waitlistCategory = -2

// WaitlistKey is the counter of an event's open wishes.
func WaitlistKey(event id.ID) QuotaKey { return QuotaKey{event, waitlistCategory, waitlistCategory} }

func (w *Work) addWish(c ledger.AddWish) (ledger.Result, error) {
	if r, err := w.repeatWish(c); err != nil || r != nil {
		return deref(r), err
	}
	e, err := w.event(c.Wish.Event)
	switch {
	case err != nil:
		return ledger.Result{}, err
	case e == nil:
		return ledger.Result{}, fault.New(fault.EventUnknown, "")
	}
	if err := validateWish(e, &c.Wish); err != nil {
		return ledger.Result{}, err
	}
	switch {
	case e.State != ledger.OnSale && e.State != ledger.Paused || w.saleOver(e):
		return ledger.Result{}, fault.New(fault.NotOnSale, "the event is %s, or its sale is over", e.State)
	case !e.Waitlist:
		return ledger.Result{}, fault.New(fault.Conflict, "the event has no waitlist")
	}
	own, err := w.newestWish(WishKey{e.ID, c.Wish.Customer})
	if err != nil {
		return ledger.Result{}, err
	}
	if own != nil {
		if err := w.settleOffer(own); err != nil {
			return ledger.Result{}, err
		}
	}
	row := &Wish{Row: Row{New: true}, Wish: c.Wish}
	row.State, row.Hold, row.Offers, row.Created, row.Sequence = ledger.WishWaiting, 0, 0, w.Now, 0
	switch {
	case own != nil && own.State == ledger.WishOffered && on(GuardOneWish):
		return ledger.Result{}, fault.New(fault.Conflict, "seats are offered to you now: pay for them or let them go first")
	case own != nil && own.State == ledger.WishWaiting && on(GuardOneWish):
		own.Quantity, own.Least, own.Together, own.PriceMax = row.Quantity, row.Least, row.Together, row.PriceMax
		own.Categories, own.Sections = row.Categories, row.Sections
		row = own
	case own != nil && own.State != ledger.WishTaken && own.Offers >= ledger.WishOffersMax && on(GuardOfferMax):
		return ledger.Result{}, fault.New(fault.Conflict, "%d offers were not taken", own.Offers)
	default:
		if own != nil && own.State != ledger.WishTaken {
			row.Offers = own.Offers
		}
		if err := w.countWish(e.ID, 1); err != nil {
			return ledger.Result{}, err
		}
		w.wishOf[WishKey{row.Event, row.Customer}] = row
	}
	w.wishSet(row)
	w.wishNotice(row, ledger.NoticeWishAdded)
	w.keyAdd(IdemKey{row.Customer, ledger.OpWish, c.Key.Value}, row.ID, c.Key.Fields)
	return ledger.Result{Wish: row.view()}, nil
}

// repeatWish answers an AddWish whose key has had its effect.
func (w *Work) repeatWish(c ledger.AddWish) (*ledger.Result, error) {
	subject, err := w.repeat(IdemKey{c.Wish.Customer, ledger.OpWish, c.Key.Value}, c.Key.Fields)
	if err != nil || subject == 0 {
		return nil, err
	}
	row, err := w.wish(subject)
	if err != nil || row == nil {
		return nil, err
	}
	return &ledger.Result{Repeat: true, Wish: row.view()}, nil
}

// view is a copy of the wish as it is now, for an answer. Its lists are replaced, never written into.
func (r *Wish) view() *ledger.Wish {
	v := r.Wish
	return &v
}

// validateWish refuses a wish that nothing could ever fulfil.
func validateWish(e *eventRow, r *ledger.Wish) error {
	names := func(field string, list []int16) error {
		sorted := slices.Sorted(slices.Values(list))
		if len(list) > ledger.WishNamesMax || len(list) > 0 && sorted[0] < 0 || len(slices.Compact(sorted)) < len(list) {
			return invalid(field, "at most %d, each once", ledger.WishNamesMax)
		}
		return nil
	}
	switch {
	case r.ID <= 0:
		return invalid("id", "a wish has an id")
	case r.Customer <= 0:
		return invalid("customer", "a wish is somebody's")
	case r.Quantity < 1 || r.Quantity > e.SeatsPerHoldMax:
		return invalid("quantity", "1 to %d places", e.SeatsPerHoldMax)
	case r.Least < 1 || r.Least > r.Quantity:
		return invalid("least", "1 to the quantity")
	}
	if err := names("categories", r.Categories); err != nil {
		return err
	}
	for _, category := range r.Categories {
		if _, ok := e.Tier(category); !ok {
			return invalid("categories", "a category has no price in this event")
		}
	}
	if err := names("sections", r.Sections); err != nil {
		return err
	}
	switch {
	case r.PriceMax < 0:
		return invalid("price_max", "not below 0")
	case r.Order < 0:
		return invalid("order", "not below 0")
	}
	return nil
}

// saleOver says that an event's sale has ended for good.
func (w *Work) saleOver(e *eventRow) bool {
	return e.State == ledger.Ended || e.State == ledger.Cancelled || e.SaleCloses <= w.Now
}

// countWish adds to (+1) or takes from (-1) the open wishes of an event, of which there is a greatest number.
func (w *Work) countWish(event id.ID, sign int) error {
	k := WaitlistKey(event)
	c, err := w.quota(k)
	switch {
	case err != nil:
		return err
	case c.count+sign > ledger.WishesPerEventMax:
		return fault.New(fault.Busy, "the waitlist is full")
	case c.count+sign < 0:
		return invariant(event, "the open wishes would count below 0")
	}
	w.quotaAdd(k, c, sign)
	return nil
}

func (w *Work) withdrawWish(c ledger.WithdrawWish) (ledger.Result, error) {
	row, err := w.wish(c.Wish)
	switch {
	case err != nil:
		return ledger.Result{}, err
	case row == nil:
		return ledger.Result{}, fault.New(fault.WishUnknown, "")
	case row.Customer != c.Customer && on(GuardCustomer):
		return ledger.Result{}, fault.New(fault.WrongCustomer, "")
	}
	if err := w.settleOffer(row); err != nil {
		return ledger.Result{}, err
	}
	switch row.State {
	case ledger.WishOffered:
		return ledger.Result{}, fault.New(fault.Conflict, "seats are offered to you now: let them go first")
	case ledger.WishWaiting:
		err := w.wishEnd(row, ledger.WishWithdrawn)
		return ledger.Result{Wish: row.view()}, err
	}
	return ledger.Result{Repeat: true, Wish: row.view()}, nil
}

func (w *Work) settleWish(c ledger.SettleWish) (ledger.Result, error) {
	row, err := w.wish(c.Wish)
	if err != nil {
		return ledger.Result{}, err
	}
	if row == nil {
		return ledger.Result{}, fault.New(fault.WishUnknown, "")
	}
	before := row.Sequence
	if err := w.settleOffer(row); err != nil {
		return ledger.Result{}, err
	}
	if row.State == ledger.WishWaiting {
		e, err := w.event(row.Event)
		if err != nil {
			return ledger.Result{}, err
		}
		if w.saleOver(e) {
			if err := w.wishEnd(row, ledger.WishEnded); err != nil {
				return ledger.Result{}, err
			}
		}
	}
	return ledger.Result{Repeat: row.Sequence == before, Wish: row.view()}, nil
}

// settleOffer writes down what became of a wish's offer, if that is known by now.
func (w *Work) settleOffer(row *Wish) error {
	if row.State != ledger.WishOffered {
		return nil
	}
	h, err := w.hold(row.Hold)
	if err != nil {
		return err
	}
	var o *Order
	if h != nil {
		if h.State == ledger.HoldLive && h.Expires <= w.Now {
			if err := w.expire(h, "settled"); err != nil {
				return err
			}
		}
		if o, err = w.order(h.Order); err != nil {
			return err
		}
	}
	gone := func(l ledger.Line) bool { return l.Gone }
	switch {
	case h != nil && (h.State == ledger.HoldSold || slices.ContainsFunc(h.Lines, gone)),
		o != nil && (o.State == ledger.OrderPaid || o.State == ledger.OrderRefunded): // by a rescue
		return w.wishEnd(row, ledger.WishTaken)
	case h != nil && h.State == ledger.HoldLive, o != nil && o.State == ledger.OrderPending: // its money may still come
		return nil
	case row.Offers >= ledger.WishOffersMax && on(GuardOfferMax):
		return w.wishEnd(row, ledger.WishEnded)
	}
	w.wishSet(row).State = ledger.WishWaiting
	w.wishNotice(row, ledger.NoticeWishLapsed)
	return nil
}

// wishEnd takes an open wish off the list.
func (w *Work) wishEnd(row *Wish, state ledger.WishState) error {
	if err := w.countWish(row.Event, -1); err != nil {
		return err
	}
	w.wishSet(row).State = state
	w.wishNotice(row, ledger.NoticeWishEnded)
	return nil
}

func (w *Work) offer(c ledger.Offer) (ledger.Result, error) {
	row, err := w.wish(c.Wish)
	switch {
	case err != nil:
		return ledger.Result{}, err
	case row == nil:
		return ledger.Result{}, fault.New(fault.WishUnknown, "")
	case row.State == ledger.WishOffered && row.Hold == c.Hold:
		h, err := w.hold(c.Hold)
		if err != nil || h == nil {
			return ledger.Result{}, err
		}
		return ledger.Result{Repeat: true, Hold: h.view(), Wish: row.view()}, nil
	case row.State != ledger.WishWaiting:
		return ledger.Result{}, fault.New(fault.Conflict, "the wish is %s", row.State)
	}
	e, layout, err := w.selling(row.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	if c.TTL <= 0 || c.TTL > ledger.OfferTTLMax {
		return ledger.Result{}, invalid("ttl_ms", "1 to %d", ledger.OfferTTLMax)
	}
	h := &Hold{Row: Row{New: true}, Hold: ledger.Hold{
		ID: c.Hold, Event: e.ID, Customer: row.Customer, State: ledger.HoldLive, Area: -1, Currency: e.Currency,
		Created: w.Now, Expires: w.Now + ledger.Time(c.TTL), Offer: row.ID,
	}}
	if err := offered(e, layout, &row.Wish, &c, &h.Hold); err != nil {
		return ledger.Result{}, err
	}
	if h.Area >= 0 {
		err = w.offerPlaces(e, layout, h)
	} else {
		err = w.offerSeats(e, layout, h)
	}
	if err != nil {
		return ledger.Result{}, err
	}
	if err := w.count(e, layout, &h.Hold, 1); err != nil {
		return ledger.Result{}, err
	}
	w.holdSet(h)
	w.note(h, "", "live", "offer")
	w.wishSet(row)
	row.State, row.Hold, row.Offers = ledger.WishOffered, h.ID, row.Offers+1
	w.wishNotice(row, ledger.NoticeWishOffered)
	return ledger.Result{Hold: h.view(), Wish: row.view()}, nil
}

// offered gives a hold the lines of an offer, where it fits the wish.
func offered(e *eventRow, layout *ledger.Layout, wish *ledger.Wish, c *ledger.Offer, h *ledger.Hold) error {
	n := len(c.Seats)
	if n > 0 {
		seats, err := seatList(c.Seats, layout, ledger.OfferSeatsMax)
		if err != nil || wish.Together && !neighbours(layout, seats) && on(GuardOfferFits) {
			return invalid("seat_ids", "they are not seats of the plan, each once, that fit the wish")
		}
		for _, index := range seats {
			line := e.Price(layout.Category[index])
			line.Seat = index
			h.Lines = append(h.Lines, line)
		}
	} else {
		n = c.Quantity
		if c.Area < 0 || int(c.Area) >= len(layout.Areas) || n < 1 || n > ledger.OfferSeatsMax {
			return invalid("area_id", "an offer is of seats, or of places in an area")
		}
		h.Area = c.Area
		line := e.Price(layout.Areas[c.Area].Category)
		line.Seat = -1
		h.Lines = slices.Repeat([]ledger.Line{line}, n)
	}
	if (n < wish.Least || n > min(wish.Quantity, e.SeatsPerHoldMax)) && on(GuardOfferFits) {
		return invalid("quantity", "the wish is for %d to %d places", wish.Least, wish.Quantity)
	}
	for _, line := range h.Lines {
		if !wish.Wants(e.Event, line.Category, section(layout, h.Area, line)) && on(GuardOfferFits) {
			return invalid("wish", "a place is not what was wished for")
		}
	}
	return nil
}

// offerSeats takes returned seats for an offer, where the bounds allow it.
func (w *Work) offerSeats(e *eventRow, layout *ledger.Layout, h *Hold) error {
	seats, err := w.freed(e, h.Seats())
	if err != nil {
		return err
	}
	var taken []int32
	for i, s := range seats {
		if s.State != ledger.Returned && on(GuardOfferReturned) {
			taken = append(taken, s.Index)
		}
		h.Lines[i].Epoch = s.Epoch + 1
	}
	if len(taken) > 0 {
		return &fault.Error{Code: fault.SeatsTaken, Seats: taken}
	}
	if err := w.allow(e, layout, &h.Hold); err != nil {
		return err
	}
	for i, s := range seats {
		w.take(s, h, h.Lines[i].Epoch, ledger.Held)
	}
	return nil
}

// offerPlaces takes returned places of an area for an offer, where the bounds allow it.
func (w *Work) offerPlaces(e *eventRow, layout *ledger.Layout, h *Hold) error {
	n := int32(len(h.Lines))
	buckets, err := w.area(e.ID, h.Area)
	if err != nil {
		return err
	}
	if have, _ := returnedPlaces(buckets); have < n {
		if err := w.expireAll(ExpiredKey{Event: e.ID, Area: h.Area, Max: ledger.ExpireBoundMax}, "taken over"); err != nil {
			return err
		}
	}
	if have, _ := returnedPlaces(buckets); have < n {
		return fault.New(fault.PlacesTaken, "%d places are returned", have)
	}
	if err := w.allow(e, layout, &h.Hold); err != nil {
		return err
	}
	for _, b := range buckets {
		if k := min(n, b.Returned); k > 0 {
			w.bucketSet(b)
			b.Returned, b.Held, b.ReturnedAt = b.Returned-k, b.Held+k, w.Now
			h.Draws = append(h.Draws, Draw{b.Number, k})
			n -= k
		}
	}
	return nil
}

func (w *Work) releaseReturned(c ledger.ReleaseReturned) (ledger.Result, error) {
	e, err := w.event(c.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	if e == nil {
		return ledger.Result{}, fault.New(fault.EventUnknown, "")
	}
	if c.Quantity < 0 || c.Quantity == 0 && len(c.Seats) == 0 {
		return ledger.Result{}, invalid("seat_ids", "name seats, or a quantity")
	}
	layout, err := w.layout(e)
	if err != nil {
		return ledger.Result{}, err
	}
	var seats []*Seat
	if len(c.Seats) > 0 {
		if len(slices.Compact(slices.Sorted(slices.Values(c.Seats)))) < len(c.Seats) {
			return ledger.Result{}, invalid("seat_ids", "a seat is named twice")
		}
		indexes, err := seatList(c.Seats, layout, ledger.BatchSeatsMax)
		if err != nil {
			return ledger.Result{}, err
		}
		if seats, err = w.seatsAsTheyAre(e, indexes); err != nil {
			return ledger.Result{}, err
		}
	}
	var buckets []*Bucket
	if c.Quantity > 0 {
		if c.Area < 0 || int(c.Area) >= len(layout.Areas) {
			return ledger.Result{}, fault.New(fault.SeatUnknown, "there is no such area")
		}
		if buckets, err = w.area(e.ID, c.Area); err != nil {
			return ledger.Result{}, err
		}
	}
	return ledger.Result{Count: w.releaseSeatsReturned(e, seats) + w.releasePlacesReturned(buckets, c.Quantity)}, nil
}

// releaseSeatsReturned makes returned seats available, and says how many.
func (w *Work) releaseSeatsReturned(e *eventRow, seats []*Seat) (count int) {
	t := Transition{Event: e.ID, From: "returned", To: "available", Why: "unwanted", At: w.Now}
	for _, s := range seats {
		if s.State == ledger.Returned {
			w.take(s, &Hold{}, s.Epoch, ledger.Available)
			t.Seats, t.Epoch = append(t.Seats, s.Index), append(t.Epoch, s.Epoch)
			count++
		}
	}
	if count > 0 {
		w.Out.History = append(w.Out.History, t)
	}
	return count
}

// releasePlacesReturned makes at most so many returned places of an area free, and says how many.
func (w *Work) releasePlacesReturned(buckets []*Bucket, most int) (count int) {
	for _, b := range buckets {
		if k := int32(min(most-count, int(b.Returned))); k > 0 {
			w.bucketSet(b)
			b.Returned, b.ReturnedAt = b.Returned-k, w.Now
			count += int(k)
		}
	}
	return count
}

func (w *Work) setReturns(c ledger.SetReturns) (ledger.Result, error) {
	e, err := w.event(c.Event)
	switch {
	case err != nil:
		return ledger.Result{}, err
	case e == nil:
		return ledger.Result{}, fault.New(fault.EventUnknown, "")
	case c.Returns > ledger.ReturnsWaitlist:
		return ledger.Result{}, invalid("returns", "there is no mode %d", c.Returns)
	case e.Returns == c.Returns:
		return ledger.Result{Repeat: true}, nil
	case c.Returns == ledger.ReturnsWaitlist && !e.Waitlist:
		return ledger.Result{}, fault.New(fault.Conflict, "the event has no waitlist")
	}
	if c.Returns == ledger.ReturnsWaitlist && e.Room.Mode != ledger.RoomOff {
		_, room, err := w.roomOf(c.Event)
		if err != nil {
			return ledger.Result{}, err
		}
		if !room.LineEmpty(&e.Room, c.Line, w.Now) && on(GuardLineFirst) {
			return ledger.Result{}, fault.New(fault.Conflict, "somebody is left in the line")
		}
	}
	w.eventSet(e)
	e.Returns = c.Returns
	w.eventNotice(e)
	return ledger.Result{}, nil
}

// wishNotice writes one change of a wish to the outbox (I12), with the wish's next sequence: ids only (E10).
func (w *Work) wishNotice(row *Wish, kind string) {
	w.wishSet(row).Sequence++
	b := strconv.AppendInt(append(make([]byte, 0, noticeSize), `{"v":`...), noticeVersion, 10)
	b = row.ID.AppendText(append(b, `,"wish_id":"`...), id.Wish)
	b = row.Event.AppendText(append(b, `","event_id":"`...), id.Event)
	b = row.Customer.AppendText(append(b, `","customer_id":"`...), id.Customer)
	b = append(append(b, `","state":"`...), row.State.String()...)
	if row.State == ledger.WishOffered {
		b = row.Hold.AppendText(append(b, `","hold_id":"`...), id.Hold)
	}
	b = append(b, `"}`...)
	w.Out.Notices = append(w.Out.Notices, ledger.Notice{Order: row.ID, Sequence: row.Sequence, Kind: kind, Body: b, At: w.Now})
}
