package audit

import (
	"testing"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// limited sets the customer's limit of the shop's events, in one more version.
func (w *world) limited(name string, version int64, most int) {
	w.t.Helper()
	e, err := w.l.Events(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range e {
		if e.ID != w.names[name] {
			continue
		}
		e.Version = version
		e.Limits = []ledger.Limit{{Scope: ledger.PerEvent, Max: most}, {Scope: ledger.PerDocument, Max: most}}
		w.do(ledger.SetEvent{Event: e})
	}
}

func (w *world) audited() Report {
	w.t.Helper()
	r, err := Run(w.t.Context(), open1(w.t, w.path), Options{Provider: w.list, Now: *w.clock})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// Under a limit that was lowered to less than what somebody has, they may exchange one for one, again and again: that
// breaks no limit. What they get beside, by buying or by receiving it, would.
func TestExchangesUnderALoweredLimit(t *testing.T) {
	w, _ := sqliteWorld(t)
	w.in = "matinee"
	w.pass(minute)
	o := w.buy("regular", 20, 21, 22)
	w.pass(5 * minute)
	w.limited("matinee", 3, 2)
	w.pass(5 * minute)
	hold := w.exchangeHold("regular1", o, nil, 23, 24, 25)
	if r := w.audited(); !r.OK() {
		t.Error(render(t, &r))
	}
	o = w.confirm("regular1", w.begin("regular1", hold), true).Order
	w.pass(5 * minute)
	o = w.swap("regular2", o, ids(o.Tickets, 0, 1), 26, 27)
	if r := w.audited(); !r.OK() || o.State != ledger.OrderPaid {
		t.Error(render(t, &r))
	}
	// The guard against too much still works: one place more, written by hand.
	w.pass(5 * minute)
	friends := w.buy("friend", 28)
	w.pass(5 * minute)
	w.transfer("gift", friends.Tickets[0].ID, friends.Customer, w.new("otherc"))
	if r := w.audited(); !r.OK() {
		t.Error(render(t, &r))
	}
	w.exec(`UPDATE tickets SET customer_id = {regularc} WHERE ticket_id = {gift}; UPDATE limits SET count = 4 WHERE of_id = {matinee} AND count = 3;
		DELETE FROM limits WHERE of_id = {matinee} AND subject = x'` + hexText(w.names["otherc"]) + `'`)
	if r := w.audited(); len(r.Broken()) != 1 || r.Broken()[0] != CheckI9 {
		t.Error(render(t, &r))
	}
}

func hexText(v id.ID) string {
	const digits = "0123456789abcdef"
	text := customerSubject(v)
	var b []byte
	for i := range len(text) {
		b = append(b, digits[text[i]>>4], digits[text[i]&15])
	}
	return string(b)
}
