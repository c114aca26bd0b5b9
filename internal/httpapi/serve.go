package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
)

// A request is an HTTP request with what was found out about it.
type request struct {
	*http.Request
	route    string
	id       string          // of the request, in the answer and the log
	person   identity.Person // who asks, as far as that was asked for
	customer id.ID           // the same, 0 where the route is for everybody
	key      string          // Idempotency-Key
	bodyMax  int64           // bytes
	client   context.Context // ends when the client goes away, not when our time for the request is up

	// Of a route whose Who names a thing: the thing as it was read for the check, where it is one of these.
	hold   *ledger.Hold
	order  *ledger.Order
	ticket *ledger.Ticket
	refund *ledger.Refund
	// The device that a browser was given by this request's answer.
	device guard.DeviceMark
	event  *catalog.Event
	// Of a route for members: for whom, and in which role, the customer acts.
	organizer id.ID
	role      identity.Role
}

// statusGone is what is counted for a client that went away before it had an answer. It is never sent.
const statusGone = 499

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

// bare is the server's own writer, which http.MaxBytesReader tells to close the connection.
func bare(w http.ResponseWriter) http.ResponseWriter {
	if rec, ok := w.(*recorder); ok {
		return rec.ResponseWriter
	}
	return w
}

// serve wraps a route's handler with what all routes have: request id, time limits, authentication, key, problem answers,
// log. An answer that cannot be finished is cut off, so that nobody takes half of it for the whole.
func (a *api) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		start := a.Now()
		rec := &recorder{ResponseWriter: w}
		r := &request{Request: hr, route: rt.ID, id: requestID(hr.Header.Get("X-Request-Id")), client: hr.Context(), bodyMax: cmp.Or(rt.BodyMax, BodyBytesMax)}
		defer rt.limitTime(rec, r)()
		rec.Header().Set("X-Request-Id", r.id)
		a.secureHeaders(rec.Header())
		cut := false
		defer func() {
			p := recover()
			if p != nil {
				cut = cut || p == http.ErrAbortHandler || rec.status != 0
				if p != http.ErrAbortHandler {
					a.Logger.ErrorContext(hr.Context(), "panic", "request", r.id, "route", rt.ID, "panic", p, "stack", string(debug.Stack()))
					a.problem(rec, r, fault.New(fault.Internal, ""))
				}
			}
			if a.Observe != nil {
				a.Observe(rt.ID, rec.counted(), a.Now().Sub(start))
			}
			if cut || rec.status == statusGone { // net/http would answer 200 to whoever still reads
				panic(http.ErrAbortHandler)
			}
		}()
		leave, err := a.enter(&rt, rec, r)
		defer leave()
		if err == nil {
			err = a.prepare(rt, rec.Header(), r)
		}
		if err == nil {
			err = rt.handle(rec, r)
		}
		if err != nil {
			cut = rec.status != 0
			a.problem(rec, r, err)
		}
	})
}

// counted is the status for the metrics: a handler that wrote nothing has answered 200.
func (r *recorder) counted() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// limitTime bounds how long the route may take to answer and how long the client may take to read it. The returned
// function ends the limit.
func (rt *route) limitTime(w http.ResponseWriter, r *request) (end func()) {
	if rt.Takes == untilClosed {
		return func() {} // each write has its own
	}
	takes, sending := rt.Takes, rt.Sending
	if takes == 0 {
		takes = answerTimeMax
	}
	if sending == 0 {
		sending = sendTimeMax
	}
	// A writer that knows no deadlines (a test's) has none; the server's own limits stand behind these.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(takes + sending))
	ctx, cancel := context.WithTimeout(r.Context(), takes)
	r.Request = r.WithContext(ctx)
	return cancel
}

// prepare finds out who asks, whether they may, and under which key.
func (a *api) prepare(rt route, h http.Header, r *request) error {
	most := QueryBytesMax
	if rt.LongQuery {
		most = callbackBytesMax
	}
	if len(r.URL.RawQuery) > most {
		return fault.New(fault.BadRequest, "the query is longer than %d bytes", most)
	}
	if !rt.Foreign {
		if err := a.crossOrigin(r.Request); err != nil {
			return err
		}
	}
	if err := a.limitAndIdentify(&rt, h, r); err != nil {
		return err
	}
	if err := a.allow(r, rt.Who); err != nil {
		return err
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

// bearer is the token of the one Authorization header.
func bearer(values []string) (string, error) {
	if len(values) > 1 {
		return "", fault.New(fault.BadRequest, "send one Authorization header")
	}
	if len(values) == 1 {
		if scheme, token, ok := strings.Cut(values[0], " "); ok && strings.EqualFold(scheme, "Bearer") && strings.TrimSpace(token) != "" {
			return strings.TrimSpace(token), nil
		}
	}
	return "", fault.New(fault.SignInRequired, "send the header Authorization: Bearer with your token")
}

// idempotencyKey reads the header, as a structured-field string or bare.
func idempotencyKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	key, forbidden := values[0], `"\`
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	} else {
		forbidden += " ,;" // two keys that a proxy has joined are not one
	}
	bad := func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune(forbidden, c) }
	if len(values) > 1 || len(key) > ledger.KeyBytesMax || key == "" || strings.ContainsFunc(key, bad) {
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

// faultOf is the fault with which a request ended. Where our time for it was up, somebody waited too long: nothing was
// done, since a command that may have been done is outcome_unknown.
func faultOf(r *request, err error) *fault.Error {
	if items := refusedItems(err); items != nil {
		return &fault.Error{Code: fault.Invalid, Field: items[0].Field, Detail: "there is something to mend: see problems", Cause: err}
	}
	var known *fault.Error
	if !errors.As(err, &known) && errors.Is(r.Context().Err(), context.DeadlineExceeded) {
		return &fault.Error{Code: fault.Busy, RetryAfter: time.Second, Cause: err}
	}
	f := fault.Of(err)
	if f != nil && f.Code == fault.Internal && away(err) {
		return &fault.Error{Code: fault.Busy, Detail: "a database is away", RetryAfter: time.Second, Cause: err}
	}
	return f
}

// away says whether an error is that of a database that cannot be reached, or is stopping or starting: nothing is wrong
// with the request, and a repeat may find it back. Commands whose commit has an unknown outcome say so themselves, so what
// comes here is a read, or a write that was not begun.
func away(err error) bool {
	var line net.Error
	if errors.As(err, &line) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return true
	}
	var sql interface{ SQLState() string } // the classes of SQL: connection exceptions, operator intervention
	return errors.As(err, &sql) && (strings.HasPrefix(sql.SQLState(), "08") || strings.HasPrefix(sql.SQLState(), "57P"))
}
