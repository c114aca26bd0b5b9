package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"onsale/internal/payment"
)

func webhookBody(t testing.TB, change func(*webhook)) []byte {
	t.Helper()
	w := webhook{Format: webhookFormat, EventID: "evt_1", Kind: "payment.captured", Account: "sandbox", Mode: payment.Test,
		Payment: payment.Payment{ID: "pay_1", OrderID: "ord_1", State: payment.Captured, AmountMinor: 5, Currency: "EUR", CapturedMinor: 5}}
	if change != nil {
		change(&w)
	}
	body, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func signedHeader(value string) http.Header {
	h := http.Header{}
	h.Set(SignatureHeader, value)
	return h
}

func TestParseWebhook(t *testing.T) {
	at := newClock().Now()
	oldSecret := bytes.Repeat([]byte("o"), secretBytesMin)
	c, err := NewClient(ClientConfig{URL: "http://127.0.0.1:1", APIKey: testKey, WebhookSecrets: [][]byte{testSecret, oldSecret},
		Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	body := webhookBody(t, nil)
	good := sign(testSecret, at, body)
	for name, ok := range map[string]string{
		"now": good, "old secret": sign(oldSecret, at, body),
		"5 min ago": sign(testSecret, at.Add(-payment.WebhookTolerance), body), "5 min ahead": sign(testSecret, at.Add(payment.WebhookTolerance), body),
	} {
		n, err := c.ParseWebhook(signedHeader(ok), body)
		if err != nil || n.EventID != "evt_1" || n.OrderID != "ord_1" || n.Kind != "payment.captured" || n.Payment.CapturedMinor != 5 {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
		// A replay within the tolerance has the same event id, by which its receiver knows it.
		if again, err := c.ParseWebhook(signedHeader(ok), body); err != nil || again.EventID != n.EventID {
			t.Errorf("%s again: %+v, %v", name, again, err)
		}
	}
	// Golden: what other versions send and check.
	if got := sign(testSecret, time.Unix(1_800_000_000, 0), []byte("body")); got != goldenSignature {
		t.Errorf("signature %s, want %s", got, goldenSignature)
	}

	longAgo := at.Add(-payment.WebhookTolerance - time.Second)
	ahead := at.Add(payment.WebhookTolerance + time.Second)
	moved := strings.Replace(good, "t=", "t=1", 1)
	type bad struct {
		header string
		body   []byte
		want   error
	}
	signedBad := func(body []byte, want error) bad { return bad{sign(testSecret, at, body), body, want} }
	for name, b := range map[string]bad{
		"no header":         {"", body, payment.ErrSignature},
		"other secret":      {sign(bytes.Repeat([]byte("x"), 32), at, body), body, payment.ErrSignature},
		"other body":        {good, webhookBody(t, func(w *webhook) { w.Payment.AmountMinor = 6 }), payment.ErrSignature},
		"one space more":    {good, append(bytes.Clone(body), ' '), payment.ErrSignature},
		"other time":        {moved, body, payment.ErrSignature},
		"no time":           {strings.TrimPrefix(good, "t="), body, payment.ErrSignature},
		"empty mac":         {good[:strings.Index(good, "v1=")+3], body, payment.ErrSignature},
		"not hex":           {good[:len(good)-1] + "g", body, payment.ErrSignature},
		"short mac":         {good[:len(good)-2], body, payment.ErrSignature},
		"long ago":          {sign(testSecret, longAgo, body), body, payment.ErrStale},
		"ahead":             {sign(testSecret, ahead, body), body, payment.ErrStale},
		"A20 other account": signedBad(webhookBody(t, func(w *webhook) { w.Account = "other" }), payment.ErrWrongAccount),
		"A20 live mode":     signedBad(webhookBody(t, func(w *webhook) { w.Mode = payment.Live }), payment.ErrWrongAccount),
		"other format":      signedBad(webhookBody(t, func(w *webhook) { w.Format = 2 }), payment.ErrMalformed),
		"no event id":       signedBad(webhookBody(t, func(w *webhook) { w.EventID = "" }), payment.ErrMalformed),
		"no payment":        signedBad(webhookBody(t, func(w *webhook) { w.Payment = payment.Payment{} }), payment.ErrMalformed),
		"path as order id":  signedBad(webhookBody(t, func(w *webhook) { w.Payment.OrderID = "../x" }), payment.ErrMalformed),
		"not JSON":          signedBad([]byte("hello"), payment.ErrMalformed),
		"empty":             signedBad(nil, payment.ErrMalformed),
		"too large":         signedBad(bytes.Repeat([]byte(" "), payment.WebhookBytesMax+1), payment.ErrMalformed),
	} {
		n, err := c.ParseWebhook(signedHeader(b.header), b.body)
		if !errors.Is(err, b.want) || n.EventID != "" || n.Payment.ID != "" {
			t.Errorf("%s: %+v, %v; want %v", name, n, err, b.want)
		}
	}
	// RULES A20: unknown fields are allowed, an order id may be missing.
	body = []byte(strings.Replace(string(webhookBody(t, func(w *webhook) { w.Payment.OrderID = "" })), "{", `{"new":1,`, 1))
	if n, err := c.ParseWebhook(signedHeader(sign(testSecret, at, body)), body); err != nil || n.OrderID != "" {
		t.Errorf("unknown field: %+v, %v", n, err)
	}
}

const goldenSignature = "t=1800000000,v1=2a6f1819d80ae8833792c51001353c522cdbee22ddb09e2238d2b79fe6b71ebc"

// FuzzWebhook: without the secret nothing is taken, whatever header and body; with it, nothing crashes, and what is taken
// has ids that can be used.
func FuzzWebhook(f *testing.F) {
	at := newClock().Now()
	c, err := NewClient(ClientConfig{URL: "http://127.0.0.1:1", APIKey: testKey, WebhookSecrets: [][]byte{testSecret},
		Now: func() time.Time { return at }})
	if err != nil {
		f.Fatal(err)
	}
	body := webhookBody(f, nil)
	f.Add(sign(bytes.Repeat([]byte("x"), 32), at, body), body)
	f.Add("t=1,v1=", []byte("{}"))
	f.Add("", []byte(`{"format":1,"payment":null}`))
	f.Add("t=,v1=00", []byte(`{"format":1,"event_id":"e","account":"sandbox","mode":"test","payment":{"payment_id":"p","created_at":"x"}}`))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		if n, err := c.ParseWebhook(signedHeader(header), body); err == nil {
			t.Fatalf("taken without a signature: %+v", n)
		}
		n, err := c.ParseWebhook(signedHeader(sign(testSecret, at, body)), body)
		if err != nil {
			if n.EventID != "" {
				t.Fatalf("%+v beside %v", n, err)
			}
			return
		}
		if payment.ValidateID("", n.EventID) != nil || payment.ValidateID("", n.Payment.ID) != nil || n.OrderID != n.Payment.OrderID {
			t.Fatalf("unusable: %+v", n)
		}
	})
}
