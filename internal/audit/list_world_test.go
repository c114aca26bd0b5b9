package audit

import "onsale/internal/ledger"

// The list is an event with a waitlist. first has bought what was offered, second is offered a seat, third let one lapse and
// waits again, fourth waits for more than came back, fifth took their wish back. Names: {v}w is the wish, {v}c the customer, {v}h the
// hold that was offered.

func (w *world) wish(name string, order int64, quantity int) {
	w.t.Helper()
	wish := ledger.Wish{
		ID: w.new(name + "w"), Event: w.names["list"], Customer: w.new(name + "c"), Quantity: quantity, Least: quantity, Order: order, Categories: []int16{0},
	}
	w.do(ledger.AddWish{Wish: wish, Key: ledger.Key{Value: name, Fields: []ledger.KeyField{{Name: "quantity", Hash: "x"}}}})
	w.pass(second)
}

func (w *world) offer(name string, seats ...int32) *ledger.Hold {
	w.t.Helper()
	r := w.do(ledger.Offer{Hold: w.new(name + "h"), Wish: w.names[name+"w"], Seats: seats, TTL: 15 * minute})
	w.pass(second)
	return r.Hold
}

func (w *world) waitlist() {
	w.new("list")
	e := hallEvent(w.names["list"], w.names["queue"])
	e.Limits, e.Quotas, e.Waitlist = nil, nil, true
	w.do(ledger.SetEvent{Event: e, Layout: hallLayout()})
	w.in = "list"
	back := w.hold("wback", 0, 1)
	places := w.holdPlaces("wplaces", 0, 2)
	w.wish("first", 3, 1)
	w.wish("second", 4, 1)
	w.wish("third", 2, 1)
	w.wish("fourth", 1, 3)
	w.wish("fifth", 5, 1)
	w.pass(6 * second)
	w.do(ledger.SetReturns{Event: w.names["list"], Returns: ledger.ReturnsWaitlist})
	w.do(ledger.Release{Hold: back.ID, Customer: back.Customer})
	w.do(ledger.Release{Hold: places.ID, Customer: places.Customer})
	lapses := w.offer("third", 0)
	w.confirm("first", w.begin("first", w.offer("first", 1)), true)
	w.do(ledger.SettleWish{Wish: w.names["firstw"]})
	w.do(ledger.Release{Hold: lapses.ID, Customer: lapses.Customer})
	w.do(ledger.SettleWish{Wish: w.names["thirdw"]})
	w.do(ledger.WithdrawWish{Wish: w.names["fifthw"], Customer: w.names["fifthc"]})
	w.pass(6 * second)
	w.offer("second", 0)
	w.in = "event"
}

const ofWish = ` WHERE wish_id = `

var listFaults = []fault{
	{name: "an offer of nobody's hold", want: "waitlist", sql: `UPDATE #wishes SET hold_id = {liveh}` + ofWish + `{secondw}`},
	{name: "an offer of another wish's hold", want: "waitlist", sql: `UPDATE #wishes SET hold_id = {firsth}` + ofWish + `{secondw}`},
	{name: "an offer to somebody else", want: "waitlist", sql: `UPDATE #wishes SET customer_id = 77` + ofWish + `{firstw}; DELETE FROM #idempotency_keys WHERE subject_id = {firstw}`},
	{name: "an offer of no wish", want: "waitlist references", sql: `UPDATE #holds SET offer_id = 12345 WHERE hold_id = {thirdh}`},
	{name: "an offer that does not fit", want: "waitlist", sql: `UPDATE #wishes SET categories = '[1]'` + ofWish + `{secondw}`},
	{name: "an offer of too little", want: "waitlist", sql: `UPDATE #wishes SET quantity = 2, least = 2` + ofWish + `{secondw}`},
	{name: "fewer offers than were made", want: "waitlist", sql: `UPDATE #wishes SET offer_count = 0` + ofWish + `{firstw}`},
	{name: "more offers than one person gets", want: "waitlist", sql: `UPDATE #wishes SET offer_count = 4` + ofWish + `{firstw}`},
	{name: "taken without being paid", want: "I12 waitlist limits", sql: `UPDATE #wishes SET state = 3` + ofWish + `{secondw}`},
	{name: "waiting while it is offered", want: "I12 waitlist", sql: `UPDATE #wishes SET state = 1` + ofWish + `{secondw}`},
	{name: "a wish in no state", want: "waitlist limits", sql: `UPDATE #wishes SET state = 7` + ofWish + `{fourthw}`},
	{name: "somebody who waits twice", want: "I12 waitlist limits", sql: `DROP INDEX #wishes_one_open; UPDATE #wishes SET state = 1, customer_id = {thirdc}` + ofWish + `{fifthw}; DELETE FROM #idempotency_keys WHERE subject_id = {fifthw}`},
	{name: "a wish that asks for less than it would take", want: "waitlist", sql: `UPDATE #wishes SET least = 4` + ofWish + `{fourthw}`},
	{name: "somebody who was passed over", want: "waitlist", sql: `UPDATE #wishes SET least = 1` + ofWish + `{fourthw}`},
	{name: "a later wish that was served first", want: "waitlist", sql: `UPDATE #wishes SET line_order = 0` + ofWish + `{fifthw}`},
	{name: "a count of wishes that is wrong", want: "limits", sql: `UPDATE #quotas SET count = count + 1 WHERE event_id = {list} AND category = -2`},
	{name: "more returned than there are", want: "I2", sql: `UPDATE #buckets SET returned = capacity + 1 WHERE event_id = {list} AND area = 0 AND number = 0`},
	{name: "a wish of another state than was told", want: "I12", sql: `UPDATE #wishes SET state = 4` + ofWish + `{fifthw}`},
	{name: "a notice of another wish", want: "outbox", sql: `UPDATE #outbox SET body = replace(body, 'wsh_', 'wsx_') WHERE order_id = {fifthw} AND sequence = 1`},
	{name: "a notice that wishes do not have", want: "outbox", sql: `UPDATE #outbox SET kind = 'booking.paid' WHERE order_id = {fifthw} AND sequence = 1`},
	{name: "a wish of no event", want: "references", sql: `INSERT INTO #wishes (` + wishColumns + `, created_at, updated_at) SELECT 424242, 12345, customer_id, 4, quantity, least, categories, sections, together, price_max, line_order, 0, 0, 0, 0, 0 FROM #wishes` + ofWish + `{fifthw}`},
}
