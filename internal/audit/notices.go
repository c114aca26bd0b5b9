package audit

import (
	"encoding/json"

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
	states := map[string]bool{}
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
		state, ok := s.note(n)
		states[n.kind] = true
		if last := i == len(s.notices)-1; last && ok && state != s.state.String() {
			s.bad(CheckI12, "it is %s, its last notice says %q", s.state, state)
		}
	}
	if last := next - 1; len(s.notices) > 0 && !inTurn(last, s.sequence) {
		s.bad(CheckI12, "its last notice is %d, it should be %d", last, s.sequence)
	}
	if kind := endKind[s.state]; whole && kind != "" && !states[kind] {
		s.bad(CheckI12, "it is %s, and no notice is %s", s.state, kind)
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

// note reads a notice's body and gives the order's state in it.
func (s *sale) note(n *noticeRow) (state string, ok bool) {
	var body struct {
		Version int    `json:"v"`
		Booking string `json:"booking_id"`
		State   string `json:"state"`
	}
	switch err := json.Unmarshal([]byte(n.body), &body); {
	case err != nil:
		s.bad(CheckOutbox, "notice %d cannot be read", n.sequence)
		return "", false
	case body.Version < 1:
		s.bad(CheckOutbox, "notice %d has no version", n.sequence)
	case body.Booking != orderText(s.id):
		s.bad(CheckOutbox, "notice %d is about %q", n.sequence, body.Booking)
	case n.kind == "":
		s.bad(CheckOutbox, "notice %d is of no kind", n.sequence)
	}
	return body.State, true
}
