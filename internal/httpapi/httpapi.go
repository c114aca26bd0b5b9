// Package httpapi is the HTTP API of Onsale: routes, problem answers, the OpenAPI document.
//
// The one idea: there is one table of routes (routes.go). What is served, what the OpenAPI document says, which requests
// need a customer and which an Idempotency-Key are all read from it, so that they cannot differ. Handlers are short: they
// read a request, call one method of a domain service and write what it answers.
//
// Start reading at the table, then at holds.go: from there one can follow a hold to the ledger.
package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"onsale/internal/booking"
	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/inventory"
	"onsale/internal/ledger"
	"onsale/internal/payment"
	"onsale/internal/ticket"
)

// Limits of requests (I13).
const (
	BodyBytesMax    = 64 << 10
	WebhookBytesMax = payment.WebhookBytesMax
	QueryBytesMax   = 2 << 10
	DocumentsMax    = ledger.SeatsPerHoldCap
	streamLifeMax   = time.Hour // a seat stream ends then; the client resumes
	streamWriteMax  = 10 * time.Second
)

// An Authenticator says which customer a bearer token is of. Its faults are token_invalid and unavailable stores.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (id.ID, error)
}

// Options are what the API is made of. All are required unless said otherwise.
type Options struct {
	Catalog   *catalog.Service
	Inventory *inventory.Service
	Booking   *booking.Service
	Ledger    ledger.Reader
	Commands  interface { // extend and release go straight to the ledger
		Do(context.Context, ledger.Command) (ledger.Result, error)
	}
	Identity Authenticator
	NewID    func(shard int) (id.ID, error)
	// FieldKey is the secret under which fields of idempotent requests are hashed (A12).
	FieldKey []byte
	// TicketKey is the key that signs what is shown of a ticket; Test marks it as paid in a sandbox.
	TicketKey func() (ticket.Key, error)
	// JWKS is the public keys as a JSON Web Key Set.
	JWKS func() ([]byte, error)
	// Webhook takes a provider's notices, by the provider's name.
	Webhooks map[string]func(ctx context.Context, h payment.Header, body []byte) error
	// Observe hears of every answered request; may be nil.
	Observe func(route string, status int, took time.Duration)
	// Demo says that money is not real; the plain page says so and how to get a token.
	Demo    bool
	Version string
	Now     func() time.Time // Defaults to time.Now
	Logger  *slog.Logger     // Defaults to slog.Default()
}

type api struct {
	Options
	routes []route
	doc    []byte // the OpenAPI document
	docs   []byte // the readable one
}

// New makes the API's handler.
func New(o Options) (http.Handler, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if len(o.FieldKey) < 16 {
		return nil, errors.New("httpapi: FieldKey needs at least 16 bytes")
	}
	a := &api{Options: o}
	a.routes = a.table()
	if err := a.describe(); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	byPath := map[string]bool{}
	for _, r := range a.routes {
		mux.Handle(r.Method+" "+r.Path, a.serve(r))
		byPath[r.Path] = true
	}
	for path := range byPath {
		if path != "/{$}" {
			mux.Handle(path, a.serve(route{ID: "method_not_allowed", handle: wrongMethod(a.methods(path))}))
		}
	}
	mux.Handle("/", a.serve(route{ID: "not_found", handle: func(http.ResponseWriter, *request) error {
		return fault.New(fault.NotFound, "the API is described at /openapi.json and /docs")
	}}))
	return mux, nil
}

// OpenAPI is the document as the handler would serve it, for the generated file.
func OpenAPI(version string) ([]byte, error) {
	a := &api{Options: Options{Version: version}}
	a.routes = a.table()
	err := a.describe()
	return a.doc, err
}

func (a *api) methods(path string) string {
	var all []string
	for _, r := range a.routes {
		if r.Path == path {
			all = append(all, r.Method)
		}
	}
	return strings.Join(all, ", ")
}

func wrongMethod(allow string) func(http.ResponseWriter, *request) error {
	return func(w http.ResponseWriter, _ *request) error {
		w.Header().Set("Allow", allow)
		return fault.New(fault.MethodNotAllowed, "use %s", allow)
	}
}

// A request is an HTTP request with what was found out about it.
type request struct {
	*http.Request
	id       string // of the request, in the answer and the log
	customer id.ID
	key      string // Idempotency-Key
	wrote    bool
}

// recorder remembers the status that was written.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// serve wraps a route's handler with what all routes have: request id, authentication, key, problem answers, log.
func (a *api) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		start := a.Now()
		rec := &recorder{ResponseWriter: w}
		r := &request{Request: hr, id: requestID(hr.Header.Get("X-Request-Id"))}
		rec.Header().Set("X-Request-Id", r.id)
		rec.Header().Set("X-Content-Type-Options", "nosniff")
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				a.Logger.ErrorContext(hr.Context(), "panic", "request", r.id, "route", rt.ID, "panic", p, "stack", string(debug.Stack()))
				a.problem(rec, r, fault.New(fault.Internal, ""))
			}
			if a.Observe != nil {
				a.Observe(rt.ID, rec.status, a.Now().Sub(start))
			}
		}()
		if err := a.prepare(rt, r); err != nil {
			a.problem(rec, r, err)
			return
		}
		if err := rt.handle(rec, r); err != nil {
			a.problem(rec, r, err)
		}
	})
}

// prepare finds out who asks and under which key.
func (a *api) prepare(rt route, r *request) error {
	if len(r.URL.RawQuery) > QueryBytesMax {
		return fault.New(fault.BadRequest, "the query is longer than %d bytes", QueryBytesMax)
	}
	if rt.Auth {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || token == "" {
			return fault.New(fault.SignInRequired, "send the header Authorization: Bearer with your token")
		}
		customer, err := a.Identity.Authenticate(r.Context(), token)
		if err != nil {
			return err
		}
		r.customer = customer
	}
	if rt.Key == keyNone {
		return nil
	}
	key, err := idempotencyKey(r.Header.Values("Idempotency-Key"))
	if err != nil {
		return err
	}
	if key == "" && rt.Key == keyRequired {
		return fault.New(fault.KeyMissing, "send the header Idempotency-Key with a new random value for each booking, and the same value when you repeat it")
	}
	r.key = key
	return nil
}

// idempotencyKey reads the header, as a structured-field string or bare.
func idempotencyKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	if len(values) > 1 || len(key) > ledger.KeyBytesMax || key == "" || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
		return "", &fault.Error{Code: fault.BadRequest, Field: "Idempotency-Key", Detail: "one key of 1 to 255 printable ASCII characters"}
	}
	return key, nil
}

const requestIDBytesMax = 64

// requestID takes a proxy's request id where it is one, else makes one.
func requestID(given string) string {
	if given != "" && len(given) <= requestIDBytesMax && !strings.ContainsFunc(given, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
	}) {
		return given
	}
	var b [10]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
