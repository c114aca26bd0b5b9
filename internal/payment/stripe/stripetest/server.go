// Package stripetest is a stand-in of Stripe for tests: the part of its API that the adapter uses, with books in memory.
//
// The one idea: it is stateful and as strict as the real one where money depends on it. Payment intents take money once and
// never after they were cancelled; idempotency keys keep their first answer for a day, also an error, and refuse other
// parameters; the search lags; parameters that are not known are refused. Whatever can go wrong on the way is a Fault, given
// beforehand; what Stripe would send by webhook is an Event, that the test sends once, twice, late, never or in another
// order. It is written from Stripe's documentation and shares no code with the adapter.
//
// Start reading at Server.ServeHTTP, then confirm (intents.go).
package stripetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config is what a Server needs; nothing is required.
type Config struct {
	Key           string           // the secret API key. Defaults to "sk_test_standin"
	WebhookSecret string           // Defaults to "whsec_standinstandin"
	Account       string           // the connected account that calls must name, and events do. Defaults to none
	APIVersion    string           // of events. Defaults to the library's at the time of writing
	Now           func() time.Time // Defaults to time.Now
	SearchLag     time.Duration    // until a new intent is found by search. Defaults to none
	KeyLife       time.Duration    // how long an idempotency key is kept. Defaults to 24 h
}

// A Server is the stand-in, listening on loopback. New starts one; Close it.
type Server struct {
	c    Config
	mux  *http.ServeMux
	http *httptest.Server

	mu      sync.Mutex // guards what follows
	seq     int
	intents []*intent // in order of creation
	byID    map[string]*intent
	refunds []*refund
	keys    map[string]*stored
	faults  []*Fault
	calls   map[string]int
	events  []Event
	secrets []string // client secrets given out, for tests that look for leaks
}

// stored is what is kept under an idempotency key.
type stored struct {
	fingerprint string
	at          time.Time
	done        bool // else a request is in progress
	answer      answer
}

// answer is what a call gives. One that is not kept leaves its idempotency key unused.
type answer struct {
	status int
	body   any
	kept   bool
}

// New starts a stand-in.
func New(c Config) *Server {
	c.Key = cmp.Or(c.Key, "sk_test_standin")
	c.WebhookSecret = cmp.Or(c.WebhookSecret, "whsec_standinstandin")
	c.APIVersion = cmp.Or(c.APIVersion, "2026-05-27.dahlia")
	c.KeyLife = cmp.Or(c.KeyLife, 24*time.Hour)
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{c: c, mux: http.NewServeMux(), byID: map[string]*intent{}, keys: map[string]*stored{}, calls: map[string]int{}}
	s.route("POST /v1/payment_intents", "create", s.create)
	s.route("GET /v1/payment_intents", "list", s.list)
	s.route("GET /v1/payment_intents/search", "search", s.search)
	s.route("GET /v1/payment_intents/{id}", "retrieve", s.retrieve)
	s.route("POST /v1/payment_intents/{id}", "update", s.update)
	s.route("POST /v1/payment_intents/{id}/confirm", "confirm", s.confirm)
	s.route("POST /v1/payment_intents/{id}/cancel", "cancel", s.cancel)
	s.route("POST /v1/payment_intents/{id}/capture", "capture", s.capture)
	s.route("POST /v1/refunds", "refund", s.refund)
	s.route("GET /v1/refunds", "refunds", s.listRefunds)
	s.route("GET /v1/refunds/{id}", "retrieve_refund", s.retrieveRefund)
	s.route("GET /v1/balance", "balance", func(request) answer {
		return answer{status: http.StatusOK, body: object{"object": "balance", "livemode": false, "available": []any{}, "pending": []any{}}}
	})
	s.http = httptest.NewServer(s)
	return s
}

// URL is where it listens, without a path.
func (s *Server) URL() string { return s.http.URL }

// Key is the secret API key.
func (s *Server) Key() string { return s.c.Key }

// WebhookSecret signs its events.
func (s *Server) WebhookSecret() string { return s.c.WebhookSecret }

// Close stops it. Calls that are stalled end.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Calls says how often a call came, by its name: create, update, confirm, cancel, capture, retrieve, list, search, refund,
// refunds, retrieve_refund, balance.
func (s *Server) Calls(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[name]
}

// Secrets are all client secrets that were given out.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.secrets)
}

// request is a call with its parameters.
type request struct {
	id   string // of the object in the path
	form url.Values
}

// allow gives the error for a parameter that is not among those named; "metadata" allows metadata[…].
func (q request) allow(names ...string) *answer {
	for name := range q.form {
		base, _, _ := strings.Cut(name, "[")
		if !slices.Contains(names, base) {
			a := apiError(http.StatusBadRequest, "invalid_request_error", "parameter_unknown", name)
			return &a
		}
	}
	return nil
}

func (q request) metadata(into map[string]string) {
	for name, values := range q.form {
		if key, ok := strings.CutPrefix(name, "metadata["); ok {
			into[strings.TrimSuffix(key, "]")] = values[0]
		}
	}
}

// expands says whether a path is to be expanded.
func (q request) expands(path string) bool {
	for name, values := range q.form {
		if strings.HasPrefix(name, "expand[") && slices.Contains(values, path) {
			return true
		}
	}
	return false
}

func (s *Server) route(pattern, name string, do func(request) answer) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, q *http.Request) {
		r := request{id: q.PathValue("id"), form: q.Form}
		f := s.fault(name)
		if f != nil && f.before(w, q) {
			return
		}
		key, fingerprint := q.Header.Get("Idempotency-Key"), q.Method+" "+q.URL.Path+"?"+q.Form.Encode()
		a, replayed := s.once(key, fingerprint, func() answer {
			s.mu.Lock()
			defer s.mu.Unlock()
			return f.around(func() answer { return do(r) })
		})
		if f != nil && f.after(w, q) {
			return
		}
		if replayed {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		w.Header().Set("Idempotency-Key", key)
		write(w, a)
	})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	s.seq++
	w.Header().Set("Request-Id", fmt.Sprintf("req_%d", s.seq))
	s.mu.Unlock()
	q.Body = http.MaxBytesReader(w, q.Body, 1<<20)
	if err := q.ParseForm(); err != nil {
		write(w, apiError(http.StatusBadRequest, "invalid_request_error", "", ""))
		return
	}
	switch {
	case q.Header.Get("Authorization") != "Bearer "+s.c.Key:
		write(w, apiError(http.StatusUnauthorized, "invalid_request_error", "", ""))
	case q.Header.Get("Stripe-Account") != s.c.Account:
		write(w, apiError(http.StatusForbidden, "invalid_request_error", "account_invalid", ""))
	default:
		s.mux.ServeHTTP(w, q)
	}
}

// once runs a call under its idempotency key as Stripe does.
func (s *Server) once(key, fingerprint string, run func() answer) (a answer, replayed bool) {
	if key == "" {
		return run(), false
	}
	s.mu.Lock()
	known := s.keys[key]
	if known != nil && s.c.Now().Sub(known.at) >= s.c.KeyLife {
		known = nil
	}
	switch {
	case known == nil:
		known = &stored{fingerprint: fingerprint, at: s.c.Now()}
		s.keys[key] = known
	case known.fingerprint != fingerprint:
		a = apiError(http.StatusBadRequest, "idempotency_error", "", "")
	case !known.done:
		a = apiError(http.StatusConflict, "invalid_request_error", "idempotency_key_in_use", "")
	default:
		a, replayed = known.answer, true
	}
	s.mu.Unlock()
	if a.status != 0 {
		return a, replayed
	}
	a = run()
	s.mu.Lock()
	defer s.mu.Unlock()
	known.done, known.answer = true, a
	if !a.kept && s.keys[key] == known {
		delete(s.keys, key)
	}
	return a, false
}

func write(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body)
}

// object is a piece of JSON.
type object = map[string]any

// apiError is an error that no key keeps: the request was not begun.
func apiError(status int, kind, code, param string) answer {
	e := object{"type": kind, "message": "The stand-in says no. It would quote what was sent here."}
	if code != "" {
		e["code"] = code
	}
	if param != "" {
		e["param"] = param
	}
	return answer{status: status, body: object{"error": e}}
}

// keptError is an error of a request that was begun.
func keptError(status int, kind, code, param string) answer {
	a := apiError(status, kind, code, param)
	a.kept = true
	return a
}

func missing(param string) answer {
	return apiError(http.StatusNotFound, "invalid_request_error", "resource_missing", param)
}

func ok(body object) answer { return answer{status: http.StatusOK, body: body, kept: true} }

// next is the number for a new object's id.
func (s *Server) next() int {
	s.seq++
	return s.seq
}
