package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"onsale/internal/payment"
)

func orderOf(orderID, token string) payment.Attempt {
	return payment.Attempt{OrderID: orderID, AmountMinor: 1000, Currency: "EUR", Token: token}
}

// receiver takes webhooks, verified by the client, and answers what `status` says.
type receiver struct {
	url string

	mu      sync.Mutex
	status  int
	notices []payment.Notice
	arrived chan payment.Notice
}

func (b *bench) receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusOK, arrived: make(chan payment.Notice, 512)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Errorf("webhook: %v", err)
		}
		notice, err := b.client.ParseWebhook(q.Header, body)
		if err != nil {
			t.Errorf("webhook %s: %v", body, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.status == http.StatusOK {
			r.notices = append(r.notices, notice)
			r.arrived <- notice
		}
		w.WriteHeader(r.status)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	if err := b.service.SetWebhookURL(server.URL); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// kinds are the webhooks of an order in the order in which they came.
func (r *receiver) kinds(orderID string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var kinds []string
	for _, n := range r.notices {
		if n.OrderID == orderID {
			kinds = append(kinds, n.Kind)
		}
	}
	return kinds
}

func (r *receiver) want(t *testing.T, orderID string, kinds ...string) {
	t.Helper()
	if got := r.kinds(orderID); !slices.Equal(got, kinds) {
		t.Fatalf("webhooks of %s: %v, want %v", orderID, got, kinds)
	}
}

func (b *bench) charge(t *testing.T, a payment.Attempt) payment.Payment {
	t.Helper()
	p, err := b.client.Charge(t.Context(), a)
	if err != nil {
		t.Fatalf("charge %s: %v", a.OrderID, err)
	}
	return p
}

func (b *bench) chargeUnknown(t *testing.T, a payment.Attempt) {
	t.Helper()
	if p, err := b.client.Charge(t.Context(), a); !errors.Is(err, payment.ErrUnknown) || p.ID != "" {
		t.Fatalf("charge %s: %+v, %v; want unknown", a.OrderID, p, err)
	}
}

// wantStates checks all payments of an order.
func (b *bench) wantStates(t *testing.T, orderID string, states ...payment.State) []payment.Payment {
	t.Helper()
	found, err := b.client.Lookup(t.Context(), orderID)
	if err != nil || len(found) != len(states) {
		t.Fatalf("lookup %s: %+v, %v; want %v", orderID, found, err, states)
	}
	for i, p := range found {
		if p.State != states[i] {
			t.Fatalf("lookup %s: %+v, want %v", orderID, found, states)
		}
	}
	return found
}

// faultTests has one scenario for each fault; each must make exactly its faults happen.
var faultTests = map[Fault]func(t *testing.T, b *bench, r *receiver){
	FaultDeclined: func(t *testing.T, b *bench, r *receiver) {
		for range 2 {
			if p := b.charge(t, orderOf("o", "tok_declined")); p.State != payment.Declined || !p.Decline.Final {
				t.Fatalf("%+v", p)
			}
		}
		b.runDue(t)
		r.want(t, "o", "payment.declined")
	},
	FaultDeclinedSoft: func(t *testing.T, b *bench, r *receiver) {
		if p := b.charge(t, orderOf("o", "tok_declined_soft")); p.State != payment.Declined || p.Decline.Final {
			t.Fatalf("%+v", p)
		}
		if p := b.charge(t, orderOf("o", "tok_declined_soft")); p.State != payment.Captured || p.Decline.Code != "" {
			t.Fatalf("again: %+v", p)
		}
		b.wantStates(t, "o", payment.Captured)
	},
	FaultPending: func(t *testing.T, b *bench, r *receiver) {
		if p := b.charge(t, orderOf("o", "tok_pending")); p.State != payment.Pending || p.CapturedMinor != 0 {
			t.Fatalf("%+v", p)
		}
		b.runDue(t)
		b.wantStates(t, "o", payment.Pending)
		b.Advance(b.service.delays.Pending)
		b.runDue(t)
		b.wantStates(t, "o", payment.Captured)
		r.want(t, "o", "payment.pending", "payment.captured")
	},
	FaultPendingDeclined: func(t *testing.T, b *bench, r *receiver) {
		b.charge(t, orderOf("o", "tok_pending_declined"))
		b.Advance(b.service.delays.Pending)
		b.runDue(t)
		if p := b.wantStates(t, "o", payment.Declined)[0]; !p.Decline.Final {
			t.Fatalf("%+v", p)
		}
		r.want(t, "o", "payment.pending", "payment.declined")
	},
	FaultPayLate: func(t *testing.T, b *bench, r *receiver) {
		b.charge(t, orderOf("o", "tok_pay_late"))
		if e, err := b.client.Cancel(t.Context(), "o"); err != nil || e.Result != payment.EndingPending {
			t.Fatalf("cancel: %+v, %v", e, err)
		}
		b.Advance(b.service.delays.Late - time.Millisecond)
		b.runDue(t)
		b.wantStates(t, "o", payment.Pending)
		b.Advance(time.Millisecond)
		b.runDue(t)
		b.wantStates(t, "o", payment.Captured)
		if e, err := b.client.Cancel(t.Context(), "o"); err != nil || e.Result != payment.EndingPaid {
			t.Fatalf("cancel: %+v, %v", e, err)
		}
		r.want(t, "o", "payment.pending", "payment.captured")
	},
	FaultServerError: func(t *testing.T, b *bench, r *receiver) {
		b.chargeUnknown(t, orderOf("o", "tok_server_error"))
		b.wantStates(t, "o")
		if p := b.charge(t, orderOf("o", "tok_server_error")); p.State != payment.Captured {
			t.Fatalf("%+v", p)
		}
	},
	FaultLostAnswer: func(t *testing.T, b *bench, r *receiver) {
		b.chargeUnknown(t, orderOf("o", "tok_lost_answer"))
		found := b.wantStates(t, "o", payment.Captured)
		if p := b.charge(t, orderOf("o", "tok_lost_answer")); p.ID != found[0].ID {
			t.Fatalf("charged twice: %+v, %+v", p, found)
		}
		b.wantStates(t, "o", payment.Captured)
	},
	FaultWrongAmount: func(t *testing.T, b *bench, r *receiver) {
		if p := b.charge(t, orderOf("o", "tok_wrong_amount")); p.AmountMinor != 999 || p.CapturedMinor != 999 {
			t.Fatalf("%+v", p)
		}
	},
	FaultSecondPayment: func(t *testing.T, b *bench, r *receiver) {
		b.charge(t, orderOf("o", "tok_second_payment"))
		found := b.wantStates(t, "o", payment.Captured, payment.Captured)
		if found[0].ID == found[1].ID {
			t.Fatal("the second payment is the first")
		}
		b.charge(t, orderOf("o", "tok_second_payment"))
		b.wantStates(t, "o", payment.Captured, payment.Captured)
		b.runDue(t)
		r.want(t, "o", "payment.captured", "payment.captured")
	},
	FaultCaptureRefused: func(t *testing.T, b *bench, r *receiver) {
		a := orderOf("o", "tok_capture_refused")
		a.AuthorizeOnly = true
		p := b.charge(t, a)
		for range 2 {
			var refused *payment.Refused
			if _, err := b.client.Capture(t.Context(), p.ID, 1000); !errors.As(err, &refused) || refused.Code != refusalCapture {
				t.Fatalf("capture: %v", err)
			}
		}
		b.wantStates(t, "o", payment.Voided)
		b.runDue(t)
		r.want(t, "o", "payment.authorized", "payment.voided")
	},
	FaultRefundRefused: func(t *testing.T, b *bench, r *receiver) {
		p := b.charge(t, orderOf("o", "tok_refund_refused"))
		for range 2 {
			var refused *payment.Refused
			if _, err := b.client.Refund(t.Context(), p.ID, "rfd", 1000); !errors.As(err, &refused) || refused.Code != refusalRefund {
				t.Fatalf("refund: %v", err)
			}
		}
		if p := b.wantStates(t, "o", payment.Captured)[0]; p.RefundedMinor != 0 || len(p.Refunds) != 0 {
			t.Fatalf("%+v", p)
		}
	},
	FaultWebhookRepeat: func(t *testing.T, b *bench, r *receiver) {
		b.charge(t, orderOf("o", "tok_webhook_repeat"))
		b.runDue(t)
		r.want(t, "o", "payment.captured")
		b.Advance(b.service.delays.Repeat)
		b.runDue(t)
		r.want(t, "o", "payment.captured", "payment.captured")
		if r.notices[0].EventID != r.notices[1].EventID {
			t.Fatalf("not the same event: %+v", r.notices)
		}
	},
	FaultWebhookReorder: func(t *testing.T, b *bench, r *receiver) {
		b.charge(t, orderOf("o", "tok_webhook_reorder"))
		b.runDue(t)
		r.want(t, "o", "payment.captured", "payment.pending")
		if r.notices[0].Payment.Revision <= r.notices[1].Payment.Revision {
			t.Fatalf("revisions do not tell which picture is later: %+v", r.notices)
		}
	},
	FaultWebhookNever: func(t *testing.T, b *bench, r *receiver) {
		b.charge(t, orderOf("o", "tok_webhook_never"))
		b.Advance(time.Hour)
		b.runDue(t)
		r.want(t, "o")
		b.wantStates(t, "o", payment.Captured)
	},
}

func TestEachFault(t *testing.T) {
	for _, f := range Faults() {
		t.Run(string(f), func(t *testing.T) {
			scenario := faultTests[f]
			if scenario == nil {
				t.Fatal("this fault has no test")
			}
			b := open(t, nil)
			r := b.receive(t)
			b.wantFaults(t, nil)
			scenario(t, b, r)
			b.wantFaults(t, map[Fault]int64{f: 1})
		})
	}
}

func TestFaultsTogether(t *testing.T) {
	b := open(t, nil)
	r := b.receive(t)
	token := Token(FaultPending, FaultServerError, FaultLostAnswer, FaultSecondPayment, FaultWebhookReorder, FaultWebhookRepeat)
	b.chargeUnknown(t, orderOf("o", token))
	b.chargeUnknown(t, orderOf("o", token))
	if p := b.charge(t, orderOf("o", token)); p.State != payment.Pending {
		t.Fatalf("%+v", p)
	}
	b.Advance(b.service.delays.Pending)
	b.runDue(t)
	b.wantStates(t, "o", payment.Captured, payment.Captured)
	b.Advance(time.Minute)
	b.runDue(t)
	counts := map[string]int{}
	for _, k := range r.kinds("o") {
		counts[k]++
	}
	if counts["payment.pending"] != 2 || counts["payment.captured"] != 4 {
		t.Fatalf("webhooks: %v", counts)
	}
}

func TestCancelPending(t *testing.T) {
	b := open(t, nil)
	r := b.receive(t)
	b.charge(t, orderOf("o", "tok_pending"))
	b.charge(t, orderOf("soft", "tok_declined_soft"))
	for range 2 {
		if e, err := b.client.Cancel(t.Context(), "o"); err != nil || e.Result != payment.EndingCancelled {
			t.Fatalf("cancel: %+v, %v", e, err)
		}
		if e, err := b.client.Cancel(t.Context(), "soft"); err != nil || e.Result != payment.EndingDeclined || !e.Payments[0].Decline.Final {
			t.Fatalf("cancel: %+v, %v", e, err)
		}
	}
	b.Advance(time.Hour)
	b.runDue(t)
	if p := b.charge(t, orderOf("o", "tok_pending")); p.State != payment.Cancelled {
		t.Fatalf("%+v", p)
	}
	if p := b.charge(t, orderOf("soft", "tok_declined_soft")); p.State != payment.Declined || !p.Decline.Final {
		t.Fatalf("%+v", p)
	}
	r.want(t, "o", "payment.pending", "payment.cancelled")
	b.wantStates(t, "o", payment.Cancelled)
}

func TestAuthorizedPendingAndOddAmounts(t *testing.T) {
	b := open(t, nil)
	a := orderOf("o", "tok_pending")
	a.AuthorizeOnly = true
	p := b.charge(t, a)
	if _, err := b.client.Capture(t.Context(), p.ID, 1000); !errors.Is(err, payment.ErrInvalid) {
		t.Fatalf("capture of a pending payment must not look final: %v", err)
	}
	if _, err := b.client.Void(t.Context(), p.ID); !errors.Is(err, payment.ErrInvalid) {
		t.Fatalf("void of a pending payment: %v", err)
	}
	if _, err := b.client.Refund(t.Context(), p.ID, "r", 1); !errors.Is(err, payment.ErrInvalid) {
		t.Fatalf("refund of a pending payment: %v", err)
	}
	b.Advance(b.service.delays.Pending)
	b.runDue(t)
	b.wantStates(t, "o", payment.Authorized)
	if _, err := b.client.Refund(t.Context(), p.ID, "r", 1); !errors.Is(err, payment.ErrInvalid) {
		t.Fatalf("refund of an authorized payment: %v", err)
	}
	one := orderOf("one", "tok_wrong_amount")
	one.AmountMinor = 1
	if p := b.charge(t, one); p.AmountMinor != 2 {
		t.Fatalf("wrong amount of 1: %+v", p)
	}
}

func TestUnknownTokens(t *testing.T) {
	b := open(t, nil)
	for i, token := range []string{"tok_", "tok", "4242424242424242", "tok_nonsense", "tok_declined+pending", "tok_pending+pending", "tok_pending+", "tok_OK"} {
		p := b.charge(t, orderOf("o"+string(rune('a'+i)), token))
		if p.State != payment.Declined || p.Decline != (payment.Decline{Code: declineTokenUnknown, Final: true}) {
			t.Errorf("%s: %+v", token, p)
		}
	}
	b.wantFaults(t, nil)
}

func TestFaultPlan(t *testing.T) {
	plan := FaultPlan{Seed: 42, Rates: map[Fault]float64{FaultDeclined: 0.1, FaultPending: 0.2, FaultLostAnswer: 0.3}}
	counts := map[Fault]int{}
	const orders = 20_000
	for i := range orders {
		id := "ord_" + string(rune('A'+i%26)) + time.Duration(i).String()
		set := plan.draw(id)
		if !slices.Equal(set, plan.draw(id)) {
			t.Fatal("the same order meets other faults the second time")
		}
		if set.has(FaultDeclined) && set.has(FaultPending) {
			t.Fatal("two outcomes")
		}
		for _, f := range set {
			counts[f]++
		}
	}
	for f, rate := range plan.Rates {
		if got := float64(counts[f]) / orders; got < rate*0.9 || got > rate*1.1 {
			t.Errorf("%s meets %.3f of all, want %.3f", f, got, rate)
		}
	}
	if len(counts) != len(plan.Rates) {
		t.Errorf("faults without a rate: %v", counts)
	}
	other := plan
	other.Seed++
	same := 0
	for i := range 1000 {
		id := time.Duration(i).String()
		if slices.Equal(plan.draw(id), other.draw(id)) {
			same++
		}
	}
	if same == 1000 {
		t.Error("the seed changes nothing")
	}
	for name, bad := range map[string]FaultPlan{
		"unknown": {Rates: map[Fault]float64{"rain": 0.1}}, "negative": {Rates: map[Fault]float64{FaultPending: -0.1}},
		"above 1": {Rates: map[Fault]float64{FaultLostAnswer: 1.1}}, "sum": {Rates: map[Fault]float64{FaultPending: 0.6, FaultDeclined: 0.6}},
	} {
		if bad.Validate() == nil {
			t.Errorf("plan %s was taken", name)
		}
	}

	b := open(t, func(c *Config) { c.Plan = FaultPlan{Rates: map[Fault]float64{FaultDeclined: 1}} })
	if p := b.charge(t, orderOf("ok", TokenOK)); p.State != payment.Declined {
		t.Errorf("%s escaped the plan: %+v", TokenOK, p)
	}
	if p := b.charge(t, orderOf("sure", TokenSure)); p.State != payment.Captured {
		t.Errorf("%s met the plan: %+v", TokenSure, p)
	}
}

func TestWebhookRetries(t *testing.T) {
	b := open(t, nil)
	r := b.receive(t)
	r.answer(http.StatusServiceUnavailable)
	b.charge(t, orderOf("o", TokenSure))
	b.runDue(t)
	for _, delay := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		b.Advance(delay - time.Millisecond)
		if count, err := b.service.RunDue(t.Context()); count != 0 || err != nil {
			t.Fatalf("retried before %v: %d, %v", delay, count, err)
		}
		b.Advance(time.Millisecond)
		if count, err := b.service.RunDue(t.Context()); count != 1 || err != nil {
			t.Fatalf("not retried after %v: %d, %v", delay, count, err)
		}
	}
	r.want(t, "o")
	r.answer(http.StatusOK)
	b.Advance(time.Minute)
	b.runDue(t)
	r.want(t, "o", "payment.captured")
	b.Advance(time.Hour)
	b.runDue(t)
	r.want(t, "o", "payment.captured")

	// A receiver that is never there is given up.
	r.answer(http.StatusFound)
	b.charge(t, orderOf("lost", TokenSure))
	for range deliveryTriesMax {
		if count, err := b.service.RunDue(t.Context()); count != 1 || err != nil {
			t.Fatalf("%d, %v", count, err)
		}
		b.Advance(retryDelayMax)
	}
	if count, err := b.service.RunDue(t.Context()); count != 0 || err != nil {
		t.Fatalf("tried more than %d times: %v", deliveryTriesMax, err)
	}
	r.want(t, "lost")
}

// What was answered is there after the process has gone, also what was still to happen.
func TestBooksSurvive(t *testing.T) {
	b := open(t, nil)
	paid := b.charge(t, orderOf("paid", TokenSure))
	if _, err := b.client.Refund(t.Context(), paid.ID, "rfd", 300); err != nil {
		t.Fatal(err)
	}
	b.charge(t, orderOf("pending", "tok_pending"))
	b.chargeUnknown(t, orderOf("unanswered", "tok_server_error"))
	if _, err := b.client.Cancel(t.Context(), "never"); err != nil {
		t.Fatal(err)
	}
	before, err := b.client.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}

	// Another process on the same file: nothing of the first one's memory is used. (The first is closed at the end.)
	b.start(t)
	after, err := b.client.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if x, y := toJSON(t, before), toJSON(t, after); x != y {
		t.Fatalf("books before %s, after %s", x, y)
	}
	if again := b.charge(t, orderOf("paid", TokenSure)); again.ID != paid.ID || again.RefundedMinor != 300 {
		t.Fatalf("%+v", again)
	}
	if p := b.charge(t, orderOf("never", TokenSure)); p.State != payment.Cancelled {
		t.Fatalf("%+v", p)
	}
	if p := b.charge(t, orderOf("unanswered", "tok_server_error")); p.State != payment.Captured {
		t.Fatalf("the fault met the order twice: %+v", p)
	}
	r := b.receive(t)
	b.Advance(time.Minute)
	b.runDue(t)
	b.wantStates(t, "pending", payment.Captured)
	r.want(t, "pending", "payment.pending", "payment.captured")
	r.want(t, "paid", "payment.captured", "payment.refunded")
	b.wantFaults(t, map[Fault]int64{FaultPending: 1, FaultServerError: 1})
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOpenRefuses(t *testing.T) {
	b := open(t, nil)
	for name, change := range map[string]func(*Config){
		"no path": func(c *Config) { c.Path = "" }, "folder": func(c *Config) { c.Path = t.TempDir() },
		"short key": func(c *Config) { c.APIKey = "short" }, "short secret": func(c *Config) { c.WebhookSecret = nil },
		"other account": func(c *Config) { c.Account = "another" }, "bad URL": func(c *Config) { c.WebhookURL = "file:///etc" },
		"bad plan":       func(c *Config) { c.Plan.Rates = map[Fault]float64{"rain": 1} },
		"negative delay": func(c *Config) { c.Delays.Late = -1 },
	} {
		c := b.config
		change(&c)
		if s, err := Open(c); err == nil {
			t.Errorf("%s was taken", name)
			_ = s.Close()
		}
	}
	for _, listen := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "nonsense"} {
		c := b.config
		c.Listen = listen
		if s, err := Start(c); err == nil {
			t.Errorf("E1: it listens on %s", listen)
			_ = s.Stop(context.Background())
		}
	}
}

func TestRequestsRefused(t *testing.T) {
	b := open(t, nil)
	ask := func(key, method, path, body string) int {
		t.Helper()
		q, err := http.NewRequest(method, b.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+key)
		r, err := b.client.http.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		_, _ = io.Copy(io.Discard, r.Body)
		return r.StatusCode
	}
	good := `{"order_id":"o","amount_minor":1,"currency":"EUR","token":"tok_sure"}`
	for name, c := range map[string]struct {
		key, method, path, body string
		want                    int
	}{
		"no key":         {"", "POST", "/v1/charges", good, 401},
		"wrong key":      {testKey + "x", "POST", "/v1/charges", good, 401},
		"unknown field":  {testKey, "POST", "/v1/charges", `{"order_id":"o","amount_minor":1,"currency":"EUR","token":"tok_sure","x":1}`, 400},
		"two values":     {testKey, "POST", "/v1/charges", good + good, 400},
		"too large":      {testKey, "POST", "/v1/charges", good[:1] + strings.Repeat(" ", requestBytesMax) + good[1:], 400},
		"fraction":       {testKey, "POST", "/v1/charges", strings.Replace(good, ":1,", ":1.5,", 1), 400},
		"bad limit":      {testKey, "GET", "/v1/payments?limit=0", "", 400},
		"huge limit":     {testKey, "GET", "/v1/payments?limit=501", "", 400},
		"no such path":   {testKey, "GET", "/v1/secrets", "", 404},
		"wrong method":   {testKey, "DELETE", "/v1/payments", "", 405},
		"other books id": {testKey, "POST", "/v1/payments/pay_other_1/void", "", 404},
	} {
		if got := ask(c.key, c.method, c.path, c.body); got != c.want {
			t.Errorf("%s: status %d, want %d", name, got, c.want)
		}
	}
	b.wantStates(t, "o")
	b.client.apiKey = "wrong"
	if _, err := b.client.Lookup(t.Context(), "o"); !errors.Is(err, payment.ErrUnknown) {
		t.Errorf("a client with a wrong key: %v", err)
	}
}
