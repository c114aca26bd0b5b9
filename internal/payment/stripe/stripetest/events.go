package stripetest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// An Event is what Stripe would send by webhook. It is the test that sends it, as often and as late as it likes.
type Event struct {
	ID   string
	Type string
	Body []byte
}

// tell makes an event of an object as it is now.
func (s *Server) tell(kind string, about object) {
	e := Event{ID: fmt.Sprintf("evt_%06d", s.next()), Type: kind}
	body := object{
		"id": e.ID, "object": "event", "api_version": s.c.APIVersion, "created": s.c.Now().Unix(), "livemode": false, "pending_webhooks": 1,
		"type": kind, "data": object{"object": about}, "request": object{"id": nil, "idempotency_key": nil},
	}
	if s.c.Account != "" {
		body["account"] = s.c.Account
	}
	var err error
	if e.Body, err = json.Marshal(body); err != nil {
		panic(err) // it is made of plain values
	}
	s.events = append(s.events, e)
}

// Events are all that happened so far, of the given types or of any, oldest first.
func (s *Server) Events(types ...string) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.events), func(e Event) bool { return len(types) > 0 && !slices.Contains(types, e.Type) })
}

// Header signs a body as sent now.
func (s *Server) Header(body []byte) http.Header {
	return http.Header{"Stripe-Signature": {Sign(s.c.WebhookSecret, s.c.Now(), body)}}
}

// Sign is the value of the Stripe-Signature header for a body sent at an instant.
func Sign(secret string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.", at.Unix())
	mac.Write(body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

// Send posts an event to an address, signed now. An answer other than 2xx is an error.
func (s *Server) Send(ctx context.Context, address string, e Event) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(e.Body))
	if err != nil {
		return err
	}
	q.Header = s.Header(e.Body)
	q.Header.Set("Content-Type", "application/json")
	r, err := s.http.Client().Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, 4096))
	if err == nil && r.StatusCode/100 != 2 {
		err = fmt.Errorf("the webhook was answered with %d: %s", r.StatusCode, text)
	}
	return err
}
