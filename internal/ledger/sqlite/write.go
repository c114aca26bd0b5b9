package sqlite

import (
	"context"
	"database/sql"

	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

const (
	// pruneBound is how many rows of a kind one batch deletes at most.
	pruneBound = 2048
	// pruneEvery is how often what is old is deleted, unless the last time there was more: Sweeps come ten times a second.
	pruneEvery = ledger.Time(10_000)
)

// writer writes what a batch changed.
type writer struct {
	ctx  context.Context
	s    *statements
	now  ledger.Time
	text []byte
	more bool // there is more to delete
	err  error
}

// do runs a statement unless one before it has failed, and gives the number of rows.
func (w *writer) do(stmt *direct, args ...any) (rows int64) {
	if w.err == nil {
		rows, w.err = stmt.exec(w.ctx, args...)
	}
	return rows
}

func (w *writer) write(o *decide.Output) error {
	for _, e := range o.Events {
		w.event(e)
	}
	for _, k := range o.Keys {
		w.do(w.s.keyPut, int64(k.Customer), k.Operation, k.Value, int64(k.Subject), decide.EncodeFields(k.Fields), int64(k.Created))
	}
	for _, c := range o.Limits {
		w.do(w.s.limitPut, int64(c.Key.Scope), int64(c.Key.Of), c.Key.Category, []byte(c.Key.Subject), c.Count)
	}
	for _, c := range o.Quotas {
		w.do(w.s.quotaPut, int64(c.Key.Event), c.Key.Category, c.Key.Section, c.Count)
	}
	w.orders(o)
	for _, h := range o.Holds {
		w.hold(h)
	}
	for _, b := range o.Buckets {
		w.do(w.s.bucketSet, b.Capacity, b.Held, b.Sold, b.Returned, int64(b.ReturnedAt), int64(b.Event), b.Area, b.Number)
	}
	w.seats(o.Seats)
	w.tickets(o.Tickets)
	for _, u := range o.Uses {
		w.use(u)
	}
	w.wishes(o.Wishes)
	w.rooms(o)
	for _, n := range o.Notices {
		w.do(w.s.noticeAdd, int64(n.Order), n.Sequence, n.Kind, n.Alert, string(n.Body), int64(n.At))
	}
	for i := range o.History {
		t := &o.History[i]
		w.text = t.AppendClaims(w.text[:0])
		w.do(w.s.historyAdd, int64(t.Event), int64(t.Claim), t.From, t.To, t.Why, string(w.text), t.Count, int64(t.At))
	}
	if o.Prune {
		w.prune()
	}
	w.changes(o.Changes)
	w.do(w.s.clock, int64(w.now))
	return w.err
}

// seats writes neighbours to which the same happens by one statement.
func (w *writer) seats(list []*decide.Seat) {
	for len(list) > 0 && w.err == nil {
		s, n := list[0], 1
		for n < len(list) && alike(list[n-1], list[n]) {
			n++
		}
		rows := w.do(w.s.seatSet, int64(s.State), int64(s.Claim), s.Epoch, s.WhenFree, int64(s.ReturnedAt),
			int64(s.Event), s.Index, s.Index+int32(n), int64(s.WasState), int64(s.WasClaim), s.WasEpoch)
		if rows != int64(n) && w.err == nil { // the fence (A8): a row is not the one that was decided on
			w.err = &ledger.InvariantError{Event: s.Event, What: "a seat changed under a transaction that holds the only writer"}
		}
		list = list[n:]
	}
}

// alike says whether b is the seat after a and becomes, from the same, the same.
func alike(a, b *decide.Seat) bool {
	return a.Event == b.Event && a.Index+1 == b.Index &&
		a.State == b.State && a.Claim == b.Claim && a.Epoch == b.Epoch && a.WhenFree == b.WhenFree && a.ReturnedAt == b.ReturnedAt &&
		a.WasState == b.WasState && a.WasClaim == b.WasClaim && a.WasEpoch == b.WasEpoch
}

func (w *writer) event(e *decide.EventWrite) {
	body, err := decide.EncodeEvent(e.Event)
	if err != nil {
		w.err = err
		return
	}
	w.do(w.s.eventPut, int64(e.Event.ID), e.Event.Version, int64(e.Event.State), e.Event.Sequence, body)
	if e.Layout != nil {
		w.layout(e)
	}
}

func (w *writer) layout(e *decide.EventWrite) {
	packed, err := decide.EncodeLayout(e.Layout)
	if err != nil {
		w.err = err
		return
	}
	w.do(w.s.layoutAdd, e.Layout.PlanHash, packed)
	w.do(w.s.versionAdd, int64(e.Event.ID))
	w.do(w.s.seatsAdd, int64(e.Event.ID), len(e.Layout.Category))
	for area, a := range e.Layout.Areas {
		for number, capacity := range decide.BucketCapacities(a.Capacity) {
			w.do(w.s.bucketAdd, int64(e.Event.ID), area, number, capacity)
		}
	}
}

func (w *writer) hold(h *decide.Hold) {
	if !h.New && h.Remade {
		lines, draws, exchanged := w.holdTexts(h)
		w.do(w.s.holdRemake, lines, draws, exchanged, int64(h.ID))
	}
	if !h.New && h.State == h.WasState && h.Expires == h.WasExpires {
		w.do(w.s.holdMark, h.Extended, h.Window, int64(h.Order), int64(h.ID))
		return
	}
	if !h.New {
		w.do(w.s.holdSet, int64(h.State), int64(h.Expires), h.Extended, h.Window, int64(h.Order), int64(h.Ended), int64(h.ID))
		return
	}
	lines, draws, exchanged := w.holdTexts(h)
	w.do(w.s.holdAdd, int64(h.ID), int64(h.Event), int64(h.Customer), int64(h.State), h.Area, lines, draws, h.Currency, int64(h.Created),
		int64(h.Expires), h.Extended, h.Window, int64(h.Order), int64(h.Session), int64(h.Exchange), int64(h.Offer), exchanged, int64(h.Ended))
}

// holdTexts are those columns of a hold that are lists.
func (w *writer) holdTexts(h *decide.Hold) (lines, draws, exchanged string) {
	w.text = decide.AppendLines(w.text[:0], h.Lines)
	lines = string(w.text)
	w.text = decide.AppendDraws(w.text[:0], h.Draws)
	draws, exchanged = string(w.text), "[]"
	if len(h.Exchanged) > 0 {
		w.text = decide.AppendExchanged(w.text[:0], h.Exchanged)
		exchanged = string(w.text)
	}
	return lines, draws, exchanged
}

// orders writes ended orders before new ones: the index that allows one PENDING or PAID order a hold looks after every
// row.
func (w *writer) orders(out *decide.Output) {
	for _, o := range out.Orders {
		if !o.New {
			w.do(w.s.orderSet, int64(o.Hold), int64(o.State), o.Reason, o.Payment, o.Rescued, o.AttemptOpen, int64(o.Updated), o.Sequence, int64(o.ID))
		}
		if !o.New && o.Remade {
			w.do(w.s.orderRemake, decide.EncodeDocuments(o.Documents), o.Credit, decide.EncodeFunds(o.Funds), int64(o.ID))
		}
	}
	for _, o := range out.Orders {
		if o.New {
			w.do(w.s.orderAdd, int64(o.ID), int64(o.Hold), int64(o.Event), int64(o.Customer), int64(o.State), o.Reason, o.Amount, o.Currency,
				o.Provider, o.Payment, o.AllowOther, o.Rescued, o.AttemptOpen, decide.EncodeDocuments(o.Documents), int64(o.Created), int64(o.Updated), o.Sequence,
				int64(o.Exchange), o.Credit, decide.EncodeFunds(o.Funds))
		}
	}
	for _, p := range out.Pays {
		w.do(w.s.paymentPut, int64(p.Order), p.Provider, p.ID, p.Currency, int64(p.State), p.Authorized, p.Captured, p.Voided, p.Refunded, int64(p.Refund), p.Promised)
	}
	for _, r := range out.Refunds {
		w.refund(r)
	}
}

func (w *writer) refund(r *decide.Refund) {
	if !r.New {
		w.do(w.s.refundSet, int64(r.State), r.Refused, r.Try, int64(r.ID))
		return
	}
	w.do(w.s.refundAdd, int64(r.ID), int64(r.Order), int64(r.From), r.Provider, r.Payment, decide.EncodeTickets(r.Tickets), int64(r.State),
		r.Amount, r.FeeKept, r.Rule, r.Currency, r.Reason, int64(r.By), r.Refused, r.Try, int64(r.Created))
}

// tickets writes changed ones before new ones: a VOID ticket makes room for the seat's next one.
func (w *writer) tickets(list []*decide.Ticket) {
	for _, t := range list {
		if !t.New {
			w.do(w.s.ticketSet, int64(t.State), int64(t.Exchange), int64(t.Refund), t.Gone, int64(t.ID))
		}
	}
	for _, t := range list {
		if t.New {
			seat := sql.NullInt32{Int32: t.Seat, Valid: t.Seat >= 0}
			area := sql.NullInt32{Int32: t.Area, Valid: t.Area >= 0}
			w.do(w.s.ticketAdd, int64(t.ID), int64(t.Order), int64(t.Event), int64(t.Customer), int64(t.State), seat, area, t.Category, t.Total,
				t.Place, int64(t.Was), int64(t.Exchange), int64(t.Refund), t.Gone)
		}
	}
}

// wishes writes changed ones before new ones: one that has ended makes room for its customer's next one.
func (w *writer) wishes(list []*decide.Wish) {
	for _, r := range list {
		if !r.New {
			w.do(w.s.wishSet, int64(r.State), r.Quantity, r.Least, decide.EncodeNames(r.Categories), decide.EncodeNames(r.Sections), r.Together,
				r.PriceMax, int64(r.Hold), r.Offers, int64(r.Updated), r.Sequence, int64(r.ID))
		}
	}
	for _, r := range list {
		if r.New {
			w.do(w.s.wishAdd, int64(r.ID), int64(r.Event), int64(r.Customer), int64(r.State), r.Quantity, r.Least, decide.EncodeNames(r.Categories),
				decide.EncodeNames(r.Sections), r.Together, r.PriceMax, r.Order, int64(r.Hold), r.Offers, int64(r.Created), int64(r.Updated), r.Sequence)
		}
	}
}

func (w *writer) use(u *decide.CheckIn) {
	if !u.New {
		w.do(w.s.useSet, int64(u.Undone), int64(u.UndoneBy), u.Why, int64(u.Event), int64(u.At), int64(u.Ticket), u.Device)
		return
	}
	w.do(w.s.useAdd, int64(u.Event), int64(u.At), int64(u.Ticket), u.Device, u.Gate, int64(u.By), u.Offline, u.Conflict, int64(u.Undone),
		int64(u.UndoneBy), u.Why)
}

// changes raises each touched event's version by one and writes the change under it (B2).
func (w *writer) changes(changes []ledger.Change) {
	for i := range changes {
		c := &changes[i]
		if w.err != nil {
			return
		}
		if w.err = w.s.versionUp.QueryRowContext(w.ctx, int64(c.Event)).Scan(&c.Version); w.err != nil {
			return
		}
		w.text = decide.AppendChange(w.text[:0], c)
		w.do(w.s.changeAdd, int64(c.Event), c.Version, string(w.text), int64(c.At))
	}
}

// prune deletes what has been kept long enough (A12, B2), a bounded number of rows.
func (w *writer) prune() {
	answers, changes := int64(w.now-ledger.Time(ledger.KeepAnswers)), int64(w.now-ledger.Time(ledger.KeepChanges))
	for _, n := range []int64{
		w.do(w.s.pruneKeys, answers, pruneBound), w.do(w.s.pruneHolds, answers, pruneBound), w.do(w.s.pruneChanges, changes, pruneBound),
	} {
		w.more = w.more || n == pruneBound
	}
}
