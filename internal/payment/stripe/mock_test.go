package stripe

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"onsale/internal/payment"
)

// TestShapes sends every call that the adapter makes to stripe-mock, which knows the API's OpenAPI document and refuses
// parameters that are not in it. It keeps nothing and answers samples: what is checked is that all is taken and readable.
func TestShapes(t *testing.T) {
	c, err := New(Config{SecretKey: "sk_test_123", WebhookSecrets: []string{"whsec_12345678"}, URL: startMock(t),
		ReturnURL: "https://tickets.example/{order}", MethodTypes: []string{"card", "alipay"}, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx := t.Context()
	a := payment.Attempt{OrderID: "ord_1", AmountMinor: 4250, Currency: "EUR", Token: "pm_card_visa", CustomerRef: "cus_1"}
	var intent *sdk.PaymentIntent
	check := func(what string, pi *sdk.PaymentIntent, f *failure) {
		t.Helper()
		if f != nil {
			t.Errorf("%s: %v", what, f)
		} else if pi == nil || !strings.HasPrefix(pi.ID, "pi_") || pi.Status == "" || pi.Created == 0 {
			t.Errorf("%s: %+v", what, pi)
		}
	}
	intent, f := c.create(ctx, a.OrderID)
	if check("create", intent, f); f != nil {
		t.FailNow()
	}
	for _, authorize := range []bool{false, true} {
		a.AuthorizeOnly = authorize
		pi, f := c.begin(ctx, intent.ID, a, 4250)
		check("begin", pi, f)
	}
	for _, token := range []string{"pm_card_visa", "ctoken_1"} {
		a.Token = token
		pi, f := c.confirm(ctx, intent, a)
		check("confirm with "+token, pi, f)
	}
	c.c.ReturnURL = ""
	pi, f := c.confirm(ctx, intent, a)
	check("confirm without an address to return to", pi, f)
	pi, f = c.retrieve(ctx, intent.ID)
	check("retrieve", pi, f)
	if pi != nil && pi.LatestCharge != nil && pi.LatestCharge.Amount == 0 && pi.LatestCharge.Created == 0 {
		t.Error("the latest charge is not expanded")
	}
	pi, f = c.cancelIntent(ctx, intent.ID)
	check("cancel", pi, f)
	pi, f = call(ctx, func() (*sdk.PaymentIntent, error) {
		return c.api.V1PaymentIntents.Capture(ctx, intent.ID, &sdk.PaymentIntentCaptureParams{
			Params: c.params(""), AmountToCapture: sdk.Int64(100), Expand: expanded(),
		})
	})
	check("capture", pi, f)
	restOfShapes(t, c, intent, a)
}

// restOfShapes are the calls that are not about one payment intent.
func restOfShapes(t *testing.T, c *Client, intent *sdk.PaymentIntent, a payment.Attempt) {
	ctx := t.Context()
	if _, f := c.search(ctx, a.OrderID); f != nil {
		t.Errorf("search: %v", f)
	}
	refund, f := c.refund(ctx, payment.Payment{ID: intent.ID, OrderID: a.OrderID}, "rfd_1", 100)
	if f != nil || !strings.HasPrefix(refund.ID, "re_") || refund.Status == "" {
		t.Fatalf("refund: %+v, %v", refund, f)
	}
	if _, f := c.retrieveRefund(ctx, refund.ID); f != nil {
		t.Errorf("retrieve refund: %v", f)
	}
	if all, f := c.refundsOf(ctx, intent.ID); f != nil || len(all) == 0 {
		t.Errorf("refunds: %v, %v", all, f)
	}
	if _, _, f := c.list(ctx, before(time.Now().Unix(), 1)); f != nil {
		t.Errorf("list: %v", f)
	}
	if _, err := c.List(ctx, intent.ID); err != nil {
		t.Errorf("list from a cursor: %v", err)
	}
	if err := c.Check(ctx); err != nil {
		t.Errorf("check: %v", err)
	}
	// That it does refuse what is not in the document:
	_, f = call(ctx, func() (*sdk.PaymentIntent, error) {
		p := &sdk.PaymentIntentCreateParams{Params: c.params(""), Amount: sdk.Int64(100), Currency: sdk.String("usd")}
		p.AddExtra("amuont", "1")
		return c.api.V1PaymentIntents.Create(ctx, p)
	})
	if f == nil || !f.refusal() {
		t.Errorf("stripe-mock takes anything: %v", f)
	}
}

// startMock starts stripe-mock on a free port and gives its address.
func startMock(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "stripe-mock"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("stripe-mock"); err != nil {
			t.Skip("stripe-mock is not there, so the calls' shapes are not checked: make stripe-mock puts it into bin/")
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-http-addr", address)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(output)
		for said := ""; lines.Scan(); {
			if said += lines.Text() + "\n"; strings.Contains(lines.Text(), "Listening for HTTP") {
				ready <- ""
			}
			if len(said) > 1<<16 {
				said = ""
			}
		}
		select {
		case ready <- fmt.Sprintf("it ended: %v", lines.Err()):
		default:
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
	})
	select {
	case wrong := <-ready:
		if wrong != "" {
			t.Fatalf("stripe-mock did not start: %s", wrong)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("stripe-mock did not start in 30 s")
	}
	return "http://" + address
}
