package audit

import (
	"slices"
	"strings"

	"onsale/internal/payment"
	"onsale/internal/waitingroom"
)

// A fault is planted by SQL of both dialects ({name} is an id of the world, # the schema) or in the provider's list. The
// audit must find exactly the checks named broken.
type fault struct {
	name string
	sql  string
	list func(w *world, l []payment.Payment) []payment.Payment
	// joins changes the log of joins of the event with a waiting room
	joins func(w *world, l []waitingroom.Record) []waitingroom.Record
	want  string // the names of the checks, in the order of the report
}

func listed(l []payment.Payment, pay string) *payment.Payment {
	for i := range l {
		if l[i].ID == pay {
			return &l[i]
		}
	}
	panic(pay)
}

const (
	atSeat = ` WHERE event_id = {event} AND seat_index = `
	noSeat = ` SET state = 0, claim_id = 0 WHERE event_id = {event} AND seat_index IN `
)

var claimFaults = []fault{
	{name: "a seat sold twice", want: "I1 I3",
		sql: `DROP INDEX #tickets_one_per_seat; UPDATE #tickets SET seat_index = 0 WHERE ticket_id = {autht0}`},
	{name: "a seat held twice", want: "I1 I3 history",
		sql: `UPDATE #holds SET lines = replace(lines, '[6,', '[4,') WHERE hold_id = {liveh}`},
	{name: "a hold on a sold seat", want: "I1 I3 history",
		sql: `UPDATE #holds SET lines = replace(lines, '[6,', '[0,') WHERE hold_id = {liveh}`},
	{name: "a sold seat that is free", want: "I1", sql: `UPDATE #seats` + noSeat + `(0)`},
	{name: "a free seat with a claim", want: "I1", sql: `UPDATE #seats SET claim_id = {liveh}` + atSeat + `11`},
	{name: "a blocked seat with a claim", want: "I1", sql: `UPDATE #seats SET claim_id = {liveh}` + atSeat + `18`},
	{name: "a seat of another epoch", want: "I1", sql: `UPDATE #seats SET epoch = epoch + 1` + atSeat + `6`},
	{name: "a seat held by an ended hold", want: "I1", sql: `UPDATE #seats SET state = 1, claim_id = {releasedh}` + atSeat + `29`},
	{name: "a seat sold by a hold that does not name it", want: "I1", sql: `UPDATE #seats SET state = 2, claim_id = {paidh}` + atSeat + `12`},
	{name: "a seat sold by another hold than its ticket's", want: "I1", sql: `UPDATE #seats SET claim_id = {authh}` + atSeat + `0`},
	{name: "a live hold without its seats", want: "I1", sql: `UPDATE #seats` + noSeat + `(6, 9)`},
	{name: "a seat in no state", want: "I1 I3", sql: `UPDATE #seats SET state = 9` + atSeat + `6`},
	{name: "a void ticket of a sold seat", want: "I1 I6 I7", sql: `UPDATE #tickets SET state = 3 WHERE ticket_id = {paidt0}`},
	{name: "a live hold with half its seats", want: "I3", sql: `UPDATE #seats` + noSeat + `(6)`},
	{name: "a ticket for another place", want: "I3", sql: `UPDATE #tickets SET category = 1 WHERE ticket_id = {paidt0}`},
	{name: "a ticket gone", want: "I2 I3", sql: `DELETE FROM #tickets WHERE ticket_id = {freet0}`},
	{name: "a hold that drew too little", want: "I2 I3", sql: `UPDATE #holds SET draws = '[[0,1]]' WHERE hold_id = {roomh}`},
	{name: "a bucket with more held", want: "I2", sql: `UPDATE #buckets SET held = held + 1 WHERE event_id = {event} AND area = 0 AND number = 4`},
	{name: "a bucket with less sold", want: "I2", sql: `UPDATE #buckets SET sold = sold - 1 WHERE event_id = {event} AND area = 2 AND sold > 0`},
	{name: "a bucket of more places than the plan", want: "I2", sql: `UPDATE #buckets SET capacity = capacity + 2 WHERE event_id = {event} AND area = 1`},
	{name: "an area oversold", want: "I2",
		sql: `UPDATE #buckets SET capacity = 0 WHERE event_id = {event} AND area = 2`},
	{name: "a sale after the end", want: "I4", sql: `UPDATE #holds SET expires_at = created_at WHERE hold_id = {paidh}`},
	{name: "a rescue that was none", want: "I4", sql: `UPDATE #orders SET rescued = 1 WHERE order_id = {paido}`},
	{name: "a rescue that is not told", want: "I4", sql: `UPDATE #orders SET rescued = 0 WHERE order_id = {rescuedo}`},
	{name: "a ticket of an expired hold", want: "I4 history limits", sql: `UPDATE #holds SET state = 3 WHERE hold_id = {standingh}`},
	{name: "PAID without tickets", want: "I2 I7", sql: `DELETE FROM #tickets WHERE order_id = {freeo}`},
	{name: "a void ticket that nobody refunded", want: "I2 I7", sql: `UPDATE #tickets SET state = 3 WHERE ticket_id = {freet1}`},
	{name: "a valid ticket of an order that is not PAID", want: "I1 I6 I7 tickets", sql: `UPDATE #tickets SET state = 1 WHERE ticket_id = {refusedt0}`},
}

var rowFaults = []fault{
	{name: "a key of another customer", want: "I5", sql: `UPDATE #idempotency_keys SET customer_id = {livec} WHERE key = 'paid' AND operation = 'hold'`},
	{name: "a key without its hold", want: "I5", sql: `UPDATE #idempotency_keys SET subject_id = 12345 WHERE key = 'paid' AND operation = 'hold'`},
	{name: "a key without its order", want: "I5", sql: `UPDATE #idempotency_keys SET subject_id = 12345, created_at = 1 WHERE key = 'paid' AND operation = 'booking'`},
	{name: "two keys of one effect", want: "I5",
		sql: `INSERT INTO #idempotency_keys (customer_id, operation, key, subject_id, fields, created_at)
		      SELECT customer_id, operation, 'again', subject_id, fields, created_at FROM #idempotency_keys WHERE key = 'paid' AND operation = 'booking'`},
	{name: "an effect of another time", want: "I5", sql: `UPDATE #orders SET created_at = created_at + 1 WHERE order_id = {paido}`},
	{name: "a limit exceeded", want: "I9", sql: `UPDATE #events SET body = replace(body, '"Max":8', '"Max":5') WHERE event_id = {event}`},
	{name: "a category's limit exceeded", want: "I9", sql: `UPDATE #events SET body = replace(body, '"Max":4', '"Max":1') WHERE event_id = {event}`},
	{name: "a show's limit exceeded", want: "I9", sql: `UPDATE #events SET body = replace(body, '"Scope":3,"Category":0,"Max":10', '"Scope":3,"Category":0,"Max":5')`},
	{name: "a document's limit exceeded", want: "I9", sql: `UPDATE #events SET body = replace(body, '"Scope":4,"Category":0,"Max":2', '"Scope":4,"Category":0,"Max":0') WHERE event_id = {event}`},
	{name: "a quota exceeded", want: "I9", sql: `UPDATE #events SET body = replace(body, '"Max":60', '"Max":20') WHERE event_id = {event}`},
	{name: "a counter too high", want: "limits", sql: `UPDATE #limits SET count = count + 1 WHERE scope = 1`},
	{name: "a counter gone", want: "limits", sql: `DELETE FROM #limits WHERE scope = 2`},
	{name: "a show's counter too low", want: "limits", sql: `UPDATE #limits SET count = count - 1 WHERE scope = 3`},
	{name: "a document's counter gone", want: "limits", sql: `DELETE FROM #limits WHERE scope = 4`},
	{name: "a quota's counter too low", want: "limits", sql: `UPDATE #quotas SET count = count - 1 WHERE category = 0`},
	{name: "a notice gone", want: "I12", sql: `DELETE FROM #outbox WHERE order_id = {autho} AND sequence = 2`},
	{name: "the first notice gone", want: "I12", sql: `DELETE FROM #outbox WHERE order_id = {autho} AND sequence = 1`},
	{name: "the last notice gone", want: "I12", sql: `DELETE FROM #outbox WHERE order_id = {autho} AND sequence = (SELECT max(sequence) FROM #outbox WHERE order_id = {autho})`},
	{name: "all notices gone", want: "I12", sql: `DELETE FROM #outbox WHERE order_id = {autho}`},
	{name: "a notice too many", want: "I12", sql: `UPDATE #orders SET sequence = sequence - 1 WHERE order_id = {autho}`},
	{name: "a change that was never told", want: "I12", sql: `UPDATE #outbox SET body = replace(body, '"PAID"', '"PENDING"') WHERE order_id = {autho}`},
	{name: "notices in the wrong order", want: "outbox", sql: `UPDATE #outbox SET published_at = NULL WHERE order_id = {autho} AND sequence = 1`},
	{name: "a notice about another order", want: "outbox", sql: `UPDATE #outbox SET body = replace(body, 'ord_', 'ord_0') WHERE order_id = {autho}`},
	{name: "a notice that cannot be read", want: "outbox", sql: `UPDATE #outbox SET body = 'x' WHERE order_id = {autho} AND sequence = 1`},
	{name: "a take-over without the old claim's end", want: "history", sql: `DELETE FROM #history WHERE claim_id = {takenoverh} AND becomes = 'expired'`},
	{name: "a claim without history", want: "history", sql: `DELETE FROM #history WHERE claim_id = {liveh}`},
	{name: "a history that ends otherwise", want: "history", sql: `UPDATE #history SET becomes = 'released' WHERE claim_id = {lateh} AND becomes = 'expired'`},
	{name: "a history that skips", want: "history", sql: `UPDATE #history SET was = 'expired' WHERE claim_id = {releasedh} AND becomes = 'released'`},
	{name: "a history backwards in time", want: "history", sql: `UPDATE #history SET at = 1 WHERE claim_id = {releasedh} AND becomes = 'released'`},
	{name: "an epoch given twice", want: "I1 history",
		sql: `UPDATE #history SET seats = '[[20,1]]' WHERE claim_id = {takerh}; UPDATE #holds SET lines = replace(lines, '[20,2,', '[20,1,') WHERE hold_id = {takerh}`},
	{name: "a claim before the one before has ended", want: "history", sql: `UPDATE #history SET at = at - 300000 WHERE claim_id = {takerh}`},
	{name: "other places in the history", want: "history", sql: `UPDATE #history SET places = 2 WHERE claim_id = {roomh}`},
	{name: "a hold gone too early", want: "I5 history", sql: `DELETE FROM #holds WHERE hold_id = {releasedh}`},
	{name: "a block that is none", want: "history", sql: `UPDATE #history SET becomes = 'sold' WHERE claim_id = 0 AND becomes = 'blocked'`},
}

var referenceFaults = []fault{
	{name: "an order without its hold", want: "references", sql: `UPDATE #orders SET hold_id = 12345 WHERE order_id = {failedo}`},
	{name: "an order of another customer's hold", want: "references", sql: `UPDATE #orders SET customer_id = {livec} WHERE order_id = {failedo}; DELETE FROM #idempotency_keys WHERE subject_id = {failedo}`},
	{name: "a hold that does not name its order", want: "references", sql: `UPDATE #holds SET order_id = 0 WHERE hold_id = {pendingh}`},
	{name: "a sold hold without order", want: "references", sql: `UPDATE #holds SET order_id = 0 WHERE hold_id = {standingh}`},
	{name: "a ticket without its order", want: "references",
		sql: `INSERT INTO #tickets (ticket_id, order_id, event_id, customer_id, state, seat_index, category, total) VALUES (5, 12345, {event}, 6, 3, 1, 0, 0)`},
	{name: "a ticket of another event", want: "I2 references", sql: `UPDATE #tickets SET event_id = {other} WHERE ticket_id = {freet0}`},
	{name: "a payment without its order", want: "references",
		sql: `INSERT INTO #payments (order_id, provider, payment_id, currency, state) VALUES (12345, 'sandbox', 'p', 'EUR', 1)`},
	{name: "a refund without its order", want: "references",
		sql: `INSERT INTO #refunds (refund_id, order_id, provider, payment_id, state, amount, currency, reason, created_at) VALUES (5, 12345, 'sandbox', 'p', 2, 1, 'EUR', 'x', 1)`},
	{name: "a refund without its payment", want: "I6 I12 references",
		sql: `INSERT INTO #refunds (refund_id, order_id, from_order, provider, payment_id, state, amount, currency, reason, created_at) VALUES (5, {failedo}, {failedo}, 'sandbox', 'p', 2, 1, 'EUR', 'x', 1)`},
	{name: "a payment without its refund", want: "references", sql: `UPDATE #payments SET refund_id = 12345 WHERE order_id = {paido} AND payment_id = 'pay-paid'`},
	{name: "a notice without its order", want: "references",
		sql: `INSERT INTO #outbox (order_id, sequence, kind, body, created_at) VALUES (12345, 1, 'booking.paid', '{}', 1)`},
	{name: "a seat without row", want: "references", sql: `DELETE FROM #seats` + atSeat + `13`},
	{name: "a seat outside the plan", want: "references", sql: `INSERT INTO #seats (event_id, seat_index) VALUES ({event}, 77)`},
	{name: "an event gone", want: "references", sql: `DELETE FROM #events WHERE event_id = {other}`},
	{name: "an area without buckets", want: "references", sql: `DELETE FROM #buckets WHERE event_id = {other} AND area = 1`},
	{name: "a change ahead of its version", want: "references", sql: `UPDATE #seats_versions SET version = 1 WHERE event_id = {event}`},
	{name: "lines that cannot be read", want: "I2 I3 history references limits", sql: `UPDATE #holds SET lines = '[[3]]' WHERE hold_id = {roomh}`},
	{name: "an order of an unknown event", want: "references", sql: `UPDATE #orders SET event_id = 99 WHERE order_id = {failedo}`},
}

var moneyFaults = []fault{
	{name: "a payment that does not add up", want: "I6 money", sql: `UPDATE #payments SET captured = 1 WHERE order_id = {dueo}`},
	{name: "a payment captured over what was authorized", want: "I6 money", sql: `UPDATE #payments SET captured = captured + 1 WHERE order_id = {autho}`},
	{name: "a refund of another amount", want: "I6 money", sql: `UPDATE #refunds SET amount = amount - 1 WHERE order_id = {lateo}`},
	{name: "an order of another price", want: "money", sql: `UPDATE #orders SET amount = amount + 1 WHERE order_id = {pendingo}`},
	{name: "a line that does not add up", want: "money", sql: `UPDATE #holds SET lines = replace(lines, ',5250]', ',5252]') WHERE hold_id = {liveh}`},
	{name: "a hold in no currency", want: "money", sql: `UPDATE #holds SET currency = '' WHERE hold_id = {liveh}`},
	{name: "money kept without ticket", want: "I6",
		sql: `INSERT INTO #payments (order_id, provider, payment_id, currency, state, authorized, captured) VALUES ({failedo}, 'sandbox', 'p', 'EUR', 2, 100, 100)`},
	{name: "money reserved for nothing", want: "I6",
		sql: `INSERT INTO #payments (order_id, provider, payment_id, currency, state, authorized) VALUES ({failedo}, 'sandbox', 'p', 'EUR', 1, 100)`},
	{name: "PAID by no payment", want: "I6", sql: `DELETE FROM #payments WHERE order_id = {autho}`},
	{name: "a fee that was not kept", want: "I6 money", sql: `UPDATE #refunds SET fee_kept = 100 WHERE order_id = {lateo}`},
	{name: "a ticket of another price", want: "I3 I6", sql: `UPDATE #tickets SET total = total - 1 WHERE ticket_id = {autht0}`},

	{name: "a payment that the ledger does not know", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := *listed(l, "pay-paid")
		p.ID = "pay-other"
		return append(l, p)
	}},
	{name: "a payment of an unknown order", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := *listed(l, "pay-paid")
		p.ID, p.OrderID, p.CreatedAt = "pay-other", "ord_0000000000099", opening.Std().Add(-2*hour.Std())
		return append(l, p)
	}},
	{name: "a payment that the provider does not have", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		return slices.DeleteFunc(l, func(p payment.Payment) bool { return p.ID == "pay-paid" })
	}},
	{name: "less captured at the provider", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		listed(l, "pay-paid").CapturedMinor--
		return l
	}},
	{name: "not refunded at the provider", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		listed(l, "pay-late").RefundedMinor = 0
		return l
	}},
	{name: "refunded at the provider alone", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		listed(l, "pay-paid").RefundedMinor = 5
		return l
	}},
	{name: "another currency at the provider", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		listed(l, "pay-paid").Currency = "SEK"
		return l
	}},
	{name: "still authorized at the provider", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := listed(l, "pay-voided")
		p.State = payment.Authorized
		return l
	}},
	{name: "declined at the provider", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := listed(l, "pay-auth")
		p.State, p.CapturedMinor = payment.Declined, 0
		return l
	}},
	{name: "captured at the provider though refused", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := listed(l, "pay-refused")
		p.State, p.CapturedMinor = payment.Captured, p.AmountMinor
		return l
	}},
}

// fine is what must not be reported.
var fine = []fault{
	{name: "nothing"},
	{name: "a used ticket (A4)", sql: `UPDATE #tickets SET state = 2 WHERE order_id IN ({paido}, {standingo});
		      INSERT INTO #checkins (event_id, at, ticket_id, device, gate, by_id, offline, conflict)
		      SELECT event_id, 1, ticket_id, 'd', 'g', 9, 0, '' FROM #tickets WHERE order_id IN ({paido}, {standingo})`},
	{name: "captured at the provider before the ledger heard (A18)", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := listed(l, "pay-due")
		p.State, p.CapturedMinor = payment.Captured, p.AmountMinor
		return l
	}},
	{name: "refunded at the provider before the ledger heard", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := listed(l, "pay-second")
		p.RefundedMinor = p.CapturedMinor
		return l
	}},
	{name: "paid at the provider before the ledger heard (A19)", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := *listed(l, "pay-paid")
		p.ID, p.OrderID = "pay-other", orderText(w.names["pendingo"])
		return append(l, p)
	}},
	{name: "a second payment whose notice is still to come (A16)", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := *listed(l, "pay-paid")
		p.ID, p.CreatedAt = "pay-other", w.clock.Std()
		return append(l, p)
	}},
	{name: "money of an unknown order in the last hour (A20)", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := *listed(l, "pay-paid")
		p.ID, p.OrderID = "pay-other", "ord_0000000000099"
		return append(l, p)
	}},
	{name: "a decline of an order that went on", list: func(w *world, l []payment.Payment) []payment.Payment {
		return append(l, payment.Payment{ID: "pay-no", OrderID: orderText(w.names["failedo"]), State: payment.Declined, Currency: "EUR"})
	}},
	{name: "an order that changed during the audit",
		sql: `UPDATE #orders SET updated_at = {now} WHERE order_id = {paido}`,
		list: func(w *world, l []payment.Payment) []payment.Payment {
			listed(l, "pay-paid").CapturedMinor = 0
			return l
		}},
	{name: "an ended hold deleted after a day (A12)",
		sql: `UPDATE #history SET at = at - 90000000 WHERE claim_id = {releasedh};
		      DELETE FROM #holds WHERE hold_id = {releasedh}; DELETE FROM #idempotency_keys WHERE subject_id = {releasedh}`},
	{name: "old notices pruned (A24)",
		sql: `UPDATE #orders SET created_at = created_at - 700000000 WHERE order_id = {autho};
		      DELETE FROM #idempotency_keys WHERE subject_id = {autho}; DELETE FROM #outbox WHERE order_id = {autho} AND sequence < 3`},
	{name: "old notices being pruned",
		sql: `UPDATE #orders SET created_at = created_at - 700000000, updated_at = updated_at - 700000000 WHERE order_id = {autho};
		      UPDATE #outbox SET created_at = created_at - 700000000 WHERE order_id = {autho};
		      DELETE FROM #idempotency_keys WHERE subject_id = {autho}; DELETE FROM #outbox WHERE order_id = {autho} AND sequence = 2`},
}

func faults() []fault {
	all := append([]fault{}, claimFaults...)
	all = append(all, rowFaults...)
	all = append(all, referenceFaults...)
	all = append(all, moneyFaults...)
	for _, more := range [][]fault{shopMoneyFaults, ticketFaults, exchangeFaults, doorFaults, shopRowFaults, shopBooksFaults, formFaults, lineFaults, listFaults, shopFine} {
		all = append(all, more...)
	}
	return append(all, fine...)
}

func (f *fault) statements(w *world, d dialect) []string {
	text := strings.ReplaceAll(w.fill(f.sql), "#", d.schema)
	return strings.FieldsFunc(text, func(r rune) bool { return r == ';' })
}
