package stripe

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/webhook"

	"onsale/internal/payment"
)

// SignatureHeader carries "t=<unix seconds>,v1=<hex>", v1 as often as there are secrets.
const SignatureHeader = "Stripe-Signature"

const signatureBytesMax = 4096

// An envelope is the part of an event that is read. Events have been the same on the outside in every version of the API.
type envelope struct {
	ID       string `json:"id"`
	Object   string `json:"object"`
	Type     string `json:"type"`
	Account  string `json:"account"` // of a connected account, else empty
	Livemode *bool  `json:"livemode"`
	Created  int64  `json:"created"`
	Data     struct {
		Object json.RawMessage `json:"object"`
	} `json:"data"`
}

// ParseWebhook implements payment.Notifier. Any version of the API is read as far as the few fields needed are there.
func (c *Client) ParseWebhook(header payment.Header, body []byte) (payment.Notice, error) {
	if len(body) > payment.WebhookBytesMax {
		return payment.Notice{}, fmt.Errorf("%w: more than %d bytes", payment.ErrMalformed, payment.WebhookBytesMax)
	}
	if err := c.verify(header.Get(SignatureHeader), body); err != nil {
		return payment.Notice{}, err
	}
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return payment.Notice{}, fmt.Errorf("%w: the event is not the JSON of one", payment.ErrMalformed)
	}
	switch {
	case e.Object != "event" || e.Livemode == nil || e.Type == "" || payment.ValidateID("event id", e.ID) != nil:
		return payment.Notice{}, fmt.Errorf("%w: it is no event with a type, an id and a mode (a thin event? make the endpoint send snapshots)", payment.ErrMalformed)
	case e.Account != c.c.Account || *e.Livemode != (c.mode == payment.Live):
		return payment.Notice{}, payment.ErrWrongAccount
	}
	e.Type = kindWord(e.Type)
	n := payment.Notice{EventID: e.ID, Kind: e.Type, At: time.Unix(e.Created, 0).UTC()}
	if why, uninteresting := ignored(e.Type); uninteresting {
		return payment.Notice{}, &payment.Ignored{Kind: e.Type, Why: why}
	}
	if err := c.read(&n, e); err != nil {
		return payment.Notice{}, err
	}
	return n, nil
}

// verify checks the signature with the library, and its time by our clock, either way.
func (c *Client) verify(header string, body []byte) error {
	if len(header) > signatureBytesMax {
		return payment.ErrSignature
	}
	good := false
	for _, secret := range c.c.WebhookSecrets {
		good = good || webhook.ValidatePayloadIgnoringTolerance(body, header, secret) == nil
	}
	if !good {
		return payment.ErrSignature
	}
	var signed int64
	for pair := range strings.SplitSeq(header, ",") { // the last one counts, as in the library
		if text, ok := strings.CutPrefix(pair, "t="); ok {
			var err error
			if signed, err = strconv.ParseInt(text, 10, 64); err != nil {
				return payment.ErrSignature
			}
		}
	}
	if age := c.c.Now().Sub(time.Unix(signed, 0)); age > payment.WebhookTolerance || age < -payment.WebhookTolerance {
		return payment.ErrStale
	}
	return nil
}

// ignored says why a kind of event is of no concern.
func ignored(kind string) (why string, yes bool) {
	switch kind {
	case "payment_intent.created":
		return "nothing has been asked for yet", true
	case "charge.succeeded", "charge.failed", "charge.captured", "charge.pending", "charge.expired", "charge.updated":
		return "the payment intent's own event says what counts", true
	case "charge.refunded":
		return "", false
	}
	for prefix, why := range map[string]string{
		"checkout.": "checkout pages are another program's", "invoice.": "invoices are another program's",
		"payment_link.": "payment links are another program's", "payment_method.": "means of payment are not kept",
	} {
		if strings.HasPrefix(kind, prefix) {
			return why, true
		}
	}
	for _, prefix := range []string{"payment_intent.", "charge.refund.", "refund.", "charge.dispute."} {
		if strings.HasPrefix(kind, prefix) {
			return "", false
		}
	}
	return "it says nothing about a payment", true
}

func kindWord(kind string) string {
	if safeWord(strings.ReplaceAll(kind, ".", "_")) == "?" {
		return "?"
	}
	return kind
}

// read fills in what the event's object says.
func (c *Client) read(n *payment.Notice, e envelope) error {
	var err error
	var metadata map[string]string
	switch {
	case strings.HasPrefix(e.Type, "payment_intent."):
		metadata, err = readIntent(n, e.Data.Object)
	case e.Type == "charge.refunded":
		metadata, err = readCharge(n, e.Data.Object)
	case strings.HasPrefix(e.Type, "charge.dispute."):
		return readDispute(n, e.Data.Object)
	default:
		metadata, err = readRefund(n, e.Data.Object)
	}
	if err != nil {
		return err
	}
	n.OrderID = metadata[metaOrder]
	n.Payment.OrderID = n.OrderID
	switch {
	case n.OrderID == "" && c.c.SharedAccount:
		return &payment.Ignored{Kind: n.Kind, Why: "it names no order of ours, and the account is shared"}
	case n.OrderID != "" && metadata[metaHouse] != c.c.House:
		return &payment.Ignored{Kind: n.Kind, Why: "it is another house's"}
	case n.OrderID != "" && !c.ours(metadata):
		return &payment.Ignored{Kind: n.Kind, Why: "its order is none that could be ours"}
	}
	return nil
}

// A ref is a reference to another object: its id, or the object itself where the sender has expanded it.
type ref struct {
	ID     string `json:"id"`
	Status string `json:"status"` // of an expanded charge
}

// UnmarshalJSON reads both.
func (r *ref) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &r.ID)
	}
	type plain ref
	return json.Unmarshal(b, (*plain)(r))
}

type intentObject struct {
	ID               string            `json:"id"`
	Object           string            `json:"object"`
	Amount           int64             `json:"amount"`
	AmountCapturable int64             `json:"amount_capturable"`
	AmountReceived   int64             `json:"amount_received"`
	CaptureMethod    string            `json:"capture_method"`
	Created          int64             `json:"created"`
	Currency         string            `json:"currency"`
	Status           string            `json:"status"`
	Metadata         map[string]string `json:"metadata"`
	LatestCharge     *ref              `json:"latest_charge"`
	Charges          struct {          // before 2022-11-15, newest first
		Data []ref `json:"data"`
	} `json:"charges"`
	LastPaymentError *struct {
		Type        string `json:"type"`
		Code        string `json:"code"`
		DeclineCode string `json:"decline_code"`
	} `json:"last_payment_error"`
}

// oldStatus are words of the API before 2019-02-11.
var oldStatus = map[string]string{"requires_source": "requires_payment_method", "requires_source_action": "requires_action"}

func readIntent(n *payment.Notice, object json.RawMessage) (metadata map[string]string, err error) {
	var o intentObject
	if err := decode(object, &o, "payment_intent", &o.Object, &o.ID); err != nil {
		return nil, err
	}
	if err := amounts(o.Currency, o.Amount, o.AmountCapturable, o.AmountReceived); err != nil {
		return nil, err
	}
	if newer, ok := oldStatus[o.Status]; ok {
		o.Status = newer
	}
	pi := &sdk.PaymentIntent{
		ID: o.ID, Amount: o.Amount, AmountCapturable: o.AmountCapturable, AmountReceived: o.AmountReceived, Created: o.Created,
		CaptureMethod: sdk.PaymentIntentCaptureMethod(o.CaptureMethod), Currency: sdk.Currency(o.Currency),
		Status: sdk.PaymentIntentStatus(o.Status), Metadata: o.Metadata,
	}
	if e := o.LastPaymentError; e != nil {
		pi.LastPaymentError = &sdk.Error{Type: sdk.ErrorType(e.Type), Code: sdk.ErrorCode(e.Code), DeclineCode: sdk.DeclineCode(e.DeclineCode)}
	}
	charge := o.LatestCharge
	if charge == nil && len(o.Charges.Data) > 0 {
		charge = &o.Charges.Data[0]
	}
	if charge != nil && charge.ID != "" {
		status := charge.Status
		if status == "" && pi.LastPaymentError == nil && o.CaptureMethod == string(sdk.PaymentIntentCaptureMethodManual) {
			status = string(sdk.ChargeStatusSucceeded) // only its id is told, and it did not fail
		}
		pi.LatestCharge = &sdk.Charge{ID: charge.ID, Status: sdk.ChargeStatus(status)}
	}
	if pi.Metadata[metaOrder] != "" && !begun(pi) {
		return nil, &payment.Ignored{Kind: n.Kind, Why: "an empty payment intent that keeps an order's place"}
	}
	n.Payment = picture(pi, nil)
	n.Payment.Action = nil // the customer gets it by asking
	return o.Metadata, nil
}

const noIntent = "a charge without a payment intent is none of ours"

func readCharge(n *payment.Notice, object json.RawMessage) (metadata map[string]string, err error) {
	var o struct {
		ID             string            `json:"id"`
		Object         string            `json:"object"`
		Amount         int64             `json:"amount"`
		AmountCaptured *int64            `json:"amount_captured"` // since 2020-08-27
		AmountRefunded int64             `json:"amount_refunded"`
		Captured       bool              `json:"captured"`
		Created        int64             `json:"created"`
		Currency       string            `json:"currency"`
		PaymentIntent  *ref              `json:"payment_intent"`
		Metadata       map[string]string `json:"metadata"`
	}
	if err := decode(object, &o, "charge", &o.Object, &o.ID); err != nil {
		return nil, err
	}
	captured := o.Amount
	if o.AmountCaptured != nil {
		captured = *o.AmountCaptured
	}
	if err := amounts(o.Currency, o.Amount, captured, o.AmountRefunded); err != nil {
		return nil, err
	}
	switch {
	case o.PaymentIntent == nil || o.PaymentIntent.ID == "":
		return nil, &payment.Ignored{Kind: n.Kind, Why: noIntent}
	case payment.ValidateID("payment id", o.PaymentIntent.ID) != nil:
		return nil, fmt.Errorf("%w: its payment intent has no id", payment.ErrMalformed)
	case !o.Captured:
		return nil, &payment.Ignored{Kind: n.Kind, Why: "an authorization that was let go; the payment intent's own event says so"}
	}
	code := strings.ToUpper(o.Currency)
	n.Payment = payment.Payment{
		ID: o.PaymentIntent.ID, State: payment.Captured, Currency: code, AmountMinor: fromStripe(o.Amount, code),
		CapturedMinor: fromStripe(captured, code), RefundedMinor: fromStripe(min(o.AmountRefunded, captured), code),
		CreatedAt: time.Unix(o.Created, 0).UTC(),
	}
	return o.Metadata, nil
}

func readRefund(n *payment.Notice, object json.RawMessage) (metadata map[string]string, err error) {
	var o struct {
		ID            string            `json:"id"`
		Object        string            `json:"object"`
		Amount        int64             `json:"amount"`
		Created       int64             `json:"created"`
		Currency      string            `json:"currency"`
		Status        string            `json:"status"`
		PaymentIntent *ref              `json:"payment_intent"`
		Metadata      map[string]string `json:"metadata"`
	}
	if err := decode(object, &o, "refund", &o.Object, &o.ID); err != nil {
		return nil, err
	}
	if err := amounts(o.Currency); err != nil {
		return nil, err
	}
	switch {
	case o.PaymentIntent == nil || o.PaymentIntent.ID == "":
		return nil, &payment.Ignored{Kind: n.Kind, Why: noIntent}
	case payment.ValidateID("payment id", o.PaymentIntent.ID) != nil:
		return nil, fmt.Errorf("%w: its payment intent has no id", payment.ErrMalformed)
	}
	n.Payment = payment.Payment{ID: o.PaymentIntent.ID, Currency: strings.ToUpper(o.Currency)}
	r := refundOf(&sdk.Refund{
		ID: o.ID, Amount: o.Amount, Created: o.Created, Currency: sdk.Currency(o.Currency), Status: sdk.RefundStatus(o.Status), Metadata: o.Metadata,
	}, o.PaymentIntent.ID)
	if payment.ValidateID("refund id", r.ID) != nil {
		r.ID = o.ID
	}
	n.Refund = &r
	return o.Metadata, nil
}

// readDispute reads a dispute. Old ones have no id and name the charge only: still somebody must be told.
func readDispute(n *payment.Notice, object json.RawMessage) error {
	var o struct {
		ID            string `json:"id"`
		Object        string `json:"object"`
		Amount        int64  `json:"amount"`
		Currency      string `json:"currency"`
		Status        string `json:"status"`
		Reason        string `json:"reason"`
		Charge        *ref   `json:"charge"`
		PaymentIntent *ref   `json:"payment_intent"`
	}
	named := "dispute" // an id may be missing
	if err := decode(object, &o, "dispute", &o.Object, &named); err != nil {
		return err
	}
	if err := amounts(o.Currency); err != nil {
		return err
	}
	code := strings.ToUpper(o.Currency)
	d := payment.Dispute{State: safeWord(o.Status), Reason: safeWord(o.Reason), AmountMinor: fromStripe(o.Amount, code), Currency: code}
	for _, id := range []struct {
		from string
		to   *string
	}{{o.ID, &d.ID}, {idOf(o.Charge), &d.ChargeID}, {idOf(o.PaymentIntent), &n.Payment.ID}} {
		if payment.ValidateID("id", id.from) == nil {
			*id.to = id.from
		}
	}
	n.Dispute = &d
	return nil
}

func idOf(r *ref) string {
	if r == nil {
		return ""
	}
	return r.ID
}

// decode reads an event's object and checks what it is.
func decode(object json.RawMessage, into any, want string, kind, id *string) error {
	if err := json.Unmarshal(object, into); err != nil {
		return fmt.Errorf("%w: its %s cannot be read", payment.ErrMalformed, want)
	}
	if *kind != want || payment.ValidateID("id", *id) != nil {
		return fmt.Errorf("%w: it holds no %s with an id", payment.ErrMalformed, want)
	}
	return nil
}

// amounts refuses what no payment of any currency can be.
func amounts(currency string, all ...int64) error {
	if len(currency) != 3 || strings.Trim(strings.ToLower(currency), "abcdefghijklmnopqrstuvwxyz") != "" {
		return fmt.Errorf("%w: its currency is none", payment.ErrMalformed)
	}
	for _, amount := range all {
		if amount < 0 || amount > math.MaxInt64/1000 {
			return fmt.Errorf("%w: an amount in it is none", payment.ErrMalformed)
		}
	}
	return nil
}
