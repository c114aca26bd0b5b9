package audit

import (
	"encoding/json"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// keepNotices is how long published notices stay (A24).
const keepNotices = ledger.Duration(7 * 24 * 60 * 60 * 1000)

// notes checks that each change of the order has its notice, in order (I12).
func (s *sale) notes() {
	next := int64(1)
	if len(s.notices) > 0 {
		next = s.notices[0].sequence
	}
	old := s.a.now - ledger.Time(keepNotices)
	whole := next == 1 && len(s.notices) > 0
	switch {
	case s.sequence < 1:
		s.bad(CheckI12, "it has never been published")
	case len(s.notices) == 0 && s.updated >= old:
		s.bad(CheckI12, "none of its %d notices is there", s.sequence)
	case next > 1 && s.created >= old:
		s.bad(CheckI12, "its notices before %d are not there", next)
	}
	kinds, refunds := map[string]int{}, map[string]bool{}
	unpublished := false
	for i := range s.notices {
		n := &s.notices[i]
		s.a.saw(CheckOutbox, 1)
		whole = whole && inTurn(next, n.sequence)
		if !inTurn(next, n.sequence) && n.created >= old { // old ones may have been pruned in any order
			s.bad(CheckI12, "after notice %d comes %d", next-1, n.sequence)
		}
		next = n.sequence + 1
		if n.published.Valid && unpublished {
			s.bad(CheckOutbox, "notice %d was published before the one before it", n.sequence)
		}
		unpublished = unpublished || !n.published.Valid
		said, ok := s.note(n)
		kinds[n.kind]++
		refunds[said.Refund] = true
		if last := i == len(s.notices)-1; last && ok && said.State != s.state.String() {
			s.bad(CheckI12, "it is %s, its last notice says %q", s.state, said.State)
		}
	}
	if last := next - 1; len(s.notices) > 0 && !inTurn(last, s.sequence) {
		s.bad(CheckI12, "its last notice is %d, it should be %d", last, s.sequence)
	}
	if whole {
		s.allTold(kinds, refunds)
	}
}

// allTold checks that what became of the order was told, where all its notices are still there.
func (s *sale) allTold(kinds map[string]int, refunds map[string]bool) {
	if kind := endKind[s.state]; kinds[kind] == 0 {
		s.bad(CheckI12, "it is %s, and no notice is %s", s.state, kind)
	}
	for i := range s.refunds {
		if name := s.refunds[i].name(); !refunds[name] {
			s.bad(CheckI12, "no notice is of %s", name)
		}
	}
	passedOn := 0
	for i := range s.tickets {
		if s.tickets[i].was != 0 {
			passedOn++
		}
	}
	if told := kinds[ledger.NoticeTransferred]; told != passedOn {
		s.bad(CheckI12, "%d tickets were passed on, of %d there are notices", passedOn, told)
	}
}

// inTurn says whether a number is the expected one, or that one after a backup was restored, once or more often.
func inTurn(expected, is int64) bool {
	return is >= expected && (is-expected)%ledger.RestoredSequenceJump == 0
}

// endKind is the notice that says an order came into its state.
var endKind = map[ledger.OrderState]string{
	ledger.OrderPending:  ledger.NoticePending,
	ledger.OrderPaid:     ledger.NoticePaid,
	ledger.OrderFailed:   ledger.NoticeFailed,
	ledger.OrderExpired:  ledger.NoticeExpired,
	ledger.OrderRefunded: ledger.NoticeRefunded,
}

// kindsOfOrders are those that an order may have notices of.
var kindsOfOrders = map[string]bool{
	ledger.NoticePending: true, ledger.NoticePaid: true, ledger.NoticeFailed: true, ledger.NoticeExpired: true, ledger.NoticeRefunded: true,
	ledger.NoticeCaptureDue: true, ledger.NoticeGiveBack: true, ledger.NoticePayment: true, ledger.NoticeCaptureRefused: true,
	ledger.NoticeRefundRequested: true, ledger.NoticeRefundDone: true, ledger.NoticeRefundRefused: true, ledger.NoticeSeatsReleased: true,
	ledger.NoticeExchanged: true, ledger.NoticeTransferred: true, ledger.NoticeCheckedIn: true, ledger.NoticeCheckInConflict: true,
	ledger.NoticeCheckInUndone: true,
}

// said is what a notice's body says.
type said struct {
	Format  int    `json:"v"`
	Booking string `json:"booking_id"`
	Event   string `json:"event_id"`
	State   string `json:"state"`
	Refund  string `json:"refund_id"`
	Version int64  `json:"version"` // of an event
}

// note reads a notice of the order.
func (s *sale) note(n *noticeRow) (body said, ok bool) {
	switch err := json.Unmarshal([]byte(n.body), &body); {
	case err != nil:
		s.bad(CheckOutbox, "notice %d cannot be read", n.sequence)
		return body, false
	case body.Format < 1:
		s.bad(CheckOutbox, "notice %d has no version", n.sequence)
	case body.Booking != orderText(s.id):
		s.bad(CheckOutbox, "notice %d is about %q", n.sequence, body.Booking)
	case !kindsOfOrders[n.kind]:
		s.bad(CheckOutbox, "notice %d is of kind %q, which orders do not have", n.sequence, n.kind)
	}
	return body, true
}

// told is how far the notices of events were read: they lie between those of orders, sorted by event.
type told struct {
	event       id.ID
	first, last int64
	says        said // the last of them
	unpublished bool
}

// eventNote takes a notice that is of no order. It says whether it is of an event.
func (a *audit) eventNote(n *noticeRow) bool {
	e := a.events[n.order]
	if e == nil || !e.known {
		return false
	}
	a.saw(CheckOutbox, 1)
	t := &a.told
	name := n.order.Text(id.Event)
	if t.event != n.order {
		a.eventTold()
		*t = told{event: n.order, first: n.sequence}
	} else if !inTurn(t.last+1, n.sequence) && n.created >= a.now-ledger.Time(keepNotices) {
		a.bad(CheckI12, n.order, name, "after notice %d comes %d", t.last, n.sequence)
	}
	if n.published.Valid && t.unpublished {
		a.bad(CheckOutbox, n.order, name, "notice %d was published before the one before it", n.sequence)
	}
	t.unpublished = t.unpublished || !n.published.Valid
	t.last, t.says = n.sequence, said{}
	switch err := json.Unmarshal([]byte(n.body), &t.says); {
	case err != nil || t.says.Format < 1 || t.says.Event != name:
		a.bad(CheckOutbox, n.order, name, "notice %d cannot be read, or is about %q", n.sequence, t.says.Event)
	case n.kind != ledger.NoticeEvent:
		a.bad(CheckOutbox, n.order, name, "notice %d is of kind %q, which events do not have", n.sequence, n.kind)
	}
	return true
}

// eventTold judges the notices of the event that were read last: they end with the event as it is (I12).
func (a *audit) eventTold() {
	t := &a.told
	e := a.events[t.event]
	if e == nil {
		return
	}
	e.told = true
	name := e.id.Text(id.Event)
	if says := t.says; says.State != e.State || says.Version != e.version {
		a.bad(CheckI12, e.id, name, "it is %s in version %d, its last notice says %q in version %d", e.State, e.version, says.State, says.Version)
	}
	if !inTurn(t.last, e.notices) {
		a.bad(CheckI12, e.id, name, "its last notice is %d, it should be %d", t.last, e.notices)
	}
	if a.young(e.id) && !inTurn(1, t.first) {
		a.bad(CheckI12, e.id, name, "its notices before %d are not there", t.first)
	}
}

// eventsTold judges what was read last, and the events of which no notice is left.
func (a *audit) eventsTold() {
	a.eventTold()
	for _, event := range sortedKeys(a.events) {
		e := a.events[event]
		if !e.known {
			continue
		}
		a.saw(CheckI12, 1)
		if !e.told && e.notices > 0 && a.young(event) {
			a.bad(CheckI12, event, event.Text(id.Event), "none of its %d notices is there", e.notices)
		}
	}
}

// young says whether all notices of an event must still be there.
func (a *audit) young(event id.ID) bool { return madeAt(event) >= a.now-ledger.Time(keepNotices) }
