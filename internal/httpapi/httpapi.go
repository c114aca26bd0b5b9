// Package httpapi is the HTTP API of Onsale: routes, problem answers, the OpenAPI document.
//
// The one idea: there is one table of routes (routes.go). What is served, what the OpenAPI document says, which requests
// need a customer and which an Idempotency-Key are all read from it, so that they cannot differ. Handlers are short: they
// read a request, call one method of a domain service and write what it answers.
//
// Start reading at the table, then at serve.go (what all requests go through) and holds.go: from there one can follow a
// hold to the ledger.
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"onsale/internal/booking"
	"onsale/internal/catalog"
	"onsale/internal/door"
	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/guard/picture"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/inventory"
	"onsale/internal/ledger"
	"onsale/internal/outbox/webhook"
	"onsale/internal/payment"
	"onsale/internal/presale"
	"onsale/internal/ticket"
)

// Limits of requests (I13).
const (
	BodyBytesMax    = 64 << 10
	WebhookBytesMax = payment.WebhookBytesMax
	QueryBytesMax   = 2 << 10
	streamLifeMax   = time.Hour // a seat stream ends then; the client resumes
	streamWriteMax  = 10 * time.Second
	answerTimeMax   = 15 * time.Second // to find an answer, unless the route says otherwise
	sendTimeMax     = 15 * time.Second // for the client to read it
	planSendTimeMax = 3 * time.Minute  // a plan has megabytes, and phones are slow

	untilClosed = time.Duration(-1) // a route's Takes: it ends by itself
)

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
	// People are sign-ins, profiles, members; nil: nobody can sign in here, and nobody has a profile.
	People *identity.Service
	// Codes says that one-time codes can be mailed.
	Codes bool
	// Providers are who else signs people in (OpenID Connect), by the name that their paths have.
	Providers map[string]OIDC
	Roles     Roles // Defaults to People; where neither is there nobody has a role
	// Rooms are the waiting rooms; nil: no event has one here.
	Rooms Rooms
	// ObserveHold hears of every request for a hold: how long it took, and whether it was refused as busy; may be nil.
	ObserveHold func(event id.ID, took time.Duration, shed bool)
	// Gate says who may join a line; nil: joins bring nothing, and nobody is blocked.
	Gate *guard.Gate
	// Pictures shows what only a person can read, or hear; nil: nothing.
	Pictures *picture.Check
	// Presale knows who may join a lane that is not for everybody; nil: nobody.
	Presale *presale.Service
	// Waitlist keeps the wishes of those who found nothing; nil: nobody may leave one.
	Waitlist Waitlist
	// Blocks are the block lists; nil: nobody can be blocked from here.
	Blocks *guard.Blocks
	// Evidence takes what was seen of who made an order, and EvidenceStore has it; nil: none is kept.
	Evidence      *guard.Recorder
	EvidenceStore guard.EvidenceStore
	// Limiter says who asks too often. nil: nobody does.
	Limiter Limiter
	// Shed bounds how many requests are under way; nil: nothing does.
	Shed *Shed
	// TrustedProxies are whose word on where a request comes from is believed.
	TrustedProxies []netip.Prefix
	// PublicURL is the origin under which browsers reach us, "https://tickets.example"; "" where it is not known: then
	// cookies are for plain connections.
	PublicURL string
	NewID     func(shard int) (id.ID, error)
	// FieldKey is the secret under which fields of idempotent requests are hashed (A12).
	FieldKey []byte
	// TicketKey is the key that signs what is shown of a ticket; Test marks it as paid in a sandbox.
	TicketKey func() (ticket.Key, error)
	// Door lets people in.
	Door *door.Service
	// Resend sends the tickets of an order by mail again; nil: no mail is sent from here.
	Resend func(ctx context.Context, order id.ID) error
	// EventChanged hears of each event that organizers make or change, so that it is sold as they say; may be nil.
	EventChanged func(ctx context.Context) error
	// Restart lets an event sell again that was stopped because an invariant was found broken; nil: not from here.
	Restart func(ctx context.Context, event id.ID) error
	// Audit recomputes what was promised of an event and gives a report that is good JSON; nil: not from here.
	Audit func(ctx context.Context, event id.ID) (report any, ok bool, err error)
	// Endpoints are where organizers' own systems are told what happens; nil: nobody is told from here.
	Endpoints *webhook.Service
	// JWKS is the public keys as a JSON Web Key Set.
	JWKS func() ([]byte, error)
	// Webhook takes a provider's notices, by the provider's name.
	Webhooks map[string]func(ctx context.Context, h payment.Header, body []byte) error
	// Observe hears of every answered request; may be nil.
	Observe func(route string, status int, took time.Duration)
	// Demo says that money is not real; the plain page says so and how to get a token.
	Demo    bool
	Data    string // the data folder, for the line about the token
	Version string
	Now     func() time.Time // Defaults to time.Now
	Logger  *slog.Logger     // Defaults to slog.Default()
}

type api struct {
	Options
	origins *http.CrossOriginProtection
	// planReaders, audits and listReaders have room for as many as may be at work at once.
	planReaders, audits, listReaders chan struct{}

	secure http.Header // what secureHeaders sets, made once: see hot.go
	routes []route
	doc    []byte // the OpenAPI document
	docs   []byte // the readable one
}

// New makes the API's handler.
func New(o Options) (http.Handler, error) {
	a, err := newAPI(o)
	if err != nil {
		return nil, err
	}
	return a.handler(), nil
}

func newAPI(o Options) (*api, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if len(o.FieldKey) < 16 {
		return nil, errors.New("httpapi: FieldKey needs at least 16 bytes")
	}
	if o.Roles == nil && o.People != nil {
		o.Roles = o.People
	}
	origins, err := newOrigins(o.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("httpapi: the public URL: %w", err)
	}
	a := &api{Options: o, origins: origins, planReaders: make(chan struct{}, planReadersMax), audits: make(chan struct{}, auditsMax), listReaders: make(chan struct{}, listReadersMax)}
	a.secure = http.Header{}
	a.secureHeaders(a.secure)
	a.routes = a.table()
	return a, a.describe()
}

// handler serves the table.
func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	// By path, each with its methods: patterns with methods would be in each other's way where one path is a case of another.
	paths := map[string]methods{}
	for _, r := range a.routes {
		if paths[r.Path] == nil {
			paths[r.Path] = methods{"": a.serve(route{ID: "method_not_allowed", Who: public, handle: wrongMethod(a.methods(r.Path))})}
		}
		paths[r.Path][r.Method] = a.serve(r)
		if r.Method == http.MethodGet {
			paths[r.Path][http.MethodHead] = paths[r.Path][r.Method]
		}
	}
	for path, all := range paths {
		mux.Handle(path, all)
	}
	unknown := a.serve(route{ID: "not_found", Who: public, handle: func(http.ResponseWriter, *request) error {
		return fault.New(fault.NotFound, "the API is described at /openapi.json and /docs")
	}})
	mux.Handle("/", unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.hot(w, r) {
			return
		}
		if !cleanPath(r.URL.EscapedPath()) {
			unknown.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// methods are the handlers of one path, by method; that of "" is for all others.
type methods map[string]http.Handler

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, ok := m[r.Method]
	if !ok || r.Method == "" {
		h = m[""]
	}
	h.ServeHTTP(w, r)
}

// cleanPath is false for a path that http.ServeMux would redirect in words of its own.
func cleanPath(escaped string) bool {
	if !strings.HasPrefix(escaped, "/") {
		return false
	}
	clean := path.Clean(escaped)
	return clean == escaped || clean != "/" && clean+"/" == escaped
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
			if r.Method == http.MethodGet {
				all = append(all, http.MethodHead)
			}
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
