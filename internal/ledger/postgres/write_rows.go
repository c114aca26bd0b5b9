package postgres

import (
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger/decide"
)

// orders writes changed orders before new ones: the index that allows one PENDING or PAID order a hold looks after every
// row.
func (w *writer) orders() {
	added, set := split(w.out.Orders, func(o *decide.Order) bool { return o.New })
	w.ordersSet(set)
	w.ordersRemake(remade(set, func(o *decide.Order) bool { return o.Remade }))
	w.ordersAdd(added)
}

// remade are those changed rows of which more changes than usual.
func remade[T any](rows []*T, is func(*T) bool) (some []*T) {
	for _, r := range rows {
		if is(r) {
			some = append(some, r)
		}
	}
	return some
}

func (w *writer) ordersRemake(set []*decide.Order) {
	r := w.rowset("orders", len(set))
	r.match("order_id", r.int64s(func(i int) int64 { return int64(set[i].ID) }))
	r.text("documents", func(i int) string { return decide.EncodeDocuments(set[i].Documents) })
	r.big("credit", func(i int) int64 { return set[i].Credit })
	r.text("funds", func(i int) string { return decide.EncodeFunds(set[i].Funds) })
	r.update(changed("an order", func() id.ID { return set[0].Event }))
}

func (w *writer) ordersSet(set []*decide.Order) {
	r := w.rowset("orders", len(set))
	r.match("order_id", r.int64s(func(i int) int64 { return int64(set[i].ID) }))
	r.big("hold_id", func(i int) int64 { return int64(set[i].Hold) })
	r.small("state", func(i int) int16 { return int16(set[i].State) })
	r.word("reason", func(i int) string { return set[i].Reason })
	r.text("payment_id", func(i int) string { return set[i].Payment })
	r.yes("rescued", func(i int) bool { return set[i].Rescued })
	r.yes("attempt_open", func(i int) bool { return set[i].AttemptOpen })
	r.big("updated_at", func(i int) int64 { return int64(set[i].Updated) })
	r.big("sequence", func(i int) int64 { return set[i].Sequence })
	r.update(changed("an order", func() id.ID { return set[0].Event }))
}

func (w *writer) ordersAdd(added []*decide.Order) {
	r := w.rowset("orders", len(added))
	r.big("order_id", func(i int) int64 { return int64(added[i].ID) })
	r.big("hold_id", func(i int) int64 { return int64(added[i].Hold) })
	r.big("event_id", func(i int) int64 { return int64(added[i].Event) })
	r.big("customer_id", func(i int) int64 { return int64(added[i].Customer) })
	r.small("state", func(i int) int16 { return int16(added[i].State) })
	r.word("reason", func(i int) string { return added[i].Reason })
	r.big("amount", func(i int) int64 { return added[i].Amount })
	r.word("currency", func(i int) string { return added[i].Currency })
	r.word("provider", func(i int) string { return added[i].Provider })
	r.word("payment_id", func(i int) string { return added[i].Payment })
	r.yes("allow_other", func(i int) bool { return added[i].AllowOther })
	r.yes("rescued", func(i int) bool { return added[i].Rescued })
	r.yes("attempt_open", func(i int) bool { return added[i].AttemptOpen })
	r.word("documents", func(i int) string { return decide.EncodeDocuments(added[i].Documents) })
	r.big("created_at", func(i int) int64 { return int64(added[i].Created) })
	r.big("updated_at", func(i int) int64 { return int64(added[i].Updated) })
	r.big("sequence", func(i int) int64 { return added[i].Sequence })
	if slices.ContainsFunc(added, func(o *decide.Order) bool { return o.Exchange != 0 }) { // else as the columns' defaults say
		r.big("exchange_of", func(i int) int64 { return int64(added[i].Exchange) })
		r.big("credit", func(i int) int64 { return added[i].Credit })
		r.word("funds", func(i int) string { return decide.EncodeFunds(added[i].Funds) })
	}
	r.insert("")
}

// payments of a locked order: nobody else can write them.
func (w *writer) payments() {
	added, set := split(w.out.Pays, func(p *decide.Payment) bool { return p.New })
	w.paymentsSet(set)
	w.paymentsAdd(added)
}

func (w *writer) paymentsSet(set []*decide.Payment) {
	r := w.rowset("payments", len(set))
	r.match("order_id", r.int64s(func(i int) int64 { return int64(set[i].Order) }))
	r.small("state", func(i int) int16 { return int16(set[i].State) })
	r.big("authorized", func(i int) int64 { return set[i].Authorized })
	r.big("captured", func(i int) int64 { return set[i].Captured })
	r.big("voided", func(i int) int64 { return set[i].Voided })
	r.big("refunded", func(i int) int64 { return set[i].Refunded })
	r.big("refund_id", func(i int) int64 { return int64(set[i].Refund) })
	r.big("promised", func(i int) int64 { return set[i].Promised })
	r.match("provider", r.own(func(i int) string { return set[i].Provider }))
	r.match("payment_id", r.own(func(i int) string { return set[i].ID }))
	r.update(changed("a payment", func() id.ID { return w.orderEvent(set[0].Order) }))
}

func (w *writer) paymentsAdd(added []*decide.Payment) {
	r := w.rowset("payments", len(added))
	r.big("order_id", func(i int) int64 { return int64(added[i].Order) })
	r.word("provider", func(i int) string { return added[i].Provider })
	r.text("payment_id", func(i int) string { return added[i].ID })
	r.word("currency", func(i int) string { return added[i].Currency })
	r.small("state", func(i int) int16 { return int16(added[i].State) })
	r.big("authorized", func(i int) int64 { return added[i].Authorized })
	r.big("captured", func(i int) int64 { return added[i].Captured })
	r.big("voided", func(i int) int64 { return added[i].Voided })
	r.big("refunded", func(i int) int64 { return added[i].Refunded })
	r.big("refund_id", func(i int) int64 { return int64(added[i].Refund) })
	if slices.ContainsFunc(added, func(p *decide.Payment) bool { return p.Promised != 0 }) {
		r.big("promised", func(i int) int64 { return added[i].Promised })
	}
	r.insert("")
}

// refunds of a locked order: nobody else can write them.
func (w *writer) refunds() {
	added, set := split(w.out.Refunds, func(r *decide.Refund) bool { return r.New })
	w.refundsSet(set)
	w.refundsAdd(added)
}

func (w *writer) refundsSet(set []*decide.Refund) {
	r := w.rowset("refunds", len(set))
	r.match("refund_id", r.int64s(func(i int) int64 { return int64(set[i].ID) }))
	r.small("state", func(i int) int16 { return int16(set[i].State) })
	r.text("refused", func(i int) string { return set[i].Refused })
	r.mid("try_count", func(i int) int32 { return int32(set[i].Try) })
	r.update(changed("a refund", func() id.ID { return w.orderEvent(set[0].Order) }))
}

func (w *writer) refundsAdd(added []*decide.Refund) {
	r := w.rowset("refunds", len(added))
	r.big("refund_id", func(i int) int64 { return int64(added[i].ID) })
	r.big("order_id", func(i int) int64 { return int64(added[i].Order) })
	r.big("from_order", func(i int) int64 { return int64(added[i].From) })
	r.word("provider", func(i int) string { return added[i].Provider })
	r.text("payment_id", func(i int) string { return added[i].Payment })
	r.text("tickets", func(i int) string { return decide.EncodeTickets(added[i].Tickets) })
	r.small("state", func(i int) int16 { return int16(added[i].State) })
	r.big("amount", func(i int) int64 { return added[i].Amount })
	r.big("fee_kept", func(i int) int64 { return added[i].FeeKept })
	r.word("rule", func(i int) string { return added[i].Rule })
	r.word("currency", func(i int) string { return added[i].Currency })
	r.word("reason", func(i int) string { return added[i].Reason })
	r.big("by_id", func(i int) int64 { return int64(added[i].By) })
	r.word("refused", func(i int) string { return added[i].Refused })
	r.mid("try_count", func(i int) int32 { return int32(added[i].Try) })
	r.big("created_at", func(i int) int64 { return int64(added[i].Created) })
	r.insert("")
}

func (w *writer) holds() {
	added, set := split(w.out.Holds, func(h *decide.Hold) bool { return h.New })
	w.holdsSet(set)
	w.holdsRemake(remade(set, func(h *decide.Hold) bool { return h.Remade }))
	w.holdsAdd(added)
}

func (w *writer) holdsRemake(set []*decide.Hold) {
	r := w.rowset("holds", len(set))
	r.match("hold_id", r.int64s(func(i int) int64 { return int64(set[i].ID) }))
	r.text("lines", func(i int) string { return w.string(decide.AppendLines(w.buffer[:0], set[i].Lines)) })
	r.text("draws", func(i int) string { return w.string(decide.AppendDraws(w.buffer[:0], set[i].Draws)) })
	r.text("exchanged", func(i int) string { return w.string(decide.AppendExchanged(w.buffer[:0], set[i].Exchanged)) })
	r.update(changed("a hold", func() id.ID { return set[0].Event }))
}

func (w *writer) holdsSet(set []*decide.Hold) {
	r := w.rowset("holds", len(set))
	r.match("hold_id", r.int64s(func(i int) int64 { return int64(set[i].ID) }))
	r.small("state", func(i int) int16 { return int16(set[i].State) })
	r.big("expires_at", func(i int) int64 { return int64(set[i].Expires) })
	r.mid("extended_count", func(i int) int32 { return int32(set[i].Extended) })
	r.yes("window_used", func(i int) bool { return set[i].Window })
	r.big("order_id", func(i int) int64 { return int64(set[i].Order) })
	if slices.ContainsFunc(set, unpaid) {
		r.big("ended_at", func(i int) int64 { return int64(set[i].Ended) })
	}
	r.update(changed("a hold", func() id.ID { return set[0].Event }))
}

func (w *writer) holdsAdd(added []*decide.Hold) {
	r := w.rowset("holds", len(added))
	r.big("hold_id", func(i int) int64 { return int64(added[i].ID) })
	r.big("event_id", func(i int) int64 { return int64(added[i].Event) })
	r.big("customer_id", func(i int) int64 { return int64(added[i].Customer) })
	r.small("state", func(i int) int16 { return int16(added[i].State) })
	r.mid("area", func(i int) int32 { return added[i].Area })
	r.text("lines", func(i int) string { return w.string(decide.AppendLines(w.buffer[:0], added[i].Lines)) })
	r.word("draws", func(i int) string { return w.string(decide.AppendDraws(w.buffer[:0], added[i].Draws)) })
	r.word("currency", func(i int) string { return added[i].Currency })
	r.big("created_at", func(i int) int64 { return int64(added[i].Created) })
	r.big("expires_at", func(i int) int64 { return int64(added[i].Expires) })
	r.mid("extended_count", func(i int) int32 { return int32(added[i].Extended) })
	r.yes("window_used", func(i int) bool { return added[i].Window })
	r.big("order_id", func(i int) int64 { return int64(added[i].Order) })
	r.big("session_id", func(i int) int64 { return int64(added[i].Session) })
	r.big("exchange_of", func(i int) int64 { return int64(added[i].Exchange) })
	r.big("offer_id", func(i int) int64 { return int64(added[i].Offer) })
	if slices.ContainsFunc(added, func(h *decide.Hold) bool { return len(h.Exchanged) > 0 }) {
		r.text("exchanged", func(i int) string { return w.string(decide.AppendExchanged(w.buffer[:0], added[i].Exchanged)) })
	}
	if slices.ContainsFunc(added, unpaid) {
		r.big("ended_at", func(i int) int64 { return int64(added[i].Ended) })
	}
	r.insert("")
}

// unpaid says whether a hold has ended without a sale: with few of those that a batch changes it has.
func unpaid(h *decide.Hold) bool { return h.Ended != 0 }

// string keeps the buffer that a text was written to.
func (w *writer) string(text []byte) string {
	w.buffer = text
	return string(text)
}

func (w *writer) buckets() {
	set := w.out.Buckets
	r := w.rowset("buckets", len(set))
	r.match("event_id", r.int64s(func(i int) int64 { return int64(set[i].Event) }))
	r.match("area", r.int32s(func(i int) int32 { return set[i].Area }))
	r.match("number", r.int16s(func(i int) int16 { return set[i].Number }))
	r.mid("capacity", func(i int) int32 { return set[i].Capacity })
	r.mid("held", func(i int) int32 { return set[i].Held })
	r.mid("sold", func(i int) int32 { return set[i].Sold })
	r.mid("returned", func(i int) int32 { return set[i].Returned })
	r.big("returned_at", func(i int) int64 { return int64(set[i].ReturnedAt) })
	r.update(changed("an area", func() id.ID { return set[0].Event }))
}

// seats are fenced (A8): a row that is not in the state, claim and epoch that were decided on is not written.
func (w *writer) seats() {
	set := w.out.Seats
	r := w.rowset("seats", len(set))
	r.match("event_id", r.int64s(func(i int) int64 { return int64(set[i].Event) }))
	r.match("seat_index", r.int32s(func(i int) int32 { return set[i].Index }))
	r.match("state", r.int16s(func(i int) int16 { return int16(set[i].WasState) }))
	r.match("claim_id", r.int64s(func(i int) int64 { return int64(set[i].WasClaim) }))
	r.match("epoch", r.int64s(func(i int) int64 { return set[i].WasEpoch }))
	r.small("state", func(i int) int16 { return int16(set[i].State) })
	r.big("claim_id", func(i int) int64 { return int64(set[i].Claim) })
	r.big("epoch", func(i int) int64 { return set[i].Epoch })
	r.yes("when_free", func(i int) bool { return set[i].WhenFree })
	r.big("returned_at", func(i int) int64 { return int64(set[i].ReturnedAt) })
	r.update(changed("a seat", func() id.ID { return set[0].Event }))
}

// tickets writes changed ones first: a void ticket makes room for the seat's next one.
func (w *writer) tickets() {
	added, set := split(w.out.Tickets, func(t *decide.Ticket) bool { return t.New })
	w.ticketsSet(set)
	w.ticketsAdd(added)
}

func (w *writer) ticketsSet(set []*decide.Ticket) {
	r := w.rowset("tickets", len(set))
	r.match("ticket_id", r.int64s(func(i int) int64 { return int64(set[i].ID) }))
	r.small("state", func(i int) int16 { return int16(set[i].State) })
	r.big("exchange_hold", func(i int) int64 { return int64(set[i].Exchange) })
	r.big("refund_id", func(i int) int64 { return int64(set[i].Refund) })
	r.yes("gone", func(i int) bool { return set[i].Gone })
	r.update(changed("a ticket", func() id.ID { return set[0].Event }))
}

func (w *writer) ticketsAdd(added []*decide.Ticket) {
	r := w.rowset("tickets", len(added))
	r.big("ticket_id", func(i int) int64 { return int64(added[i].ID) })
	r.big("order_id", func(i int) int64 { return int64(added[i].Order) })
	r.big("event_id", func(i int) int64 { return int64(added[i].Event) })
	r.big("customer_id", func(i int) int64 { return int64(added[i].Customer) })
	r.small("state", func(i int) int16 { return int16(added[i].State) })
	r.set("seat_index", "nullif("+r.int32s(func(i int) int32 { return added[i].Seat })+", -1)")
	r.set("area", "nullif("+r.int32s(func(i int) int32 { return added[i].Area })+", -1)")
	r.small("category", func(i int) int16 { return added[i].Category })
	r.big("total", func(i int) int64 { return added[i].Total })
	r.mid("place", func(i int) int32 { return added[i].Place })
	if slices.ContainsFunc(added, func(t *decide.Ticket) bool { return t.Was != 0 || t.Exchange != 0 || t.Refund != 0 || t.Gone }) {
		r.big("was_id", func(i int) int64 { return int64(added[i].Was) })
		r.big("exchange_hold", func(i int) int64 { return int64(added[i].Exchange) })
		r.big("refund_id", func(i int) int64 { return int64(added[i].Refund) })
		r.yes("gone", func(i int) bool { return added[i].Gone })
	}
	r.insert("")
}

// uses of a locked order's tickets: nobody else can write them.
func (w *writer) uses() {
	added, set := split(w.out.Uses, func(u *decide.CheckIn) bool { return u.New })
	r := w.rowset("checkins", len(set))
	r.match("event_id", r.int64s(func(i int) int64 { return int64(set[i].Event) }))
	r.match("at", r.int64s(func(i int) int64 { return int64(set[i].At) }))
	r.match("ticket_id", r.int64s(func(i int) int64 { return int64(set[i].Ticket) }))
	r.match("device", r.own(func(i int) string { return set[i].Device }))
	r.big("undone_at", func(i int) int64 { return int64(set[i].Undone) })
	r.big("undone_by", func(i int) int64 { return int64(set[i].UndoneBy) })
	r.text("why", func(i int) string { return set[i].Why })
	r.update(changed("the use of a ticket", func() id.ID { return set[0].Event }))

	r = w.rowset("checkins", len(added))
	r.big("event_id", func(i int) int64 { return int64(added[i].Event) })
	r.big("at", func(i int) int64 { return int64(added[i].At) })
	r.big("ticket_id", func(i int) int64 { return int64(added[i].Ticket) })
	r.text("device", func(i int) string { return added[i].Device })
	r.word("gate", func(i int) string { return added[i].Gate })
	r.big("by_id", func(i int) int64 { return int64(added[i].By) })
	r.yes("offline", func(i int) bool { return added[i].Offline })
	r.word("conflict", func(i int) string { return added[i].Conflict })
	r.big("undone_at", func(i int) int64 { return int64(added[i].Undone) })
	r.big("undone_by", func(i int) int64 { return int64(added[i].UndoneBy) })
	r.word("why", func(i int) string { return added[i].Why })
	r.insert("")
}

func (w *writer) notices() {
	list := w.out.Notices
	r := w.rowset("outbox", len(list))
	r.big("order_id", func(i int) int64 { return int64(list[i].Order) })
	r.big("sequence", func(i int) int64 { return list[i].Sequence })
	r.word("kind", func(i int) string { return list[i].Kind })
	r.yes("alert", func(i int) bool { return list[i].Alert })
	r.text("body", func(i int) string { return string(list[i].Body) })
	r.big("created_at", func(i int) int64 { return int64(list[i].At) })
	r.insert("")
}

func (w *writer) history() {
	list := w.out.History
	r := w.rowset("history", len(list))
	r.big("event_id", func(i int) int64 { return int64(list[i].Event) })
	r.big("claim_id", func(i int) int64 { return int64(list[i].Claim) })
	r.word("was", func(i int) string { return list[i].From })
	r.word("becomes", func(i int) string { return list[i].To })
	r.word("why", func(i int) string { return list[i].Why })
	r.text("seats", func(i int) string { return w.string(list[i].AppendClaims(w.buffer[:0])) })
	r.mid("places", func(i int) int32 { return int32(list[i].Count) })
	r.big("at", func(i int) int64 { return int64(list[i].At) })
	r.insert("")
}
