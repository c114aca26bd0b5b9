package audit

import "onsale/internal/payment"

// Faults of what came with refunds, exchanges, transfers and the door.

var shopMoneyFaults = []fault{
	{name: "more given back than is due", want: "I6 money", sql: `UPDATE #refunds SET amount = amount + 100 WHERE refund_id = {waitr0}`},
	{name: "a promise to nobody", want: "I6 money", sql: `UPDATE #payments SET promised = promised + 1 WHERE order_id = {backo}`},
	{name: "a promise that is not written down", want: "I6 money", sql: `UPDATE #payments SET promised = 0 WHERE order_id = {swapo}`},
	{name: "more promised than was captured", want: "I6",
		sql: `UPDATE #payments SET promised = captured + 1 WHERE order_id = {waito}; UPDATE #refunds SET amount = 10501 WHERE refund_id = {waitr0}`},
	{name: "a payment that gave back less than its refund", want: "money", sql: `UPDATE #payments SET refunded = refunded - 1 WHERE order_id = {backo}`},
	{name: "a fee kept that was given back", want: "I6", sql: `UPDATE #refunds SET fee_kept = fee_kept + 1 WHERE refund_id = {backr0}`},
	{name: "more kept than the tickets cost", want: "I6 money", sql: `UPDATE #refunds SET fee_kept = 99999 WHERE refund_id = {backr0}`},
	{name: "a refund done that gave nothing back", want: "I7 money", sql: `UPDATE #refunds SET state = 2 WHERE refund_id = {waitr0}`},
	{name: "a refund of no payment", want: "money", sql: `UPDATE #refunds SET payment_id = '' WHERE refund_id = {waitr0}`},
	{name: "a refund of another's payment", want: "I6 money",
		sql: `UPDATE #refunds SET from_order = {allbacko}, payment_id = 'pay-allback' WHERE refund_id = {waitr0}`},
	{name: "a refund of a payment that the earlier order does not have", want: "I6 money references",
		sql: `UPDATE #refunds SET payment_id = 'pay-none' WHERE refund_id = {dearerr1}`},
	{name: "a refund in another currency than the earlier order's payment", want: "money", sql: `UPDATE #refunds SET currency = 'SEK' WHERE refund_id = {dearerr1}`},
	{name: "a refund of a payment of no order", want: "I6 money references", sql: `UPDATE #refunds SET from_order = 12345 WHERE refund_id = {dearerr1}`},
	{name: "a refund that was never done", want: "I6 I12 money",
		sql: `INSERT INTO #refunds (refund_id, order_id, from_order, provider, payment_id, state, amount, currency, reason, created_at)
		      VALUES (5, {giveo}, {giveo}, 'sandbox', 'pay-give', 1, 100, 'EUR', 'x', 1)`},
	{name: "a credit that did not come over", want: "I6 money", sql: `UPDATE #orders SET credit = credit + 1 WHERE order_id = {dearero}`},
	{name: "money moved on twice", want: "I5 I6 limits", sql: `UPDATE #orders SET exchange_of = {waito} WHERE order_id = {crossedo}; UPDATE #holds SET exchange_of = {waito} WHERE hold_id = {crossedh};
		UPDATE #orders SET customer_id = {waitc} WHERE order_id = {crossedo}; UPDATE #holds SET customer_id = {waitc} WHERE hold_id = {crossedh};
		UPDATE #tickets SET customer_id = {waitc} WHERE order_id = {crossedo}`},
	{name: "a fund drawn and not lessened", want: "I6 money", sql: `UPDATE #orders SET funds = replace(funds, '"left":', '"left":1') WHERE order_id = {dearero}`},
	{name: "a fund below nothing", want: "I6 money", sql: `UPDATE #orders SET funds = replace(funds, '"left":', '"left":-') WHERE order_id = {dearero}`},
	{name: "a fund in a payment that is not there", want: "I6 money references", sql: `UPDATE #orders SET funds = replace(funds, 'pay-swap', 'pay-none') WHERE order_id = {dearero}`},
	{name: "a fund in a payment of no order", want: "I6 money references", sql: `UPDATE #orders SET funds = replace(funds, '{swapo}', '12345') WHERE order_id = {dearero}`},
	{name: "funds that cannot be read", want: "I6 money references", sql: `UPDATE #orders SET funds = 'x' WHERE order_id = {dearero}`},
	{name: "an exchange over another price", want: "money", sql: `UPDATE #orders SET amount = 99999 WHERE order_id = {markingo}`},
	{name: "a credit of an order that was not paid", want: "I6", sql: `UPDATE #orders SET credit = 100 WHERE order_id = {unpaido}`},
}

var ticketFaults = []fault{
	{name: "a ticket valid again after its refund", want: "I6 tickets", sql: `UPDATE #tickets SET state = 1 WHERE ticket_id = {waitt0}`},
	{name: "a ticket twice in a refund", want: "tickets", sql: `UPDATE #refunds SET tickets = '[{waitt0},{waitt1},{waitt0}]' WHERE refund_id = {waitr0}`},
	{name: "a ticket in two refunds", want: "tickets", sql: `UPDATE #refunds SET tickets = '[{dearert0}]' WHERE refund_id = {dearerr1}`},
	{name: "a valid ticket in a refund", want: "tickets", sql: `UPDATE #refunds SET tickets = '[{backt0},{backt1}]' WHERE refund_id = {backr0}`},
	{name: "a ticket of another order in a refund", want: "tickets", sql: `UPDATE #refunds SET tickets = '[{allbackt0},{givet0}]' WHERE refund_id = {allbackr0}`},
	{name: "a ticket that went back by another order's refund", want: "tickets", sql: `UPDATE #tickets SET refund_id = {allbackr0} WHERE ticket_id = {waitt0}`},
	{name: "a refund that forgot its ticket", want: "tickets", sql: `UPDATE #refunds SET tickets = '[{waitt0}]' WHERE refund_id = {waitr0}`},
	{name: "a refund that is done again", want: "tickets", sql: `UPDATE #refunds SET state = 2 WHERE refund_id = {backr0}`},
	{name: "seats released before the money was back", want: "tickets", sql: `UPDATE #refunds SET state = 3 WHERE refund_id = {againr0}`},
	{name: "seats released of no ticket", want: "tickets", sql: `UPDATE #refunds SET state = 3 WHERE refund_id = {dearerr1}`},
	{name: "tickets of a refund that cannot be read", want: "money tickets references", sql: `UPDATE #refunds SET tickets = 'x' WHERE refund_id = {waitr0}`},
	{name: "REFUNDED while money is to go back", want: "I7 I12", sql: `UPDATE #orders SET state = 5, reason = 'customer' WHERE order_id = {waito}`},
	{name: "REFUNDED with a valid ticket", want: "I7 I12", sql: `UPDATE #orders SET state = 5 WHERE order_id = {backo}`},
	{name: "PAID with nothing left", want: "I7 I12", sql: `UPDATE #orders SET state = 2 WHERE order_id = {allbacko}`},
	{name: "a ticket passed on twice", want: "I3 I5 I7 tickets", sql: `UPDATE #tickets SET was_id = {givet0} WHERE ticket_id = {returned}`},
	{name: "a ticket passed on and valid", want: "I1 I6 tickets", sql: `DROP INDEX #tickets_one_per_seat; UPDATE #tickets SET state = 1, gone = 1 WHERE ticket_id = {lent}`},
	{name: "a ticket passed on and still there", want: "tickets", sql: `UPDATE #tickets SET gone = 0 WHERE ticket_id = {givet0}`},
	{name: "a ticket passed on to oneself", want: "tickets limits", sql: `UPDATE #tickets SET customer_id = {friendc} WHERE ticket_id = {regiven}`},
	{name: "a ticket passed on for another price", want: "tickets", sql: `UPDATE #tickets SET total = total - 1 WHERE ticket_id = {given}`},
	{name: "a ticket that came from nowhere", want: "I3 I5 I7 tickets", sql: `UPDATE #tickets SET was_id = 12345 WHERE ticket_id = {regiven}`},
	{name: "a ticket lost on the way", want: "I1 I5 I6 I7 I12 limits", sql: `DELETE FROM #tickets WHERE ticket_id = {regiven}`},
	{name: "a ticket of somebody else", want: "references limits", sql: `UPDATE #tickets SET customer_id = {friendc} WHERE ticket_id = {backt1}`},
	{name: "a ticket of another place of its hold", want: "I3", sql: `UPDATE #tickets SET place = 0 WHERE ticket_id = {paidt1}`},
	{name: "a document of a place that has gone back", want: "tickets limits", sql: `UPDATE #orders SET documents = '["doc-x"]' WHERE order_id = {backo}`},
	{name: "more documents than places", want: "references limits", sql: `UPDATE #orders SET documents = '["","","x"]' WHERE order_id = {backo}`},

	{name: "a seat free before it was released", want: "I1", sql: `UPDATE #seats SET state = 0, claim_id = 0 WHERE event_id = {shop} AND seat_index = 2`},
	{name: "a seat sold by a claim that gave it back", want: "I1", sql: `UPDATE #seats SET state = 2, claim_id = {backh} WHERE event_id = {shop} AND seat_index = 0`},
	{name: "a place gone whose ticket is valid", want: "I1 I3 I7 history limits",
		sql: `UPDATE #holds SET lines = replace(lines, ',5250]', ',5250,1]') WHERE hold_id = {backh}`},
	{name: "a place back whose ticket has gone", want: "I7 history limits", sql: `UPDATE #holds SET lines = replace(lines, ',1]', ']') WHERE hold_id = {backh}`},
	{name: "a live hold that gave a place back", want: "I1 I3 history limits",
		sql: `UPDATE #holds SET lines = replace(replace(lines, '[[1]', '[[2]'), ',5250]', ',5250,1]') WHERE hold_id = {liveh}`},
	{name: "a place of an area that was released twice", want: "I2", sql: `UPDATE #buckets SET sold = sold - 1 WHERE event_id = {shop} AND area = 0 AND sold > 0`},
	{name: "a valid ticket whose place has gone", want: "I7 tickets", sql: `UPDATE #tickets SET gone = 1 WHERE ticket_id = {freet0}`},
}

var exchangeFaults = []fault{
	{name: "a ticket that two holds take the place of", want: "exchange", sql: `UPDATE #holds SET expires_at = {now} + 600000 WHERE hold_id = {staleh}`},
	{name: "a mark that the ticket does not have", want: "exchange", sql: `UPDATE #tickets SET exchange_hold = 0 WHERE ticket_id = {markedt0}`},
	{name: "a mark of another order", want: "exchange", sql: `UPDATE #holds SET exchange_of = {backo} WHERE hold_id = {markingh}`},
	{name: "a mark of another category", want: "exchange",
		sql: `UPDATE #holds SET exchanged = '[[{markedt0},{shop},2]]' WHERE hold_id = {markingh}`},
	{name: "a mark on a ticket that is not there", want: "exchange", sql: `UPDATE #holds SET exchanged = '[[5,{shop},1]]' WHERE hold_id = {markingh}`},
	{name: "a mark on a VOID ticket", want: "exchange references", sql: `UPDATE #tickets SET exchange_hold = {markingh} WHERE ticket_id = {allbackt0};
		UPDATE #orders SET exchange_of = {allbacko}, customer_id = {allbackc} WHERE order_id = {markingo}; DELETE FROM #idempotency_keys WHERE subject_id = {markingo};
		UPDATE #holds SET exchanged = '[[{allbackt0},{shop},1]]', exchange_of = {allbacko} WHERE hold_id = {markingh}`},
	{name: "an exchange of nothing", want: "exchange limits", sql: `UPDATE #holds SET exchanged = '[]' WHERE hold_id = {markingh}`},
	{name: "an exchange of no order", want: "exchange", sql: `UPDATE #holds SET exchange_of = 0 WHERE hold_id = {markingh}`},
	{name: "an exchange that cannot be read", want: "references limits", sql: `UPDATE #holds SET exchanged = '[[1]]' WHERE hold_id = {markingh}`},
	{name: "a sold hold that still exchanges", want: "exchange limits", sql: `UPDATE #holds SET exchanged = '[[{downt0},{shop},1]]' WHERE hold_id = {cheaperh}`},
	{name: "an exchange of an order that is not there", want: "I6 references",
		sql: `UPDATE #orders SET exchange_of = 12345 WHERE order_id = {crosso}; UPDATE #holds SET exchange_of = 12345 WHERE hold_id = {crossh}`},
	{name: "an exchange that is not its hold's", want: "exchange", sql: `UPDATE #orders SET exchange_of = {markedo} WHERE order_id = {unpaido}`},
	{name: "a credit without exchange", want: "I6 exchange", sql: `UPDATE #orders SET exchange_of = 0 WHERE order_id = {dearero}; UPDATE #holds SET exchange_of = 0 WHERE hold_id = {dearerh}`},
}

var doorFaults = []fault{
	{name: "USED without a use", want: "door", sql: `DELETE FROM #checkins WHERE ticket_id = {usedt2}`},
	{name: "USED by a use that was undone", want: "door", sql: `UPDATE #checkins SET undone_at = 5 WHERE ticket_id = {usedt2}`},
	{name: "a use that stands and a VALID ticket", want: "door", sql: `UPDATE #tickets SET state = 1 WHERE ticket_id = {usedt0}`},
	{name: "let in twice", want: "door", sql: `UPDATE #checkins SET conflict = '' WHERE ticket_id = {usedt0} AND conflict <> ''`},
	{name: "a conflict online", want: "door", sql: `UPDATE #checkins SET offline = 0 WHERE ticket_id = {usedt0} AND conflict <> ''`},
	{name: "a conflict undone", want: "door", sql: `UPDATE #checkins SET undone_at = 5 WHERE ticket_id = {usedt0} AND conflict <> ''`},
	{name: "a conflict of no kind", want: "door", sql: `UPDATE #checkins SET conflict = 'x' WHERE ticket_id = {usedt0} AND conflict <> ''`},
	{name: "VOID at the door, and not VOID", want: "door", sql: `UPDATE #checkins SET conflict = 'ticket_void' WHERE ticket_id = {usedt0} AND conflict <> ''`},
	{name: "a second use without a first", want: "door", sql: `UPDATE #checkins SET conflict = 'ticket_used' WHERE ticket_id = {backt0}`},
	{name: "a use of a ticket that was passed on", want: "door",
		sql: `INSERT INTO #checkins (event_id, at, ticket_id, device, gate, by_id, offline, conflict) VALUES ({shop}, 1, {givet0}, 'd', 'g', 9, 0, '')`},
	{name: "a use at another event", want: "door references", sql: `UPDATE #checkins SET event_id = {matinee} WHERE ticket_id = {usedt2}`},
	{name: "a use of a ticket that is not there", want: "references",
		sql: `INSERT INTO #checkins (event_id, at, ticket_id, device, gate, by_id, offline, conflict) VALUES ({shop}, 1, 5, 'd', 'g', 9, 0, '')`},
	{name: "a use at an event that is not there", want: "references",
		sql: `INSERT INTO #checkins (event_id, at, ticket_id, device, gate, by_id, offline, conflict) VALUES (99, 1, 5, 'd', 'g', 9, 0, '')`},
}

var shopRowFaults = []fault{
	{name: "a refund's key of another customer", want: "I5", sql: `UPDATE #idempotency_keys SET customer_id = {livec} WHERE key = 'back' AND operation = 'refund'`},
	{name: "a key without its refund", want: "I5", sql: `UPDATE #idempotency_keys SET subject_id = 12345 WHERE key = 'back' AND operation = 'refund'`},
	{name: "two keys of one refund", want: "I5",
		sql: `INSERT INTO #idempotency_keys (customer_id, operation, key, subject_id, fields, created_at)
		      SELECT customer_id, operation, 'again', subject_id, fields, created_at FROM #idempotency_keys WHERE key = 'back' AND operation = 'refund'`},
	{name: "a refund of another time than its key's", want: "I5", sql: `UPDATE #refunds SET created_at = created_at + 1 WHERE refund_id = {dearerr0}`},
	{name: "a passing on by somebody else", want: "I5", sql: `UPDATE #idempotency_keys SET customer_id = {livec} WHERE key = 'given' AND operation = 'transfer'`},
	{name: "a key without its passing on", want: "I5", sql: `UPDATE #idempotency_keys SET subject_id = {givet0} WHERE key = 'given' AND operation = 'transfer'`},
	{name: "a key of no operation", want: "I5", sql: `UPDATE #idempotency_keys SET operation = 'x' WHERE key = 'given' AND operation = 'transfer'`},

	{name: "places given back without history", want: "history", sql: `DELETE FROM #history WHERE claim_id = {backh} AND becomes = 'released'`},
	{name: "places of an area given back without history", want: "history", sql: `DELETE FROM #history WHERE claim_id = {standh} AND becomes = 'released'`},
	{name: "a seat given back twice", want: "history",
		sql: `INSERT INTO #history (event_id, claim_id, was, becomes, why, seats, places, at)
		      SELECT event_id, claim_id, was, becomes, why, seats, places, at FROM #history WHERE claim_id = {backh} AND becomes = 'released'`},
	{name: "another seat given back", want: "history", sql: `UPDATE #history SET seats = '[[1,1]]' WHERE claim_id = {backh} AND becomes = 'released'`},
	{name: "a seat given back under another epoch", want: "history", sql: `UPDATE #history SET seats = '[[0,2]]' WHERE claim_id = {backh} AND becomes = 'released'`},
	{name: "nothing given back", want: "history", sql: `UPDATE #history SET seats = '[]' WHERE claim_id = {backh} AND becomes = 'released'`},
	{name: "more places given back than there were", want: "history", sql: `UPDATE #history SET places = 9 WHERE claim_id = {standh} AND becomes = 'released'`},
	{name: "a seat taken over that was never given back", want: "history", sql: `DELETE FROM #history WHERE claim_id = {downh} AND becomes = 'released'`},

	{name: "a limit exceeded by what was received", want: "I9",
		sql: `UPDATE #events SET body = replace(body, '"Scope":3,"Category":0,"Max":10', '"Scope":3,"Category":0,"Max":0') WHERE event_id = {shop}`},
	{name: "an event's notice gone", want: "I12", sql: `DELETE FROM #outbox WHERE order_id = {shop} AND sequence = 1`},
	{name: "an event's last notice gone", want: "I12", sql: `DELETE FROM #outbox WHERE order_id = {shop} AND sequence = 2`},
	{name: "an event's notices gone", want: "I12", sql: `DELETE FROM #outbox WHERE order_id = {shop}`},
	{name: "an event that changed unheard", want: "I12", sql: `UPDATE #events SET version = 3 WHERE event_id = {shop}`},
	{name: "an event that was paused unheard", want: "I12", sql: `UPDATE #events SET state = 2 WHERE event_id = {shop}`},
	{name: "an event's notice that was not numbered", want: "I12", sql: `UPDATE #events SET sequence = 1 WHERE event_id = {shop}`},
	{name: "an event's notice of another kind", want: "outbox", sql: `UPDATE #outbox SET kind = 'event.x' WHERE order_id = {shop} AND sequence = 1`},
	{name: "an event's notice about another", want: "outbox", sql: `UPDATE #outbox SET body = replace(body, 'evt_', 'evt_0') WHERE order_id = {shop} AND sequence = 1`},
	{name: "an event's notices in the wrong order", want: "outbox", sql: `UPDATE #outbox SET published_at = NULL WHERE order_id = {shop} AND sequence = 1`},
	{name: "a refund that was never told", want: "I12", sql: `UPDATE #outbox SET body = replace(body, 'rfd_', 'rfd_0') WHERE order_id = {waito}`},
	{name: "a passing on that was never told", want: "I12",
		sql: `UPDATE #outbox SET kind = 'payment.recorded' WHERE order_id = {giveo} AND kind = 'ticket.transferred'`},
	{name: "a notice of no kind", want: "outbox", sql: `UPDATE #outbox SET kind = 'event.changed' WHERE order_id = {backo} AND kind = 'payment.recorded'`},
}

var shopBooksFaults = []fault{
	{name: "a refund under another key at the provider", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		listed(l, "pay-back").Refunds[0].ID = "rfd_0000000000005"
		return l
	}},
	{name: "a refund of another amount at the provider", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		listed(l, "pay-back").Refunds[0].AmountMinor--
		return l
	}},
	{name: "a refund that failed later", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := listed(l, "pay-back")
		p.RefundedMinor, p.Refunds[0].State = 0, payment.RefundFailed
		return l
	}},
	{name: "a refund given back by two tries", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := listed(l, "pay-again")
		r := p.Refunds[0]
		r.ID = r.ID[:len(r.ID)-2]
		p.Refunds[0].AmountMinor, r.AmountMinor = 0, p.Refunds[0].AmountMinor
		p.Refunds = append(p.Refunds, r)
		return l
	}},
	{name: "a refund of a try that was not made", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		listed(l, "pay-again").Refunds[0].ID += "0"
		return l
	}},
	{name: "a refund made by hand at the provider", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := listed(l, "pay-give")
		p.RefundedMinor, p.Refunds = 5, []payment.Refund{{ID: "re_1", AmountMinor: 5, State: payment.RefundDone}}
		return l
	}},
	{name: "more given back at the provider than is due", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := listed(l, "pay-wait")
		p.RefundedMinor = p.CapturedMinor
		return l
	}},
	{name: "an exchange's refund that the earlier payment's books lack", want: "I6", list: func(w *world, l []payment.Payment) []payment.Payment {
		listed(l, "pay-swap").Refunds = nil
		return l
	}},
}

// formFaults are rows that no ledger writes.
var formFaults = []fault{
	{name: "a ticket in no state", want: "references", sql: `UPDATE #tickets SET state = 9 WHERE ticket_id = {allbackt0}`},
	{name: "a ticket for a seat and a place", want: "I1 I3 references", sql: `UPDATE #tickets SET area = 0 WHERE ticket_id = {backt1}`},
	{name: "a ticket for an area that is not there", want: "I2 I3 references", sql: `UPDATE #tickets SET area = 9 WHERE ticket_id = {freet0}`},
	{name: "a ticket for a seat that is not there", want: "I1 I3 references", sql: `UPDATE #tickets SET seat_index = 77 WHERE ticket_id = {backt1}`},
	{name: "a hold of nothing", want: "I3 history", sql: `UPDATE #holds SET lines = '[[1]]' WHERE hold_id = {releasedh}`},
	{name: "a hold of an area that is not there", want: "I2 references limits", sql: `UPDATE #holds SET area = 9 WHERE hold_id = {roomh}`},
	{name: "a hold of a seat that is not there", want: "history references", sql: `UPDATE #holds SET lines = replace(lines, '[29,', '[77,') WHERE hold_id = {releasedh}`},
	{name: "a hold of a seat of another category", want: "references", sql: `UPDATE #holds SET lines = replace(lines, ',1,1,3000', ',1,0,3000') WHERE hold_id = {releasedh}`},
	{name: "a hold of seats in disorder", want: "I1 I3 history references", sql: `UPDATE #holds SET lines = replace(lines, '[9,', '[5,') WHERE hold_id = {liveh}`},
	{name: "a hold of seats in an area", want: "I1 references", sql: `UPDATE #holds SET lines = replace(lines, '[-1,', '[1,') WHERE hold_id = {roomh}`},
	{name: "a line below nothing", want: "money", sql: `UPDATE #holds SET lines = replace(lines, ',3000,0,', ',3001,-1,') WHERE hold_id = {releasedh}`},
	{name: "a hold in no state", want: "references", sql: `UPDATE #holds SET state = 9 WHERE hold_id = {releasedh}`},
	{name: "a released hold of an order that is not there", want: "references", sql: `UPDATE #holds SET order_id = 12345 WHERE hold_id = {releasedh}`},
	{name: "a sold hold of an order that is not there", want: "references", sql: `UPDATE #holds SET order_id = 12345 WHERE hold_id = {standingh}`},
	{name: "a sold hold of another order", want: "references", sql: `UPDATE #holds SET order_id = {paido} WHERE hold_id = {standingh}`},
	{name: "a live hold of an order that has ended", want: "I12 references limits", sql: `UPDATE #orders SET state = 3, attempt_open = 0 WHERE order_id = {pendingo}`},
	{name: "a sold hold of an order that has ended", want: "I6 I7 I12 references limits", sql: `UPDATE #orders SET state = 4 WHERE order_id = {standingo}`},
	{name: "an order in no state", want: "references", sql: `UPDATE #orders SET state = 9 WHERE order_id = {failedo}`},
	{name: "a payment in no state", want: "references", sql: `UPDATE #payments SET state = 9 WHERE order_id = {voidedo}`},
	{name: "a payment in another currency", want: "money", sql: `UPDATE #payments SET currency = 'SEK' WHERE order_id = {swapo}`},
	{name: "PAID by a payment that was let go", want: "I6", sql: `UPDATE #payments SET state = 3, voided = authorized, captured = 0 WHERE order_id = {autho}`},
	{name: "a refund in no state", want: "I7 money references", sql: `UPDATE #refunds SET state = 9 WHERE refund_id = {nor0}`},
	{name: "a refund below nothing", want: "I6 money", sql: `UPDATE #refunds SET fee_kept = -1 WHERE refund_id = {nor0}`},
	{name: "documents that cannot be read", want: "references limits", sql: `UPDATE #orders SET documents = 'x' WHERE order_id = {paido}`},
	{name: "a notice of no version", want: "outbox", sql: `UPDATE #outbox SET body = replace(body, '"v":1', '"v":0') WHERE order_id = {autho}`},
	{name: "never told", want: "I12", sql: `UPDATE #orders SET sequence = 0 WHERE order_id = {autho}; DELETE FROM #outbox WHERE order_id = {autho}`},
	{name: "history of seats that cannot be read", want: "history", sql: `UPDATE #history SET seats = 'x' WHERE claim_id = {liveh}`},
	{name: "history given back that cannot be read", want: "history", sql: `UPDATE #history SET seats = 'x' WHERE claim_id = {backh} AND becomes = 'released'`},
	{name: "an epoch of nothing", want: "history", sql: `UPDATE #history SET seats = replace(seats, ',1]', ',0]') WHERE claim_id = {releasedh}; UPDATE #holds SET lines = replace(lines, '[29,1,', '[29,0,') WHERE hold_id = {releasedh}`},
	{name: "a sale of a hold that is not there", want: "history references limits", sql: `DELETE FROM #holds WHERE hold_id = {standingh}`},
	{name: "an event that cannot be read", want: "references", sql: `UPDATE #events SET body = 'x' WHERE event_id = {other}`},
	{name: "an event without its plan", want: "references", sql: `UPDATE #events SET body = replace(body, '"PlanHash":"hall"', '"PlanHash":"none"') WHERE event_id = {other}`},
	{name: "a counter of no scope", want: "limits", sql: `UPDATE #limits SET scope = 9 WHERE scope = 4`},
}

// shopFine must not be reported.
var shopFine = []fault{
	{name: "a refund done by an earlier try", list: func(w *world, l []payment.Payment) []payment.Payment {
		r := &listed(l, "pay-again").Refunds[0]
		r.ID = r.ID[:len(r.ID)-2]
		return l
	}},
	{name: "a refund done at the provider before the ledger heard (A21)", list: func(w *world, l []payment.Payment) []payment.Payment {
		r := w.refundsOf(w.names["waito"])[0]
		w.back(listed(l, "pay-wait"), r)
		return l
	}},
	{name: "a refund that the provider does not know yet", list: func(w *world, l []payment.Payment) []payment.Payment {
		p := listed(l, "pay-wait")
		p.Refunds = []payment.Refund{{ID: w.refundsOf(w.names["waito"])[0].Key(), AmountMinor: 5, State: payment.RefundPending}}
		return l
	}},
	{name: "an exchange whose time is up",
		sql: `UPDATE #holds SET expires_at = {now} WHERE hold_id = {markingh}; UPDATE #tickets SET exchange_hold = 0 WHERE ticket_id = {markedt0}`},
	{name: "a ticket used while it is being exchanged",
		sql: `UPDATE #tickets SET state = 2 WHERE ticket_id = {markedt0};
		      INSERT INTO #checkins (event_id, at, ticket_id, device, gate, by_id, offline, conflict) VALUES ({shop}, 1, {markedt0}, 'd', 'g', 9, 0, '')`},
	{name: "an event's notices after a backup was restored",
		sql: `UPDATE #events SET sequence = sequence + 1000000 WHERE event_id = {shop};
		      UPDATE #outbox SET sequence = sequence + 1000000 WHERE order_id = {shop} AND sequence = 2`},
}
