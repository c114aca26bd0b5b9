package stripe

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"onsale/internal/payment"
	"onsale/internal/payment/stripe/stripetest"
)

// told is what a webhook came to, in one line: "captured 20.00 of order" or "ignored: why".
func told(n payment.Notice, err error) string {
	var ignored *payment.Ignored
	switch {
	case errors.As(err, &ignored):
		return "ignored: " + ignored.Why
	case err != nil:
		return "error: " + err.Error()
	case n.Dispute != nil:
		return "dispute " + n.Dispute.State + ": " + n.Dispute.Reason
	case n.Refund != nil:
		return "refund " + string(n.Refund.State)
	}
	text := "payment " + string(n.Payment.State)
	if n.Payment.Decline.Code != "" {
		text += ": " + n.Payment.Decline.Code
	}
	return text
}

// What becomes of each of the events that other people have received, of versions of the API from 2012 to 2022. None names
// an order of ours, so those that are understood are told without one.
func TestRealEvents(t *testing.T) {
	const (
		foreign = "ignored: a charge without a payment intent is none of ours"
		again   = "ignored: the payment intent's own event says what counts"
	)
	want := map[string]string{
		"charge.captured":                          again,
		"charge.dispute.closed":                    "dispute won: general",
		"charge.dispute.created":                   "dispute warning_needs_response: fraudulent",
		"charge.dispute.funds_reinstated":          "dispute needs_response: fraudulent",
		"charge.dispute.funds_withdrawn":           "dispute needs_response: fraudulent",
		"charge.dispute.updated":                   "dispute under_review: general",
		"charge.failed":                            again,
		"charge.refund.updated":                    foreign,
		"charge.refunded":                          foreign,
		"charge.succeeded":                         again,
		"charge.updated":                           again,
		"checkout.session.completed":               "ignored: checkout pages are another program's",
		"checkout.session.completed.payment_mode":  "ignored: checkout pages are another program's",
		"checkout.session.completed.setup_mode":    "ignored: checkout pages are another program's",
		"invoice.payment_action_required":          "ignored: invoices are another program's",
		"invoice.payment_failed":                   "ignored: invoices are another program's",
		"invoice.payment_succeeded":                "ignored: invoices are another program's",
		"payment_intent.amount_capturable_updated": "payment authorized",
		"payment_intent.canceled":                  "payment cancelled",
		"payment_intent.created":                   "ignored: nothing has been asked for yet",
		"payment_intent.payment_failed":            "payment declined: generic_decline",
		"payment_intent.processing":                "payment pending",
		"payment_intent.requires_action":           "payment pending",
		"payment_intent.succeeded":                 "payment captured",
		"payment_link.created":                     "ignored: payment links are another program's",
		"payment_link.updated":                     "ignored: payment links are another program's",
		"payment_method.attached":                  "ignored: means of payment are not kept",
		"payment_method.detached":                  "ignored: means of payment are not kept",
	}
	folder := realData(t)
	b := newBench(t, nil)
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files, want %d: %v", len(files), len(want), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		n, err := b.client.ParseWebhook(b.Header(body), body)
		if got := told(n, err); got != want[name] {
			t.Errorf("%s: %s\n\twant %s", name, got, want[name])
		}
		if err == nil && (n.OrderID != "" || n.EventID == "" || n.Kind == "" || n.At.IsZero() || n.Payment.Action != nil) {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

// realData is the folder of other people's events; the test skips where it is not.
func realData(t testing.TB) string {
	t.Helper()
	root := os.Getenv("ONSALE_REAL_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "real")
	}
	folder := filepath.Join(root, "stripe")
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("no real events beside the project (ONSALE_REAL_DATA names their place): %v", err)
	}
	return folder
}

// deliver parses an event as it comes in now.
func (b *bench) deliver(e stripetest.Event) (payment.Notice, error) {
	return b.client.ParseWebhook(b.Header(e.Body), e.Body)
}

// lastOf is the last event of a kind, parsed.
func (b *bench) lastOf(t *testing.T, kind string) payment.Notice {
	t.Helper()
	all := b.Events(kind)
	if len(all) == 0 {
		t.Fatalf("no %s was sent", kind)
	}
	n, err := b.deliver(all[len(all)-1])
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return n
}

func TestEventsOfOurPayments(t *testing.T) {
	b := newBench(t, nil)
	a := b.order(stripetest.Visa)
	a.AuthorizeOnly = true
	p := b.charge(t, a, payment.Authorized)
	n := b.lastOf(t, "payment_intent.amount_capturable_updated")
	if n.OrderID != a.OrderID || n.Payment.ID != p.ID || n.Payment.State != payment.Authorized || n.Payment.AuthorizedMinor != 4250 || !n.At.Equal(b.Now()) {
		t.Fatalf("%+v", n)
	}
	if _, err := b.client.Capture(t.Context(), p.ID, 4250); err != nil {
		t.Fatal(err)
	}
	n = b.lastOf(t, "payment_intent.succeeded")
	if n.OrderID != a.OrderID || n.Payment.State != payment.Captured || n.Payment.CapturedMinor != 4250 || n.Payment.AuthorizedMinor != 4250 {
		t.Fatalf("%+v", n)
	}
	if _, err := b.client.Refund(t.Context(), p.ID, "rfd_1", 1000); err != nil {
		t.Fatal(err)
	}
	n = b.lastOf(t, "charge.refunded")
	if n.OrderID != a.OrderID || n.Payment.ID != p.ID || n.Payment.State != payment.Captured || n.Payment.CapturedMinor != 4250 || n.Payment.RefundedMinor != 1000 {
		t.Fatalf("%+v", n)
	}
	b.FinishRefund(p.ID, false)
	for _, kind := range []string{"refund.updated", "charge.refund.updated", "refund.failed"} {
		n = b.lastOf(t, kind)
		if n.OrderID != a.OrderID || n.Payment.ID != p.ID || n.Payment.State != "" || n.Refund == nil || n.Refund.ID != "rfd_1" ||
			n.Refund.AmountMinor != 1000 || n.Refund.State != payment.RefundFailed || n.Refund.PaymentID != p.ID {
			t.Fatalf("%s: %+v", kind, n)
		}
	}
	b.Dispute(p.ID)
	n = b.lastOf(t, "charge.dispute.created")
	if n.Dispute == nil || n.Payment.ID != p.ID || n.Payment.State != "" || n.Dispute.AmountMinor != 4250 || n.Dispute.Currency != "EUR" {
		t.Fatalf("%+v", n)
	}

	voided := b.authorized(t)
	b.Expire(voided.ID)
	if n = b.lastOf(t, "payment_intent.canceled"); n.Payment.State != payment.Voided || n.Payment.AuthorizedMinor != 4250 {
		t.Fatalf("%+v", n)
	}
	b.charge(t, b.order(stripetest.Declined), payment.Declined)
	if n = b.lastOf(t, "payment_intent.payment_failed"); n.Payment.Decline != (payment.Decline{Code: "generic_decline"}) {
		t.Fatalf("%+v", n)
	}
	if n = b.lastOf(t, "payment_intent.canceled"); n.Payment.Decline != (payment.Decline{Code: "generic_decline", Final: true}) {
		t.Fatalf("%+v", n)
	}
	b.charge(t, b.order(stripetest.NeedsAction), payment.Pending)
	if n = b.lastOf(t, "payment_intent.requires_action"); n.Payment.State != payment.Pending || n.Payment.Action != nil {
		t.Fatalf("%+v", n)
	}
	b.cancel(t, b.order(stripetest.Visa).OrderID, payment.EndingCancelled)
	all := b.Events("payment_intent.canceled")
	if got := told(b.deliver(all[len(all)-1])); got != "ignored: an empty payment intent that keeps an order's place" {
		t.Fatal(got)
	}
}

func TestEventsOfOthersOnTheAccount(t *testing.T) {
	for _, shared := range []bool{false, true} {
		b := newBench(t, func(c *Config, _ *stripetest.Config) { c.SharedAccount = shared })
		b.PayElsewhere(700, map[string]string{"order_id": "7"})
		want := "payment captured"
		if shared {
			want = "ignored: it names no order of ours, and the account is shared"
		}
		e := b.Events("payment_intent.succeeded")[0]
		n, err := b.deliver(e)
		if got := told(n, err); got != want || n.OrderID != "" {
			t.Errorf("shared %v: %s of order %q", shared, got, n.OrderID)
		}
	}
	b := newBench(t, nil)
	b.PayElsewhere(700, map[string]string{metaOrder: "not an id", metaAttempt: "x"})
	if got := told(b.deliver(b.Events("payment_intent.succeeded")[0])); got != "ignored: its order is none that could be ours" {
		t.Error(got)
	}
}

func TestSignatures(t *testing.T) {
	b := newBench(t, func(c *Config, _ *stripetest.Config) {
		c.WebhookSecrets = []string{"whsec_theoldoneofthem", "whsec_standinstandin"}
	})
	b.charge(t, b.order(stripetest.Visa), payment.Captured)
	body := b.Events("payment_intent.succeeded")[0].Body
	now, secret := b.Now(), "whsec_standinstandin"
	good := stripetest.Sign(secret, now, body)
	for name, c := range map[string]struct {
		header string
		body   []byte
		want   error
	}{
		"good":                 {good, body, nil},
		"of the old secret":    {stripetest.Sign("whsec_theoldoneofthem", now, body), body, nil},
		"one of two":           {strings.Replace(good, ",v1=", ",v1=00ff,v0=11,v1=", 1), body, nil},
		"5 minutes old":        {stripetest.Sign(secret, now.Add(-payment.WebhookTolerance), body), body, nil},
		"too old":              {stripetest.Sign(secret, now.Add(-payment.WebhookTolerance-time.Second), body), body, payment.ErrStale},
		"too early":            {stripetest.Sign(secret, now.Add(payment.WebhookTolerance+time.Second), body), body, payment.ErrStale},
		"none":                 {"", body, payment.ErrSignature},
		"of another secret":    {stripetest.Sign("whsec_another", now, body), body, payment.ErrSignature},
		"of another body":      {good, append(bytes.Clone(body), ' '), payment.ErrSignature},
		"another time put in":  {strings.Replace(good, "t=", "t=1", 1), body, payment.ErrSignature},
		"a second time put in": {good + ",t=1", body, payment.ErrSignature},
		"of an old scheme":     {strings.Replace(good, "v1=", "v0=", 1), body, payment.ErrSignature},
		"too long":             {good + strings.Repeat(",v0=1", signatureBytesMax), body, payment.ErrSignature},
		"too large a body":     {good, make([]byte, payment.WebhookBytesMax+1), payment.ErrMalformed},
		"signed and no event":  {stripetest.Sign(secret, now, []byte(`{}`)), []byte(`{}`), payment.ErrMalformed},
		"signed and no JSON":   {stripetest.Sign(secret, now, []byte(`{`)), []byte(`{`), payment.ErrMalformed},
	} {
		_, err := b.client.ParseWebhook(http.Header{SignatureHeader: {c.header}}, c.body)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// change gives an event with fields of the envelope changed.
func change(t *testing.T, body []byte, fields map[string]any) []byte {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		target := e
		if rest, ok := strings.CutPrefix(name, "object."); ok {
			name, target = rest, e["data"].(map[string]any)["object"].(map[string]any)
		}
		if target[name] = value; value == nil {
			delete(target, name)
		}
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEnvelopes(t *testing.T) {
	b := newBench(t, nil)
	b.charge(t, b.order(stripetest.Visa), payment.Captured)
	body := b.Events("payment_intent.succeeded")[0].Body
	for name, c := range map[string]struct {
		fields map[string]any
		want   error
	}{
		"as it is":             {nil, nil},
		"another version":      {map[string]any{"api_version": "2012-02-23"}, nil},
		"no version":           {map[string]any{"api_version": nil}, nil},
		"live":                 {map[string]any{"livemode": true}, payment.ErrWrongAccount},
		"no mode":              {map[string]any{"livemode": nil}, payment.ErrMalformed},
		"another account":      {map[string]any{"account": "acct_2"}, payment.ErrWrongAccount},
		"thin":                 {map[string]any{"object": "v2.core.event"}, payment.ErrMalformed},
		"no id":                {map[string]any{"id": nil}, payment.ErrMalformed},
		"no type":              {map[string]any{"type": nil}, payment.ErrMalformed},
		"another object":       {map[string]any{"object.object": "charge"}, payment.ErrMalformed},
		"no intent id":         {map[string]any{"object.id": ""}, payment.ErrMalformed},
		"an id that is a path": {map[string]any{"object.id": "../1"}, payment.ErrMalformed},
		"negative":             {map[string]any{"object.amount": -1}, payment.ErrMalformed},
		"text for a number":    {map[string]any{"object.amount": "1"}, payment.ErrMalformed},
		"no currency":          {map[string]any{"object.currency": nil}, payment.ErrMalformed},
		"a status of tomorrow": {map[string]any{"object.status": "requires_patience"}, nil},
		"an expanded charge":   {map[string]any{"object.latest_charge": map[string]any{"id": "ch_1", "status": "succeeded"}}, nil},
	} {
		text := change(t, body, c.fields)
		n, err := b.client.ParseWebhook(b.Header(text), text)
		if !errors.Is(err, c.want) || c.want == nil && (err != nil || n.OrderID == "") {
			t.Errorf("%s: %+v, %v, want %v", name, n, err, c.want)
		}
	}
	text := change(t, body, map[string]any{"object.status": "requires_patience"})
	if n, _ := b.client.ParseWebhook(b.Header(text), text); n.Payment.State != payment.Pending {
		t.Errorf("a status of tomorrow is taken for %s", n.Payment.State)
	}

	connected := newBench(t, func(c *Config, s *stripetest.Config) { c.Account, s.Account = "acct_1", "acct_1" })
	connected.charge(t, connected.order(stripetest.Visa), payment.Captured)
	own := connected.Events("payment_intent.succeeded")[0].Body
	if _, err := connected.client.ParseWebhook(connected.Header(own), own); err != nil {
		t.Error(err)
	}
	for _, account := range []any{nil, "acct_2"} {
		text := change(t, own, map[string]any{"account": account})
		if _, err := connected.client.ParseWebhook(connected.Header(text), text); !errors.Is(err, payment.ErrWrongAccount) {
			t.Errorf("account %v: %v", account, err)
		}
	}
}

// FuzzParseWebhook reads what anybody may send: any header, and any body that was signed.
func FuzzParseWebhook(f *testing.F) {
	b := newBench(f, nil)
	a := b.order(stripetest.Visa)
	p := b.charge(f, a, payment.Captured)
	if _, err := b.client.Refund(f.Context(), p.ID, "rfd_1", 1000); err != nil {
		f.Fatal(err)
	}
	b.FinishRefund(p.ID, false)
	b.Dispute(p.ID)
	b.charge(f, b.order(stripetest.Declined), payment.Declined)
	for _, e := range b.Events() {
		f.Add("", e.Body)
	}
	f.Add("t=1,v1=00", []byte(`{"object":"event","id":"evt_1","type":"charge.dispute.closed","livemode":false,"data":{"object":{"object":"dispute","currency":"usd"}}}`))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		known := []error{payment.ErrSignature, payment.ErrStale, payment.ErrMalformed}
		if _, err := b.client.ParseWebhook(http.Header{SignatureHeader: {header}}, body); !anyOf(err, known) {
			t.Fatalf("an unsigned body: %v", err)
		}
		n, err := b.client.ParseWebhook(b.Header(body), body)
		var ignored *payment.Ignored
		switch {
		case errors.As(err, &ignored) && ignored.Why != "":
		case err != nil:
			if !anyOf(err, append(known, payment.ErrWrongAccount)) {
				t.Fatal(err)
			}
		case payment.ValidateID("event", n.EventID) != nil, n.OrderID != "" && payment.ValidateID("order", n.OrderID) != nil,
			n.Payment.ID != "" && payment.ValidateID("payment", n.Payment.ID) != nil, n.Payment.ID == "" && n.Dispute == nil,
			n.Payment.AmountMinor < 0 || n.Payment.CapturedMinor < 0 || n.Payment.RefundedMinor < 0 || n.Payment.RefundedMinor > n.Payment.CapturedMinor,
			n.Payment.Action != nil, len(n.Kind) > wordMax:
			t.Fatalf("%+v", n)
		}
	})
}

func anyOf(err error, all []error) bool {
	for _, one := range all {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
