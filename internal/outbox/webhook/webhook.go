// Package webhook tells organizers' own systems what happened: each notice of the outbox that they ask for is posted to
// their endpoint, signed as Standard Webhooks says (standardwebhooks.com).
//
// The one idea: a delivery is a row, made when the notice is handled, and posted later by a Dispatcher, endpoint by
// endpoint, until it is answered with 2xx or three days are over. So an endpoint that is slow or away delays only itself,
// a crash loses nothing, and what was given up is kept and can be replayed, byte by byte as it was. Two nodes claim rows
// under a fence; where both deliver one nevertheless, the receiver knows the double by its webhook-id.
//
// What is posted has ids only (E10), and goes only where Check and the dialer of outbox/webhook/post allow (E7).
//
// Start reading at Endpoint and Delivery, then Handler, then Dispatcher. Service is what commands and the API call.
package webhook

import (
	"context"
	"errors"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Limits.
const (
	EndpointsPerOrganizerMax = 20
	QueueMax                 = 100_000 // deliveries that wait for one endpoint; more are dead letters at once
	KindsMax                 = 64
	URLBytesMax              = 2048
	ParallelMax              = 4   // posts to one endpoint at once
	EndpointsAtOnceMax       = 256 // endpoints that one node talks with at once

	keepEnded  = 8 * 24 * time.Hour // longer than the outbox keeps notices: none comes again after that
	keepDead   = 30 * 24 * time.Hour
	rotateTime = 24 * time.Hour // the old secret signs too
)

// Kinds are what an endpoint may ask for. One that names none gets all but those of the inner workings.
var Kinds = []string{
	ledger.NoticePending, ledger.NoticePaid, ledger.NoticeFailed, ledger.NoticeExpired, ledger.NoticeRefunded, ledger.NoticeExchanged,
	ledger.NoticeCaptureDue, ledger.NoticeGiveBack, ledger.NoticePayment, ledger.NoticeCaptureRefused,
	ledger.NoticeRefundRequested, ledger.NoticeRefundDone, ledger.NoticeRefundRefused, ledger.NoticeSeatsReleased,
	ledger.NoticeTransferred, ledger.NoticeCheckedIn, ledger.NoticeCheckInConflict, ledger.NoticeCheckInUndone, ledger.NoticeEvent,
	ledger.NoticeWishAdded, ledger.NoticeWishOffered, ledger.NoticeWishLapsed, ledger.NoticeWishEnded,
}

// inner are kinds that only who names them gets.
var inner = map[string]bool{ledger.NoticePending: true, ledger.NoticeCaptureDue: true, ledger.NoticePayment: true, ledger.NoticeWishAdded: true, ledger.NoticeWishLapsed: true}

// Prefix is of endpoints' ids.
const Prefix = "whe"

// Errors of stores.
var (
	ErrUnknown = errors.New("webhook: there is no such endpoint")
	ErrTaken   = errors.New("webhook: the organizer has an endpoint with this URL")
	ErrTooMany = errors.New("webhook: the organizer has too many endpoints")
)

// An Endpoint is where an organizer wants to be told.
type Endpoint struct {
	ID        id.ID
	Organizer id.ID
	URL       string
	Kinds     []string // none: all but those of the inner workings
	On        bool
	Sealed    []byte    // the secret
	OldSealed []byte    // the one before; none where there is none
	OldUntil  time.Time // it signs too until then
	Created   time.Time
}

// wants says whether an endpoint asks for a kind.
func (e *Endpoint) wants(kind string) bool {
	if len(e.Kinds) == 0 {
		return !inner[kind]
	}
	for _, k := range e.Kinds {
		if k == kind {
			return true
		}
	}
	return false
}

// The states of deliveries.
const (
	Due   = "due"
	Ended = "ended"
	Dead  = "dead"
)

// A Delivery is one message to one endpoint.
type Delivery struct {
	Endpoint id.ID
	Message  string // webhook-id, the same in every try and replay
	Kind     string
	Body     string
	State    string
	Tries    int
	Fence    int64  // of the claim
	Status   int    // of the last answer, 0 for none
	Last     string // what went wrong, in our words
	Created  time.Time
	Due      time.Time // of one that ended or is dead: since when
}

// A Replay says what to deliver again: one message, or all dead ones, or all made since an instant, delivered or not.
type Replay struct {
	Message string
	Dead    bool
	Since   time.Time
}

// Counts say how an endpoint's deliveries stand.
type Counts struct{ Waiting, Dead int }

// A Store keeps endpoints and deliveries. Each method is atomic and durable when it returns; all may be called at once, from
// many nodes. The control database is one.
type Store interface {
	// Endpoints are an organizer's, by id; of 0 all.
	Endpoints(ctx context.Context, organizer id.ID) ([]Endpoint, error)
	// Endpoint is one. ErrUnknown.
	Endpoint(ctx context.Context, endpoint id.ID) (Endpoint, error)
	// AddEndpoint keeps a new one. ErrTaken; ErrTooMany where the organizer has max.
	AddEndpoint(ctx context.Context, e Endpoint, max int) error
	// SetEndpoint changes URL, kinds and state; it leaves the secrets alone. ErrUnknown; ErrTaken.
	SetEndpoint(ctx context.Context, e Endpoint) error
	// RotateEndpoint changes the secrets, and nothing else, where the newest is still `was`. ErrUnknown, also where it is
	// another by now.
	RotateEndpoint(ctx context.Context, e Endpoint, was []byte) error
	// RemoveEndpoint removes one with all its deliveries. ErrUnknown.
	RemoveEndpoint(ctx context.Context, endpoint id.ID) error

	// Put keeps new deliveries; one that is there already, by endpoint and message, is left as it is. Where max wait for an
	// endpoint, further ones are dead from the beginning.
	Put(ctx context.Context, all []Delivery, max int) error
	// DueEndpoints are those that are on and have deliveries to be tried now, the longest waiting first, at most max.
	DueEndpoints(ctx context.Context, max int) ([]Endpoint, error)
	// Claim takes deliveries of an endpoint that are due, at most max: they are not due again for a time, each with a new fence.
	Claim(ctx context.Context, endpoint id.ID, hold time.Duration, max int) ([]Delivery, error)
	// Settle writes down what became of a claimed one: State, Tries, Status, Last as in d, and when it is due again. Where
	// the claim has gone to another, nothing happens.
	Settle(ctx context.Context, d Delivery, after time.Duration) error
	// List are an endpoint's deliveries in a state ("" for any), newest first, at most max.
	List(ctx context.Context, endpoint id.ID, state string, max int) ([]Delivery, error)
	Count(ctx context.Context, endpoint id.ID) (Counts, error)
	// Replay makes deliveries due again, and says how many.
	Replay(ctx context.Context, endpoint id.ID, r Replay) (int, error)
	// Prune deletes deliveries that ended before `ended` or died before `died`, at most max of each.
	Prune(ctx context.Context, ended, died time.Time, max int) (int, error)
}

// A Sealer seals secrets for a name, and opens them. keys.Master does it, see app.
type Sealer interface {
	Seal(name string, secret []byte) ([]byte, error)
	Open(name string, sealed []byte) ([]byte, error)
}

func sealName(endpoint id.ID) string { return endpoint.Text(Prefix) }
