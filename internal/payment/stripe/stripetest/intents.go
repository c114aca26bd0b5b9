package stripetest

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Means of payment. Those without a comment are Stripe's own test cards; "ctoken_" instead of "pm_" is a confirmation
// token of the same.
const (
	Visa              = "pm_card_visa"
	Declined          = "pm_card_chargeDeclined"
	InsufficientFunds = "pm_card_chargeDeclinedInsufficientFunds"
	ProcessingError   = "pm_card_chargeDeclinedProcessingError" // here: declined the first time, then it pays
	NeedsAction       = "pm_card_authenticationRequired"
	RefundPending     = "pm_card_pendingRefund" // its refunds wait for FinishRefund
	RefundFails       = "pm_card_refundFail"    // its refunds are done and fail later, by FinishRefund
	Slow              = "pm_standin_slow"       // processing until FinishProcessing
)

var means = []string{Visa, Declined, InsufficientFunds, ProcessingError, NeedsAction, RefundPending, RefundFails, Slow}

// intent is a payment intent.
type intent struct {
	id            string
	created       time.Time
	amount        int64
	capturable    int64
	received      int64
	currency      string
	captureMethod string
	status        string
	methods       []string
	means         string
	metadata      map[string]string
	secret        string
	returnURL     string
	lastError     object
	reason        string // of its cancellation
	charges       []*charge
}

// charge is one attempt of an intent.
type charge struct {
	id       string
	amount   int64
	captured int64 // of it
	status   string
	failure  string
	released int64 // reserved and let go
	metadata map[string]string
	created  time.Time
}

func (p *intent) latest() *charge {
	if len(p.charges) == 0 {
		return nil
	}
	return p.charges[len(p.charges)-1]
}

// intent finds one, nil where there is none.
func (s *Server) intent(id string) *intent { return s.byID[id] }

func (s *Server) add(p *intent) {
	s.intents = append(s.intents, p)
	s.byID[p.id] = p
}

var currencyForm = regexp.MustCompile(`^[a-z]{3}$`)

// set takes the parameters that create and update share.
func (p *intent) set(q request) *answer {
	bad := func(code, param string) *answer {
		a := apiError(http.StatusBadRequest, "invalid_request_error", code, param)
		return &a
	}
	if text := q.form.Get("amount"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil || n <= 0:
			return bad("parameter_invalid_integer", "amount")
		case n > 99_999_999:
			return bad("amount_too_large", "amount")
		case n < 50:
			return bad("amount_too_small", "amount")
		}
		p.amount = n
	}
	if currency := q.form.Get("currency"); currency != "" {
		if !currencyForm.MatchString(currency) {
			return bad("", "currency")
		}
		p.currency = currency
	}
	if strings.Contains(" bhd jod kwd omr tnd ", " "+p.currency+" ") && p.amount%10 != 0 {
		return bad("", "amount")
	}
	if method := q.form.Get("capture_method"); method != "" {
		if method != "automatic" && method != "manual" {
			return bad("", "capture_method")
		}
		p.captureMethod = method
	}
	var methods []string
	for i := 0; q.form.Has(fmt.Sprintf("payment_method_types[%d]", i)); i++ {
		methods = append(methods, q.form.Get(fmt.Sprintf("payment_method_types[%d]", i)))
	}
	if methods != nil {
		p.methods = methods
	}
	q.metadata(p.metadata)
	return nil
}

func (s *Server) create(q request) answer {
	if a := q.allow("amount", "currency", "payment_method_types", "metadata", "capture_method", "expand"); a != nil {
		return *a
	}
	if !q.form.Has("amount") || !q.form.Has("currency") {
		return apiError(http.StatusBadRequest, "invalid_request_error", "parameter_missing", "amount")
	}
	n := s.next()
	p := &intent{
		id: fmt.Sprintf("pi_%06d", n), secret: fmt.Sprintf("pi_%06d_secret_%d", n, n*7919), created: s.c.Now(),
		captureMethod: "automatic", status: "requires_payment_method", metadata: map[string]string{},
	}
	if a := p.set(q); a != nil {
		return *a
	}
	s.add(p)
	s.secrets = append(s.secrets, p.secret)
	s.tell("payment_intent.created", s.shape(p, false))
	return ok(s.shape(p, q.expands("latest_charge.refunds")))
}

func (s *Server) retrieve(q request) answer {
	p := s.intent(q.id)
	if p == nil {
		return missing("intent")
	}
	return ok(s.shape(p, q.expands("latest_charge.refunds")))
}

func (s *Server) update(q request) answer {
	if a := q.allow("amount", "currency", "payment_method_types", "metadata", "capture_method", "expand"); a != nil {
		return *a
	}
	p := s.intent(q.id)
	if p == nil {
		return missing("intent")
	}
	onlyMetadata := true
	for name := range q.form {
		onlyMetadata = onlyMetadata && strings.HasPrefix(name, "metadata[")
	}
	if !slices.Contains([]string{"requires_payment_method", "requires_confirmation", "requires_action"}, p.status) && !onlyMetadata {
		return s.unexpected(p)
	}
	trial := *p
	trial.metadata = maps.Clone(p.metadata)
	if a := trial.set(q); a != nil {
		return *a
	}
	*p = trial
	return ok(s.shape(p, q.expands("latest_charge.refunds")))
}

// unexpected is the error for an intent in another state than the call wants.
func (s *Server) unexpected(p *intent) answer {
	a := keptError(http.StatusBadRequest, "invalid_request_error", "payment_intent_unexpected_state", "")
	a.body.(object)["error"].(object)["payment_intent"] = s.shape(p, false)
	return a
}

func (s *Server) confirm(q request) answer {
	if a := q.allow("payment_method", "confirmation_token", "return_url", "use_stripe_sdk", "expand"); a != nil {
		return *a
	}
	p := s.intent(q.id)
	if p == nil {
		return missing("intent")
	}
	param, token := "payment_method", q.form.Get("payment_method")
	if !q.form.Has(param) {
		param, token = "confirmation_token", strings.Replace(q.form.Get("confirmation_token"), "ctoken_", "pm_", 1)
	}
	if !slices.Contains(means, token) {
		return apiError(http.StatusBadRequest, "invalid_request_error", "resource_missing", param)
	}
	if !slices.Contains([]string{"requires_payment_method", "requires_confirmation", "requires_action"}, p.status) {
		return s.unexpected(p)
	}
	p.means, p.returnURL, p.lastError = token, q.form.Get("return_url"), nil
	switch token {
	case NeedsAction:
		p.status = "requires_action"
		s.tell("payment_intent.requires_action", s.shape(p, false))
	case Slow:
		p.status = "processing"
		s.tell("payment_intent.processing", s.shape(p, false))
	case Declined:
		return s.decline(p, "card_declined", "generic_decline")
	case InsufficientFunds:
		return s.decline(p, "card_declined", "insufficient_funds")
	case ProcessingError:
		if len(p.charges) == 0 {
			return s.decline(p, "processing_error", "")
		}
		s.pay(p)
	default:
		s.pay(p)
	}
	return ok(s.shape(p, q.expands("latest_charge.refunds")))
}

// attempt adds a charge.
func (s *Server) attempt(p *intent, status string) *charge {
	ch := &charge{id: fmt.Sprintf("ch_%06d", s.next()), amount: p.amount, status: status, metadata: maps.Clone(p.metadata), created: s.c.Now()}
	p.charges = append(p.charges, ch)
	return ch
}

// pay takes the money, or reserves it.
func (s *Server) pay(p *intent) {
	ch := s.attempt(p, "succeeded")
	p.lastError = nil
	if p.captureMethod == "manual" {
		p.status, p.capturable = "requires_capture", p.amount
		s.tell("charge.succeeded", s.shapeCharge(p, ch, false))
		s.tell("payment_intent.amount_capturable_updated", s.shape(p, false))
		return
	}
	p.status, p.received, ch.captured = "succeeded", p.amount, p.amount
	s.tell("charge.succeeded", s.shapeCharge(p, ch, false))
	s.tell("payment_intent.succeeded", s.shape(p, false))
}

// decline is the bank's no: an intent goes back to waiting for a means of payment.
func (s *Server) decline(p *intent, code, declineCode string) answer {
	ch := s.attempt(p, "failed")
	ch.failure = code
	a := s.fail(p, code, declineCode)
	s.tell("charge.failed", s.shapeCharge(p, ch, false))
	return a
}

func (s *Server) fail(p *intent, code, declineCode string) answer {
	a := keptError(http.StatusPaymentRequired, "card_error", code, "")
	e := a.body.(object)["error"].(object)
	if declineCode != "" {
		e["decline_code"] = declineCode
	}
	p.status, p.lastError = "requires_payment_method", maps.Clone(e)
	e["payment_intent"] = s.shape(p, false)
	s.tell("payment_intent.payment_failed", s.shape(p, false))
	return a
}

func (s *Server) cancel(q request) answer {
	if a := q.allow("cancellation_reason", "expand"); a != nil {
		return *a
	}
	p := s.intent(q.id)
	if p == nil {
		return missing("intent")
	}
	if !slices.Contains([]string{"requires_payment_method", "requires_confirmation", "requires_action", "requires_capture"}, p.status) {
		return s.unexpected(p)
	}
	p.reason = q.form.Get("cancellation_reason")
	s.letGo(p)
	return ok(s.shape(p, q.expands("latest_charge.refunds")))
}

// letGo cancels an intent; what was reserved is released.
func (s *Server) letGo(p *intent) {
	if p.status == "requires_capture" {
		p.latest().released = p.amount
	}
	p.status, p.capturable = "canceled", 0
	s.tell("payment_intent.canceled", s.shape(p, false))
}

func (s *Server) capture(q request) answer {
	if a := q.allow("amount_to_capture", "expand"); a != nil {
		return *a
	}
	p := s.intent(q.id)
	if p == nil {
		return missing("intent")
	}
	if p.status != "requires_capture" {
		return s.unexpected(p)
	}
	amount := p.capturable
	if text := q.form.Get("amount_to_capture"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return apiError(http.StatusBadRequest, "invalid_request_error", "parameter_invalid_integer", "amount_to_capture")
		}
		amount = n
	}
	if amount > p.capturable {
		return keptError(http.StatusBadRequest, "invalid_request_error", "amount_too_large", "amount_to_capture")
	}
	ch := p.latest()
	ch.captured, ch.released = amount, p.amount-amount
	p.status, p.received, p.capturable = "succeeded", amount, 0
	s.tell("charge.captured", s.shapeCharge(p, ch, false))
	s.tell("payment_intent.succeeded", s.shape(p, false))
	return ok(s.shape(p, q.expands("latest_charge.refunds")))
}

var searchForm = regexp.MustCompile(`^metadata\['([a-z_]+)'\]:'([A-Za-z0-9_-]+)'$`)

func (s *Server) search(q request) answer {
	if a := q.allow("query", "limit", "page", "expand"); a != nil {
		return *a
	}
	m := searchForm.FindStringSubmatch(q.form.Get("query"))
	if m == nil {
		return apiError(http.StatusBadRequest, "invalid_request_error", "", "query")
	}
	found := []any{}
	for _, p := range slices.Backward(s.intents) {
		if p.metadata[m[1]] == m[2] && !p.created.Add(s.c.SearchLag).After(s.c.Now()) {
			found = append(found, s.shape(p, false))
		}
	}
	return answer{status: http.StatusOK, body: object{"object": "search_result", "url": "/v1/payment_intents/search", "has_more": false, "data": found}}
}

func (s *Server) list(q request) answer {
	if a := q.allow("limit", "starting_after", "ending_before", "created", "expand"); a != nil {
		return *a
	}
	var all []*intent // newest first
	for _, p := range slices.Backward(s.intents) {
		if text := q.form.Get("created[lt]"); text != "" {
			if lt, err := strconv.ParseInt(text, 10, 64); err != nil || p.created.Unix() >= lt {
				continue
			}
		}
		all = append(all, p)
	}
	page, more, bad := paged(q, all, func(p *intent) string { return p.id })
	if bad != nil {
		return *bad
	}
	data := []any{}
	for _, p := range page {
		data = append(data, s.shape(p, q.expands("data.latest_charge.refunds")))
	}
	return answer{status: http.StatusOK, body: object{"object": "list", "url": "/v1/payment_intents", "has_more": more, "data": data}}
}

// paged cuts a page out of a list that is newest first: after one item, or right before one.
func paged[T any](q request, all []T, id func(T) string) (page []T, more bool, bad *answer) {
	limit := 10
	if text := q.form.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			a := apiError(http.StatusBadRequest, "invalid_request_error", "parameter_invalid_integer", "limit")
			return nil, false, &a
		}
		limit = n
	}
	after, before := q.form.Get("starting_after"), q.form.Get("ending_before")
	if cursor := after + before; cursor != "" {
		i := slices.IndexFunc(all, func(item T) bool { return id(item) == cursor })
		if i < 0 {
			a := missing("cursor")
			return nil, false, &a
		}
		if before != "" {
			start := max(0, i-limit)
			return all[start:i], start > 0, nil
		}
		all = all[i+1:]
	}
	return all[:min(limit, len(all))], len(all) > limit, nil
}
