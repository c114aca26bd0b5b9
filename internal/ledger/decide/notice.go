package decide

import (
	"encoding/json"
	"strconv"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// noticeVersion is raised when a field of a notice changes its meaning (D5).
const noticeVersion = 1

// noticeSize is room for most of them.
const noticeSize = 256

// AppendNotice writes what a notice says of an order, as JSON: ids and figures, never names (E10). refund is the refund
// that it is about, 0 for none. Every sale writes two of them, so it is written by hand.
func AppendNotice(b []byte, o *ledger.Order, refund id.ID) []byte {
	b = strconv.AppendInt(append(b, `{"v":`...), noticeVersion, 10)
	b = o.ID.AppendText(append(b, `,"booking_id":"`...), id.Order)
	b = o.Event.AppendText(append(b, `","event_id":"`...), id.Event)
	b = o.Customer.AppendText(append(b, `","customer_id":"`...), id.Customer)
	b = append(append(append(b, `","state":"`...), o.State.String()...), '"')
	if o.Reason != "" {
		b = appendText(append(b, `,"reason":`...), o.Reason)
	}
	b = strconv.AppendInt(append(b, `,"amount_minor":`...), o.Amount, 10)
	b = appendText(append(b, `,"currency":`...), o.Currency)
	if o.Payment != "" {
		b = appendText(append(b, `,"payment_id":`...), o.Payment)
	}
	if refund != 0 {
		b = append(refund.AppendText(append(b, `,"refund_id":"`...), id.Refund), '"')
	}
	if o.Rescued {
		b = append(b, `,"rescued":true`...)
	}
	return append(b, '}')
}

// A fact is something that a notice says beside its order: an id by its name, as the public form of its kind.
type fact struct {
	name string
	id   id.ID
	kind string
}

// appendFacts adds facts to a notice that AppendNotice has written.
func appendFacts(b []byte, facts []fact) []byte {
	if len(facts) == 0 {
		return b
	}
	b = b[:len(b)-1]
	for _, f := range facts {
		b = append(append(append(b, `,"`...), f.name...), `":"`...)
		b = append(f.id.AppendText(b, f.kind), '"')
	}
	return append(b, '}')
}

// eventNotice writes one change of an event's own row to the outbox (I12), with the event's next sequence.
func (w *Work) eventNotice(e *eventRow) {
	e.Sequence++
	b := strconv.AppendInt(append(make([]byte, 0, noticeSize), `{"v":`...), noticeVersion, 10)
	b = e.ID.AppendText(append(b, `,"event_id":"`...), id.Event)
	b = append(append(append(b, `","state":"`...), e.State.String()...), '"')
	b = append(strconv.AppendInt(append(b, `,"version":`...), e.Version, 10), '}')
	w.Out.Notices = append(w.Out.Notices, ledger.Notice{Order: e.ID, Sequence: e.Sequence, Kind: ledger.NoticeEvent, Body: b, At: w.Now})
}

// appendText writes a JSON string: as it is where it is plain, else as encoding/json would.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(text)
			if err != nil {
				panic(err) // a string: it cannot fail
			}
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}
