package decide

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// What a notice is, said by encoding/json.
type noticeBody struct {
	Version  int    `json:"v"`
	Booking  string `json:"booking_id"`
	Event    string `json:"event_id"`
	Customer string `json:"customer_id"`
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Amount   int64  `json:"amount_minor"`
	Currency string `json:"currency"`
	Payment  string `json:"payment_id,omitempty"`
	Refund   string `json:"refund_id,omitempty"`
	Rescued  bool   `json:"rescued,omitempty"`
}

func TestNoticeIsWhatEncodingJSONWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) id.ID { return id.ID(rapid.Int64Range(0, 1<<62).Draw(t, name)) }
		o := ledger.Order{
			ID: number("order"), Event: number("event"), Customer: number("customer"), Reason: rapid.String().Draw(t, "reason"),
			State: ledger.OrderState(rapid.IntRange(1, 5).Draw(t, "state")), Amount: rapid.Int64().Draw(t, "amount"),
			Currency: rapid.String().Draw(t, "currency"), Payment: rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]*`)).Draw(t, "payment"),
			Rescued: rapid.Bool().Draw(t, "rescued"),
		}
		refund := rapid.SampledFrom([]id.ID{0, number("refund")}).Draw(t, "which refund")
		body := noticeBody{
			Version: 1, Booking: o.ID.Text(id.Order), Event: o.Event.Text(id.Event), Customer: o.Customer.Text(id.Customer),
			State: o.State.String(), Reason: o.Reason, Amount: o.Amount, Currency: o.Currency, Payment: o.Payment, Rescued: o.Rescued,
		}
		if refund != 0 {
			body.Refund = refund.Text(id.Refund)
		}
		want, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendNotice(nil, &o, refund)); got != string(want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}
