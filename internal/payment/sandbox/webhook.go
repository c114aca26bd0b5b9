package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"onsale/internal/payment"
)

// SignatureHeader carries "t=<unix seconds>,v1=<hex>", where v1 is HMAC-SHA-256 of "<unix seconds>.<body>".
const SignatureHeader = "Onsale-Sandbox-Signature"

// webhookFormat is the version of webhook bodies.
const webhookFormat = 1

// webhook is the body of a webhook. Its payment is the picture of when it was made, without refunds.
type webhook struct {
	Format  int             `json:"format"`
	EventID string          `json:"event_id"`
	Kind    string          `json:"kind"` // "payment." and the state, or "payment.refunded"
	Account string          `json:"account"`
	Mode    payment.Mode    `json:"mode"`
	At      time.Time       `json:"at"`
	Payment payment.Payment `json:"payment"`
}

// sign is the value of SignatureHeader for a body sent now.
func sign(secret []byte, now time.Time, body []byte) string {
	seconds := strconv.FormatInt(now.Unix(), 10)
	return "t=" + seconds + ",v1=" + hex.EncodeToString(signature(secret, seconds, body))
}

func signature(secret []byte, seconds string, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(seconds))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return mac.Sum(nil)
}

// verify checks that the header value was made with one of the secrets for this body, not too long ago.
func verify(secrets [][]byte, now time.Time, header string, body []byte) error {
	timePart, macPart, ok := strings.Cut(header, ",")
	seconds, okTime := strings.CutPrefix(timePart, "t=")
	macHex, okMac := strings.CutPrefix(macPart, "v1=")
	if !ok || !okTime || !okMac || len(header) > 128 {
		return payment.ErrSignature
	}
	got, err := hex.DecodeString(macHex)
	if err != nil {
		return payment.ErrSignature
	}
	good := false
	for _, secret := range secrets {
		if hmac.Equal(got, signature(secret, seconds, body)) {
			good = true
		}
	}
	if !good {
		return payment.ErrSignature
	}
	// The time is read only once it is known to be the sender's.
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return payment.ErrSignature
	}
	if age := now.Sub(time.Unix(unix, 0)); age > payment.WebhookTolerance || age < -payment.WebhookTolerance {
		return payment.ErrStale
	}
	return nil
}

// parseWebhook reads a verified body of this account.
func parseWebhook(body []byte, account string) (payment.Notice, error) {
	var w webhook
	if err := json.Unmarshal(body, &w); err != nil {
		return payment.Notice{}, fmt.Errorf("%w: %w", payment.ErrMalformed, err)
	}
	if w.Format != webhookFormat {
		return payment.Notice{}, fmt.Errorf("%w: format %d, not %d", payment.ErrMalformed, w.Format, webhookFormat)
	}
	if w.Account != account || w.Mode != payment.Test {
		return payment.Notice{}, payment.ErrWrongAccount
	}
	if payment.ValidateID("event id", w.EventID) != nil || payment.ValidateID("payment id", w.Payment.ID) != nil {
		return payment.Notice{}, fmt.Errorf("%w: it has no event id or no payment id", payment.ErrMalformed)
	}
	if w.Payment.OrderID != "" {
		if err := payment.ValidateID("order id", w.Payment.OrderID); err != nil {
			return payment.Notice{}, fmt.Errorf("%w: %w", payment.ErrMalformed, err)
		}
	}
	return payment.Notice{EventID: w.EventID, Kind: w.Kind, OrderID: w.Payment.OrderID, Payment: w.Payment, At: w.At}, nil
}
