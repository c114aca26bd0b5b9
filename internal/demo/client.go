package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"syscall"
	"time"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
)

// Limits of one call.
const (
	callTimeout   = 45 * time.Second // one try; the server's own limit on a booking is below it
	callPatience  = 2 * time.Minute  // all tries of one call: a buyer outlives a restart of the server
	answerMax     = 32 << 20
	againFirst    = 40 * time.Millisecond
	againMost     = time.Second
	retryAfterMax = 10 * time.Second
)

// browserAgent is what people's browsers say they are.
const browserAgent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// errNoAnswer says that a call has no answer: whether it took effect is not known.
var errNoAnswer = errors.New("no answer came")

// A client talks to the server as buyers do. It may be used from many goroutines.
type client struct {
	base    string
	http    *http.Client
	figures *figures
}

func newClient(base string, connections int, f *figures) *client {
	return &client{base: base, figures: f, http: &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
	}}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// A call is one request, and how it is made.
type call struct {
	name   string // under which it is timed
	method string
	path   string
	who    caller
	key    string // Idempotency-Key; "" for none
	accept string
	body   any
	pass   string // an admission token
	drop   bool   // hang up as soon as the request is sent, and then send it again
	once   bool   // do not send it again without a sign that nothing has happened
}

// A caller is how a request says who asks, and from where. The zero value says nothing.
type caller struct {
	token   string // a bearer's
	cookies string // a browser's
	agent   string // what it says it is; "" is a browser
	from    string // the address that the demo's server, which trusts loopback, takes it to come from (F4)
}

// An answer is what came back.
type answer struct {
	status  int
	body    []byte
	cookies []*http.Cookie  // that it set
	problem httpapi.Problem // where the status is 400 or more
}

// read reads the body of a success.
func (a *answer) read(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("an answer with status %d cannot be read: %w", a.status, err)
	}
	return nil
}

func (a *answer) code() fault.Code { return fault.Code(a.problem.Code) }

// do makes a call until it has an answer that is not "later": a connection that broke, a time-out and 5xx are tried
// again with the same key, 429 and 503 when their Retry-After says. errNoAnswer where patience ran out, or where the call
// must not be repeated and its outcome is not known.
func (c *client) do(ctx context.Context, q call, random *rand.Rand) (answer, error) {
	body, err := json.Marshal(q.body)
	if err != nil {
		return answer{}, err
	}
	if q.drop {
		c.drop(ctx, q, body)
	}
	end := time.Now().Add(callPatience)
	wait := againFirst
	for {
		a, after, err := c.try(ctx, q, body)
		switch {
		case err != nil && ctx.Err() != nil:
			return answer{}, ctx.Err()
		case err != nil:
			c.figures.failed("no_answer")
			if q.once && !refused(err) {
				c.figures.did(unknowns)
				return answer{}, errNoAnswer
			}
		case a.status < http.StatusInternalServerError && a.status != http.StatusTooManyRequests, a.code() == fault.HoldRest:
			return a, nil
		case q.once && (a.code() == fault.OutcomeUnknown || a.code() == fault.Internal):
			c.figures.did(unknowns)
			return answer{}, errNoAnswer
		}
		pause := max(after, time.Duration(float64(wait)*(0.5+random.Float64())))
		wait = min(2*wait, againMost)
		if time.Now().Add(pause).After(end) {
			if err == nil && a.code() == fault.Busy {
				return a, nil // that is an answer: nothing has happened
			}
			c.figures.did(unknowns)
			return answer{}, errNoAnswer
		}
		if !sleep(ctx, pause) {
			return answer{}, ctx.Err()
		}
	}
}

// try sends a request once.
func (c *client) try(ctx context.Context, q call, body []byte) (a answer, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := c.request(ctx, q, body)
	if err != nil {
		return a, 0, err
	}
	started := time.Now()
	w, err := c.http.Do(r)
	if err != nil {
		return a, 0, err
	}
	defer w.Body.Close()
	a.status, a.cookies = w.StatusCode, w.Cookies()
	if a.body, err = io.ReadAll(io.LimitReader(w.Body, answerMax)); err != nil {
		return a, 0, err
	}
	c.figures.took(q.name, time.Since(started))
	if a.status >= http.StatusBadRequest {
		if err := json.Unmarshal(a.body, &a.problem); err != nil || a.problem.Code == "" {
			a.problem.Code = "status_" + strconv.Itoa(a.status)
		}
		c.figures.failed(a.problem.Code)
	}
	if seconds, err := strconv.Atoi(w.Header.Get("Retry-After")); err == nil && seconds > 0 {
		after = min(time.Duration(seconds)*time.Second, retryAfterMax)
	}
	return a, after, nil
}

func (c *client) request(ctx context.Context, q call, body []byte) (*http.Request, error) {
	var content io.Reader
	if q.body != nil {
		content = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, c.base+q.path, content)
	if err != nil {
		return nil, err
	}
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.who.agent == "" {
		r.Header.Set("User-Agent", browserAgent)
	} else {
		r.Header.Set("User-Agent", q.who.agent)
	}
	if q.who.token != "" {
		r.Header.Set("Authorization", "Bearer "+q.who.token)
	}
	if q.who.cookies != "" {
		r.Header.Set("Cookie", q.who.cookies)
	}
	if q.who.from != "" {
		r.Header.Set("X-Forwarded-For", q.who.from)
	}
	if q.pass != "" {
		r.Header.Set("X-Admission-Token", q.pass)
	}
	if q.key != "" {
		r.Header.Set("Idempotency-Key", q.key)
	}
	if q.accept != "" {
		r.Header.Set("Accept", q.accept)
	}
	return r, nil
}

// drop sends a request and hangs up before the answer.
func (c *client) drop(ctx context.Context, q call, body []byte) {
	ctx, hangUp := context.WithTimeout(ctx, callTimeout)
	defer hangUp()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { hangUp() }})
	r, err := c.request(ctx, q, body)
	if err != nil {
		return
	}
	w, err := c.http.Do(r)
	if err == nil { // the answer was faster than the hanging up; it is not looked at
		_ = w.Body.Close()
	}
}

// refused says that a request certainly never reached the server.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// sleep waits; false where ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
