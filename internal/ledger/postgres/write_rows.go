package postgres

import (
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// orders writes changed orders before new ones: the index that allows one PENDING or PAID order a hold looks after every
// row.
func (w *writer) orders() {
	added, set := split(w.out.Orders, func(o *decide.Order) bool { return o.New })
	if len(set) > 0 {
		w.must(len(set), changed(set[0].Event, "an order"), `UPDATE shard.orders o SET hold_id = u.hold_id, state = u.state, reason = u.reason,
 payment_id = u.payment_id, rescued = u.rescued, attempt_open = u.attempt_open, updated_at = u.updated_at, sequence = u.sequence
 FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::text[], $5::text[], $6::smallint[], $7::smallint[], $8::bigint[], $9::bigint[])
 AS u(order_id, hold_id, state, reason, payment_id, rescued, attempt_open, updated_at, sequence) WHERE o.order_id = u.order_id`,
			column(set, func(o *decide.Order) int64 { return int64(o.ID) }),
			column(set, func(o *decide.Order) int64 { return int64(o.Hold) }),
			column(set, func(o *decide.Order) int16 { return int16(o.State) }),
			column(set, func(o *decide.Order) string { return o.Reason }),
			column(set, func(o *decide.Order) string { return o.Payment }),
			column(set, func(o *decide.Order) int16 { return bit(o.Rescued) }),
			column(set, func(o *decide.Order) int16 { return bit(o.AttemptOpen) }),
			column(set, func(o *decide.Order) int64 { return int64(o.Updated) }),
			column(set, func(o *decide.Order) int64 { return o.Sequence }))
	}
	if len(added) > 0 {
		w.exec(`INSERT INTO shard.orders (order_id, hold_id, event_id, customer_id, state, reason, amount, currency, provider, payment_id,
 allow_other, rescued, attempt_open, documents, created_at, updated_at, sequence)
 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[],
 $11::smallint[], $12::smallint[], $13::smallint[], $14::text[], $15::bigint[], $16::bigint[], $17::bigint[])`,
			column(added, func(o *decide.Order) int64 { return int64(o.ID) }),
			column(added, func(o *decide.Order) int64 { return int64(o.Hold) }),
			column(added, func(o *decide.Order) int64 { return int64(o.Event) }),
			column(added, func(o *decide.Order) int64 { return int64(o.Customer) }),
			column(added, func(o *decide.Order) int16 { return int16(o.State) }),
			column(added, func(o *decide.Order) string { return o.Reason }),
			column(added, func(o *decide.Order) int64 { return o.Amount }),
			column(added, func(o *decide.Order) string { return o.Currency }),
			column(added, func(o *decide.Order) string { return o.Provider }),
			column(added, func(o *decide.Order) string { return o.Payment }),
			column(added, func(o *decide.Order) int16 { return bit(o.AllowOther) }),
			column(added, func(o *decide.Order) int16 { return bit(o.Rescued) }),
			column(added, func(o *decide.Order) int16 { return bit(o.AttemptOpen) }),
			column(added, func(o *decide.Order) string { return decide.EncodeDocuments(o.Documents) }),
			column(added, func(o *decide.Order) int64 { return int64(o.Created) }),
			column(added, func(o *decide.Order) int64 { return int64(o.Updated) }),
			column(added, func(o *decide.Order) int64 { return o.Sequence }))
	}
}

// payments of a locked order: nobody else can write them.
func (w *writer) payments() {
	list := w.out.Pays
	if len(list) == 0 {
		return
	}
	w.exec(`INSERT INTO shard.payments AS p (order_id, provider, payment_id, currency, state, authorized, captured, voided, refunded, refund_id)
 SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
 ON CONFLICT (order_id, provider, payment_id) DO UPDATE SET state = excluded.state, authorized = excluded.authorized, captured = excluded.captured,
 voided = excluded.voided, refunded = excluded.refunded, refund_id = excluded.refund_id`,
		column(list, func(p *decide.Payment) int64 { return int64(p.Order) }),
		column(list, func(p *decide.Payment) string { return p.Provider }),
		column(list, func(p *decide.Payment) string { return p.ID }),
		column(list, func(p *decide.Payment) string { return p.Currency }),
		column(list, func(p *decide.Payment) int16 { return int16(p.State) }),
		column(list, func(p *decide.Payment) int64 { return p.Authorized }),
		column(list, func(p *decide.Payment) int64 { return p.Captured }),
		column(list, func(p *decide.Payment) int64 { return p.Voided }),
		column(list, func(p *decide.Payment) int64 { return p.Refunded }),
		column(list, func(p *decide.Payment) int64 { return int64(p.Refund) }))
}

// refunds of a locked order: nobody else can write them.
func (w *writer) refunds() {
	list := w.out.Refunds
	if len(list) == 0 {
		return
	}
	w.exec(`INSERT INTO shard.refunds (refund_id, order_id, provider, payment_id, state, amount, currency, reason, created_at)
 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::text[], $8::text[], $9::bigint[])
 ON CONFLICT (refund_id) DO UPDATE SET state = excluded.state`,
		column(list, func(r *decide.Refund) int64 { return int64(r.ID) }),
		column(list, func(r *decide.Refund) int64 { return int64(r.Order) }),
		column(list, func(r *decide.Refund) string { return r.Provider }),
		column(list, func(r *decide.Refund) string { return r.Payment }),
		column(list, func(r *decide.Refund) int16 { return int16(r.State) }),
		column(list, func(r *decide.Refund) int64 { return r.Amount }),
		column(list, func(r *decide.Refund) string { return r.Currency }),
		column(list, func(r *decide.Refund) string { return r.Reason }),
		column(list, func(r *decide.Refund) int64 { return int64(r.Created) }))
}

func (w *writer) holds() {
	added, set := split(w.out.Holds, func(h *decide.Hold) bool { return h.New })
	if len(set) > 0 {
		w.must(len(set), changed(set[0].Event, "a hold"), `UPDATE shard.holds h SET state = u.state, expires_at = u.expires_at,
 extended_count = u.extended_count, window_used = u.window_used, order_id = u.order_id
 FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::integer[], $5::smallint[], $6::bigint[])
 AS u(hold_id, state, expires_at, extended_count, window_used, order_id) WHERE h.hold_id = u.hold_id`,
			column(set, func(h *decide.Hold) int64 { return int64(h.ID) }),
			column(set, func(h *decide.Hold) int16 { return int16(h.State) }),
			column(set, func(h *decide.Hold) int64 { return int64(h.Expires) }),
			column(set, func(h *decide.Hold) int32 { return int32(h.Extended) }),
			column(set, func(h *decide.Hold) int16 { return bit(h.Window) }),
			column(set, func(h *decide.Hold) int64 { return int64(h.Order) }))
	}
	if len(added) > 0 {
		w.exec(`INSERT INTO shard.holds (hold_id, event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at,
 extended_count, window_used, order_id, session_id, exchange_of, offer_id)
 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::integer[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::bigint[],
 $11::integer[], $12::smallint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[])`,
			column(added, func(h *decide.Hold) int64 { return int64(h.ID) }),
			column(added, func(h *decide.Hold) int64 { return int64(h.Event) }),
			column(added, func(h *decide.Hold) int64 { return int64(h.Customer) }),
			column(added, func(h *decide.Hold) int16 { return int16(h.State) }),
			column(added, func(h *decide.Hold) int32 { return h.Area }),
			column(added, func(h *decide.Hold) string { return w.string(decide.AppendLines(w.text[:0], h.Lines)) }),
			column(added, func(h *decide.Hold) string { return w.string(decide.AppendDraws(w.text[:0], h.Draws)) }),
			column(added, func(h *decide.Hold) string { return h.Currency }),
			column(added, func(h *decide.Hold) int64 { return int64(h.Created) }),
			column(added, func(h *decide.Hold) int64 { return int64(h.Expires) }),
			column(added, func(h *decide.Hold) int32 { return int32(h.Extended) }),
			column(added, func(h *decide.Hold) int16 { return bit(h.Window) }),
			column(added, func(h *decide.Hold) int64 { return int64(h.Order) }),
			column(added, func(h *decide.Hold) int64 { return int64(h.Session) }),
			column(added, func(h *decide.Hold) int64 { return int64(h.Exchange) }),
			column(added, func(h *decide.Hold) int64 { return int64(h.Offer) }))
	}
}

// string keeps the buffer that a text was written to.
func (w *writer) string(text []byte) string {
	w.text = text
	return string(text)
}

func (w *writer) buckets() {
	list := w.out.Buckets
	if len(list) == 0 {
		return
	}
	w.must(len(list), changed(list[0].Event, "an area"), `UPDATE shard.buckets b SET capacity = u.capacity, held = u.held, sold = u.sold
 FROM unnest($1::bigint[], $2::integer[], $3::smallint[], $4::integer[], $5::integer[], $6::integer[]) AS u(event_id, area, number, capacity, held, sold)
 WHERE b.event_id = u.event_id AND b.area = u.area AND b.number = u.number`,
		column(list, func(b *decide.Bucket) int64 { return int64(b.Event) }),
		column(list, func(b *decide.Bucket) int32 { return b.Area }),
		column(list, func(b *decide.Bucket) int16 { return b.Number }),
		column(list, func(b *decide.Bucket) int32 { return b.Capacity }),
		column(list, func(b *decide.Bucket) int32 { return b.Held }),
		column(list, func(b *decide.Bucket) int32 { return b.Sold }))
}

// seats are fenced (A8): a row that is not in the state, claim and epoch that were decided on is not written.
func (w *writer) seats() {
	list := w.out.Seats
	if len(list) == 0 {
		return
	}
	w.must(len(list), changed(list[0].Event, "a seat"), `UPDATE shard.seats s SET state = u.state, claim_id = u.claim_id, epoch = u.epoch,
 when_free = u.when_free, returned_at = u.returned_at
 FROM unnest($1::bigint[], $2::integer[], $3::smallint[], $4::bigint[], $5::bigint[], $6::smallint[], $7::bigint[], $8::smallint[], $9::bigint[], $10::bigint[])
 AS u(event_id, seat_index, state, claim_id, epoch, when_free, returned_at, was_state, was_claim, was_epoch)
 WHERE s.event_id = u.event_id AND s.seat_index = u.seat_index AND s.state = u.was_state AND s.claim_id = u.was_claim AND s.epoch = u.was_epoch`,
		column(list, func(s *decide.Seat) int64 { return int64(s.Event) }),
		column(list, func(s *decide.Seat) int32 { return s.Index }),
		column(list, func(s *decide.Seat) int16 { return int16(s.State) }),
		column(list, func(s *decide.Seat) int64 { return int64(s.Claim) }),
		column(list, func(s *decide.Seat) int64 { return s.Epoch }),
		column(list, func(s *decide.Seat) int16 { return bit(s.WhenFree) }),
		column(list, func(s *decide.Seat) int64 { return int64(s.ReturnedAt) }),
		column(list, func(s *decide.Seat) int16 { return int16(s.WasState) }),
		column(list, func(s *decide.Seat) int64 { return int64(s.WasClaim) }),
		column(list, func(s *decide.Seat) int64 { return s.WasEpoch }))
}

// tickets writes changed ones first: a void ticket makes room for the seat's next one.
func (w *writer) tickets() {
	added, set := split(w.out.Tickets, func(t *decide.Ticket) bool { return t.New })
	if len(set) > 0 {
		w.must(len(set), changed(set[0].Event, "a ticket"), `UPDATE shard.tickets t SET state = u.state
 FROM unnest($1::bigint[], $2::smallint[]) AS u(ticket_id, state) WHERE t.ticket_id = u.ticket_id`,
			column(set, func(t *decide.Ticket) int64 { return int64(t.ID) }),
			column(set, func(t *decide.Ticket) int16 { return int16(t.State) }))
	}
	if len(added) > 0 {
		w.exec(`INSERT INTO shard.tickets (ticket_id, order_id, event_id, customer_id, state, seat_index, area, category, total)
 SELECT u.a, u.b, u.c, u.d, u.e, nullif(u.f, -1), nullif(u.g, -1), u.h, u.i
 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::integer[], $7::integer[], $8::smallint[], $9::bigint[])
 AS u(a, b, c, d, e, f, g, h, i)`,
			column(added, func(t *decide.Ticket) int64 { return int64(t.ID) }),
			column(added, func(t *decide.Ticket) int64 { return int64(t.Order) }),
			column(added, func(t *decide.Ticket) int64 { return int64(t.Event) }),
			column(added, func(t *decide.Ticket) int64 { return int64(t.Customer) }),
			column(added, func(t *decide.Ticket) int16 { return int16(t.State) }),
			column(added, func(t *decide.Ticket) int32 { return t.Seat }),
			column(added, func(t *decide.Ticket) int32 { return t.Area }),
			column(added, func(t *decide.Ticket) int16 { return t.Category }),
			column(added, func(t *decide.Ticket) int64 { return t.Total }))
	}
}

func (w *writer) notices() {
	list := w.out.Notices
	if len(list) == 0 {
		return
	}
	w.exec(`INSERT INTO shard.outbox (order_id, sequence, kind, alert, body, created_at)
 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::smallint[], $5::text[], $6::bigint[])`,
		column(list, func(n ledger.Notice) int64 { return int64(n.Order) }),
		column(list, func(n ledger.Notice) int64 { return n.Sequence }),
		column(list, func(n ledger.Notice) string { return n.Kind }),
		column(list, func(n ledger.Notice) int16 { return bit(n.Alert) }),
		column(list, func(n ledger.Notice) string { return string(n.Body) }),
		column(list, func(n ledger.Notice) int64 { return int64(n.At) }))
}

func (w *writer) history() {
	list := w.out.History
	if len(list) == 0 {
		return
	}
	w.exec(`INSERT INTO shard.history (event_id, claim_id, was, becomes, why, seats, places, at)
 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::integer[], $8::bigint[])`,
		column(list, func(t decide.Transition) int64 { return int64(t.Event) }),
		column(list, func(t decide.Transition) int64 { return int64(t.Claim) }),
		column(list, func(t decide.Transition) string { return t.From }),
		column(list, func(t decide.Transition) string { return t.To }),
		column(list, func(t decide.Transition) string { return t.Why }),
		column(list, func(t decide.Transition) string { return w.string(t.AppendClaims(w.text[:0])) }),
		column(list, func(t decide.Transition) int32 { return int32(t.Count) }),
		column(list, func(t decide.Transition) int64 { return int64(t.At) }))
}
