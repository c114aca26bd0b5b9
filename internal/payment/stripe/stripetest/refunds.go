package stripetest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// refund is money given back, or about to be.
type refund struct {
	id       string
	intent   *intent
	amount   int64
	status   string
	metadata map[string]string
	created  time.Time
}

// returned is what of an intent went back, or is about to.
func (s *Server) returned(p *intent) (sum int64) {
	for _, r := range s.refunds {
		if r.intent == p && r.status != "failed" {
			sum += r.amount
		}
	}
	return sum
}

func (s *Server) refund(q request) answer {
	if a := q.allow("payment_intent", "amount", "metadata", "reason", "expand"); a != nil {
		return *a
	}
	p := s.intent(q.form.Get("payment_intent"))
	if p == nil {
		return missing("payment_intent")
	}
	left := p.received - s.returned(p)
	amount := left
	if text := q.form.Get("amount"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return apiError(http.StatusBadRequest, "invalid_request_error", "parameter_invalid_integer", "amount")
		}
		amount = n
	}
	switch {
	case p.status != "succeeded":
		return keptError(http.StatusBadRequest, "invalid_request_error", "", "payment_intent")
	case left == 0:
		return keptError(http.StatusBadRequest, "invalid_request_error", "charge_already_refunded", "")
	case amount > left:
		return keptError(http.StatusBadRequest, "invalid_request_error", "", "amount")
	}
	r := s.addRefund(p, amount)
	q.metadata(r.metadata)
	if p.means == RefundPending {
		r.status = "pending"
	}
	s.tell("refund.created", s.shapeRefund(r))
	s.tell("charge.refunded", s.shapeCharge(p, p.latest(), true))
	return ok(s.shapeRefund(r))
}

func (s *Server) addRefund(p *intent, amount int64) *refund {
	r := &refund{id: fmt.Sprintf("re_%06d", s.next()), intent: p, amount: amount, status: "succeeded", metadata: map[string]string{}, created: s.c.Now()}
	s.refunds = append(s.refunds, r)
	return r
}

func (s *Server) listRefunds(q request) answer {
	if a := q.allow("payment_intent", "limit", "starting_after", "ending_before", "expand"); a != nil {
		return *a
	}
	page, more, bad := paged(q, s.refundsOf(q.form.Get("payment_intent")), func(r *refund) string { return r.id })
	if bad != nil {
		return *bad
	}
	data := []any{}
	for _, r := range page {
		data = append(data, s.shapeRefund(r))
	}
	return answer{status: http.StatusOK, body: object{"object": "list", "url": "/v1/refunds", "has_more": more, "data": data}}
}

// refundsOf lists an intent's refunds, newest first.
func (s *Server) refundsOf(id string) (all []*refund) {
	for _, r := range slices.Backward(s.refunds) {
		if r.intent.id == id {
			all = append(all, r)
		}
	}
	return all
}

func (s *Server) retrieveRefund(q request) answer {
	for _, r := range s.refunds {
		if r.id == q.id {
			return ok(s.shapeRefund(r))
		}
	}
	return missing("refund")
}

// What others do: the customer, the bank, somebody at the dashboard. They panic where there is nothing of the kind, since
// then the test is wrong.

// Authenticate is the customer's answer to 3-D Secure.
func (s *Server) Authenticate(intentID string, good bool) {
	s.must(intentID, "requires_action", func(p *intent) {
		if good {
			s.pay(p)
		} else {
			s.fail(p, "payment_intent_authentication_failure", "")
		}
	})
}

// FinishProcessing is the end of a slow payment.
func (s *Server) FinishProcessing(intentID string, good bool) {
	s.must(intentID, "processing", func(p *intent) {
		if good {
			s.pay(p)
		} else {
			s.decline(p, "payment_method_customer_decline", "")
		}
	})
}

// Expire is the end of an authorization that nobody captured.
func (s *Server) Expire(intentID string) {
	s.must(intentID, "requires_capture", func(p *intent) { p.reason = "automatic"; s.letGo(p) })
}

// CancelByHand is somebody's doing at the dashboard.
func (s *Server) CancelByHand(intentID string) {
	s.must(intentID, "", func(p *intent) { p.reason = "requested_by_customer"; s.letGo(p) })
}

// RefundByHand is somebody's doing at the dashboard; it gives the refund's id.
func (s *Server) RefundByHand(intentID string, amount int64) (id string) {
	s.must(intentID, "succeeded", func(p *intent) {
		r := s.addRefund(p, amount)
		id = r.id
		s.tell("refund.created", s.shapeRefund(r))
		s.tell("charge.refunded", s.shapeCharge(p, p.latest(), true))
	})
	return id
}

// FinishRefund ends every pending refund of an intent, or lets those that were done fail.
func (s *Server) FinishRefund(intentID string, good bool) {
	s.must(intentID, "succeeded", func(p *intent) {
		for _, r := range s.refundsOf(p.id) {
			switch {
			case !good && r.status != "failed":
				r.status = "failed"
				s.tell("refund.failed", s.shapeRefund(r))
			case good && r.status == "pending":
				r.status = "succeeded"
			default:
				continue
			}
			s.tell("refund.updated", s.shapeRefund(r))
			s.tell("charge.refund.updated", s.shapeRefund(r))
		}
	})
}

// PayElsewhere is a payment of another program on the account; it gives the intent's id.
func (s *Server) PayElsewhere(amount int64, metadata map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &intent{
		id: fmt.Sprintf("pi_%06d", s.next()), created: s.c.Now(), amount: amount, currency: "usd", captureMethod: "automatic",
		means: Visa, metadata: metadata,
	}
	s.add(p)
	s.pay(p)
	return p.id
}

// Dispute is the customer's claim at their bank.
func (s *Server) Dispute(intentID string) {
	s.must(intentID, "succeeded", func(p *intent) {
		s.tell("charge.dispute.created", object{
			"id": fmt.Sprintf("dp_%06d", s.next()), "object": "dispute", "amount": p.received, "currency": p.currency,
			"charge": p.latest().id, "payment_intent": p.id, "reason": "fraudulent", "status": "needs_response", "metadata": object{},
		})
	})
}

func (s *Server) must(intentID, status string, do func(p *intent)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.intent(intentID)
	if p == nil || status != "" && p.status != status {
		panic(fmt.Sprintf("stripetest: no payment intent %s that is %s", intentID, status))
	}
	do(p)
}
