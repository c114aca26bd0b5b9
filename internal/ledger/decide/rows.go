package decide

import (
	"encoding/binary"
	"errors"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// CustomerSubject is a customer as the subject of a limit.
func CustomerSubject(customer id.ID) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(customer))
	return string(b[:])
}

// lacking remembers that rows were not locked, while the work goes on to find what else is not (ErrMissing). What it has
// counted by then is thrown away with all the rest.
type lacking struct{ err error }

// note keeps an ErrMissing and gives any other error back.
func (m *lacking) note(err error) error {
	if errors.Is(err, ErrMissing) {
		m.err = err
		return nil
	}
	return err
}

// Each of these gives a row as the batch has made it so far, asking the source the first time.

func (w *Work) event(event id.ID) (*eventRow, error) {
	if e, ok := w.events[event]; ok {
		return e, nil
	}
	e, err := w.src.Event(event)
	if err != nil {
		return nil, err
	}
	var row *eventRow
	if e != nil {
		row = &eventRow{Event: e}
	}
	w.events[event] = row
	return row, nil
}

func (w *Work) layout(e *eventRow) (*ledger.Layout, error) {
	if l, ok := w.layouts[e.PlanHash]; ok {
		return l, nil
	}
	l, err := w.src.Layout(e.PlanHash)
	if err != nil {
		return nil, err
	}
	w.layouts[e.PlanHash] = l
	return l, nil
}

func (w *Work) seat(event id.ID, index int32) (*Seat, error) {
	k := SeatKey{event, index}
	if s, ok := w.seats[k]; ok {
		return s, nil
	}
	if e := w.events[event]; e != nil && e.write != nil && e.write.New { // its rows are written with this batch
		s := &Seat{SeatKey: k}
		w.seats[k] = s
		return s, nil
	}
	s, err := w.src.Seat(k)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, invariant(event, "seat %d of the layout has no row", index)
	}
	w.seats[k] = s
	return s, nil
}

// seatSet marks a seat as changed. Its new state must be set by the caller before or after.
func (w *Work) seatSet(s *Seat) *Seat {
	if !s.Dirty {
		s.Dirty = true
		w.Out.Seats = append(w.Out.Seats, s)
	}
	w.touch(s.Event).seats[s.Index] = struct{}{}
	return s
}

func (w *Work) area(event id.ID, area int32) ([]*Bucket, error) {
	k := AreaKey{event, area}
	if b, ok := w.buckets[k]; ok {
		return b, nil
	}
	b, err := w.src.Buckets(k)
	if err != nil {
		return nil, err
	}
	w.buckets[k] = b
	return b, nil
}

func (w *Work) bucketSet(b *Bucket) *Bucket {
	if !b.Dirty {
		b.Dirty = true
		w.Out.Buckets = append(w.Out.Buckets, b)
	}
	w.touch(b.Event).areas[b.Area] = struct{}{}
	return b
}

func (w *Work) hold(hold id.ID) (*Hold, error) {
	if h, ok := w.holds[hold]; ok {
		return h, nil
	}
	h, err := w.src.Hold(hold)
	if err != nil {
		return nil, err
	}
	w.holds[hold] = h
	return h, nil
}

func (w *Work) holdSet(h *Hold) *Hold {
	if !h.Dirty {
		h.Dirty = true
		w.holds[h.ID] = h
		w.Out.Holds = append(w.Out.Holds, h)
	}
	return h
}

func (w *Work) order(order id.ID) (*Order, error) {
	if order == 0 {
		return nil, nil
	}
	if o, ok := w.orders[order]; ok {
		return o, nil
	}
	o, err := w.src.Order(order)
	if err != nil {
		return nil, err
	}
	w.orders[order] = o
	return o, nil
}

// holdRemake marks a hold of which also lines, draws or exchanged places change. They are replaced, never written into:
// answers that were given share them.
func (w *Work) holdRemake(h *Hold) *Hold {
	h.Remade = true
	return w.holdSet(h)
}

// orderRemake is the same for an order's documents, credit and funds.
func (w *Work) orderRemake(o *Order) *Order {
	o.Remade = true
	return w.orderSet(o)
}

func (w *Work) orderSet(o *Order) *Order {
	o.Updated = w.Now
	if !o.Dirty {
		o.Dirty = true
		w.orders[o.ID] = o
		w.Out.Orders = append(w.Out.Orders, o)
	}
	return o
}

func (w *Work) payment(k PaymentKey) (*Payment, error) {
	if p, ok := w.pays[k]; ok {
		return p, nil
	}
	p, err := w.src.Payment(k)
	if err != nil {
		return nil, err
	}
	w.pays[k] = p
	return p, nil
}

func (w *Work) wish(wish id.ID) (*Wish, error) {
	if r, ok := w.wishes[wish]; ok {
		return r, nil
	}
	r, err := w.src.Wish(wish)
	if err != nil {
		return nil, err
	}
	w.wishes[wish] = r
	return r, nil
}

// newestWish is a customer's newest wish for an event, also where this batch has made it.
func (w *Work) newestWish(k WishKey) (*Wish, error) {
	if r, ok := w.wishOf[k]; ok {
		return r, nil
	}
	r, err := w.src.WishOf(k)
	if err != nil {
		return nil, err
	}
	if r != nil {
		if known, ok := w.wishes[r.ID]; ok {
			r = known
		} else {
			w.wishes[r.ID] = r
		}
	}
	w.wishOf[k] = r
	return r, nil
}

func (w *Work) wishSet(r *Wish) *Wish {
	r.Updated = w.Now
	if !r.Dirty {
		r.Dirty = true
		w.wishes[r.ID] = r
		w.Out.Wishes = append(w.Out.Wishes, r)
	}
	return r
}

func (w *Work) paymentSet(p *Payment) *Payment {
	if !p.Dirty {
		p.Dirty = true
		w.pays[PaymentKey{p.Order, p.Provider, p.ID}] = p
		w.Out.Pays = append(w.Out.Pays, p)
	}
	return p
}

func (w *Work) refund(refund id.ID) (*Refund, error) {
	if refund == 0 {
		return nil, nil
	}
	if r, ok := w.refunds[refund]; ok {
		return r, nil
	}
	r, err := w.src.Refund(refund)
	if err != nil {
		return nil, err
	}
	w.refunds[refund] = r
	return r, nil
}

func (w *Work) refundSet(r *Refund) *Refund {
	if !r.Dirty {
		r.Dirty = true
		w.refunds[r.ID] = r
		w.Out.Refunds = append(w.Out.Refunds, r)
	}
	return r
}

// refundsOf are all refunds of an order, also those made by this batch.
func (w *Work) refundsOf(order id.ID) ([]*Refund, error) {
	stored, err := w.src.RefundsOf(order)
	if err != nil {
		return nil, err
	}
	var all []*Refund
	for _, r := range stored {
		if known := w.refunds[r.ID]; known != nil {
			r = known
		} else {
			w.refunds[r.ID] = r
		}
		all = append(all, r)
	}
	for _, r := range w.Out.Refunds {
		if r.New && r.Order == order {
			all = append(all, r)
		}
	}
	return all, nil
}

// ticket gives a ticket with its order, nil where there is none.
func (w *Work) ticket(ticket id.ID) (*Ticket, *Order, error) {
	order, err := w.src.TicketOrder(ticket)
	if err != nil {
		return nil, nil, err
	}
	if order == 0 {
		for _, t := range w.Out.Tickets {
			if t.New && t.ID == ticket {
				order = t.Order
			}
		}
	}
	if order == 0 {
		return nil, nil, nil
	}
	o, err := w.order(order)
	if err != nil {
		return nil, nil, err
	}
	tickets, err := w.ticketsOf(order)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range tickets {
		if t.ID == ticket && o != nil {
			return t, o, nil
		}
	}
	return nil, nil, nil
}

func (w *Work) usesOf(ticket id.ID) ([]*CheckIn, error) {
	if u, ok := w.uses[ticket]; ok {
		return u, nil
	}
	u, err := w.src.CheckIns(ticket)
	if err != nil {
		return nil, err
	}
	w.uses[ticket] = u
	return u, nil
}

func (w *Work) useSet(u *CheckIn) *CheckIn {
	if !u.Dirty {
		u.Dirty = true
		w.Out.Uses = append(w.Out.Uses, u)
	}
	return u
}

func (w *Work) ticketsOf(order id.ID) ([]*Ticket, error) {
	if t, ok := w.tickets[order]; ok {
		return t, nil
	}
	t, err := w.src.Tickets(order)
	if err != nil {
		return nil, err
	}
	w.tickets[order] = t
	return t, nil
}

func (w *Work) ticketSet(t *Ticket) *Ticket {
	if !t.Dirty {
		t.Dirty = true
		w.Out.Tickets = append(w.Out.Tickets, t)
	}
	return t
}

func (w *Work) key(k IdemKey) (*Key, error) {
	if r, ok := w.keys[k]; ok {
		return r, nil
	}
	r, err := w.src.Key(k)
	if err != nil {
		return nil, err
	}
	w.keys[k] = r
	return r, nil
}

func (w *Work) keyAdd(k IdemKey, subject id.ID, fields []ledger.KeyField) {
	if k.Value == "" {
		return
	}
	r := &Key{IdemKey: k, Subject: subject, Fields: fields, Created: w.Now}
	w.keys[k] = r
	w.Out.Keys = append(w.Out.Keys, r)
}

func (w *Work) limit(k LimitKey) (*counter, error) {
	if c, ok := w.limits[k]; ok {
		return c, nil
	}
	n, err := w.src.Limit(k)
	if err != nil {
		return nil, err
	}
	c := &counter{count: n}
	w.limits[k] = c
	return c, nil
}

func (w *Work) limitAdd(k LimitKey, c *counter, n int) {
	c.count += n
	if c.write == nil {
		out := &Counter[LimitKey]{Key: k}
		c.write = &out.Count
		w.Out.Limits = append(w.Out.Limits, out)
	}
	*c.write = c.count
}

func (w *Work) quota(k QuotaKey) (*counter, error) {
	if c, ok := w.quotas[k]; ok {
		return c, nil
	}
	n, err := w.src.Quota(k)
	if err != nil {
		return nil, err
	}
	c := &counter{count: n}
	w.quotas[k] = c
	return c, nil
}

func (w *Work) quotaAdd(k QuotaKey, c *counter, n int) {
	c.count += n
	if c.write == nil {
		out := &Counter[QuotaKey]{Key: k}
		c.write = &out.Count
		w.Out.Quotas = append(w.Out.Quotas, out)
	}
	*c.write = c.count
}
