package stripe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"onsale/internal/payment"
)

// Limits of one call.
const (
	triesMax  = 12 // of a call that meets another one on the same object or key
	pauseMax  = time.Second
	pauseMin  = 20 * time.Millisecond
	keysMax   = 8 // keys that a stored failure can use up, one after the other
	wordMax   = 64
	answerMax = 16 << 20 // bytes of one answer
)

// A failure is what Stripe, or the way to it, said instead of an answer: what is safe to show of it and no more. The
// library's own errors print the whole object that they are about, its client secret included, so none is ever wrapped.
type failure struct {
	status   int    // 0 where there was no answer
	kind     string // "card_error", "invalid_request_error", …
	code     string
	decline  string // the bank's reason under the code card_declined
	param    string
	request  string // Stripe's id of the request, by which its support finds it
	replayed bool   // it is the stored answer of an earlier call under the same key
	after    time.Duration
	cause    error // what happened on the way, where there was no answer

	intent *sdk.PaymentIntent // the payment intent that it is about, where told; never printed
}

func (f *failure) Error() string {
	if f.status == 0 {
		return f.cause.Error()
	}
	text := fmt.Sprintf("stripe: status %d, %s %s", f.status, f.kind, f.reason())
	if f.param != "" {
		text += ", parameter " + f.param
	}
	if f.request != "" {
		text += ", request " + f.request
	}
	switch f.status {
	case http.StatusUnauthorized:
		text += " (the secret key is not valid any more)"
	case http.StatusForbidden:
		text += " (the secret key may not do this: a restricted key must be allowed to write payment intents and refunds)"
	}
	return text
}

// Unwrap shows what is known beside the text.
func (f *failure) Unwrap() error {
	if f.status == http.StatusTooManyRequests {
		return &payment.Busy{Code: f.reason(), After: f.after}
	}
	return f.cause
}

// reason is the finest word that Stripe gave.
func (f *failure) reason() string {
	for _, word := range []string{f.decline, f.code, f.kind} {
		if word != "" {
			return word
		}
	}
	return "unknown"
}

// stored says that the failure is final under its key although it says nothing: an error of Stripe's own.
func (f *failure) stored() bool { return f.replayed && f.status >= http.StatusInternalServerError }

// conflict says that the key was used with other parameters.
func (f *failure) conflict() bool { return f.kind == string(sdk.ErrorTypeIdempotency) }

// passing says that another call is at the same object, or under the same key, at this moment: nothing was done.
func (f *failure) passing() bool {
	return f.code == string(sdk.ErrorCodeLockTimeout) || f.code == string(sdk.ErrorCodeIdempotencyKeyInUse)
}

// missing says that there is no such object.
func (f *failure) missing() bool { return f.code == string(sdk.ErrorCodeResourceMissing) }

// refusal says that Stripe understood the request and will not do it, as opposed to not being able to say, or not now.
func (f *failure) refusal() bool {
	switch f.status {
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusNotFound:
		return !f.conflict() && !f.passing()
	}
	return false
}

func (f *failure) unknown(op string) error { return payment.Unknown(op, f) }

var errUnreadable = errors.New("the answer cannot be read")

// failureOf keeps what is safe of the library's error.
func failureOf(err error) *failure {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return &failure{cause: safeCause(err)}
	}
	f := &failure{
		status: e.HTTPStatusCode, kind: safeWord(string(e.Type)), code: safeWord(string(e.Code)), decline: safeWord(string(e.DeclineCode)),
		param: safeWord(e.Param), request: safeWord(e.RequestID), intent: e.PaymentIntent,
	}
	if e.LastResponse != nil {
		f.replayed = replayed(e.LastResponse)
		if seconds, err := strconv.Atoi(e.LastResponse.Header.Get("Retry-After")); err == nil && seconds > 0 {
			f.after = min(time.Duration(seconds)*time.Second, time.Hour)
		}
	}
	if f.status == 0 {
		f.cause = errUnreadable
	}
	return f
}

// safeCause is what may be shown of an error on the way: the library quotes an answer that it cannot read.
func safeCause(err error) error {
	var onTheWay *url.Error
	var network net.Error
	switch {
	case errors.As(err, &onTheWay):
		return onTheWay.Err
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, errTooLong),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return errUnreadable
}

// safeWord is a word of Stripe's as it may stand in a log line; "?" where it is none.
func safeWord(text string) string {
	if len(text) > wordMax {
		return "?"
	}
	for i := range len(text) {
		c := text[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '[' || c == ']' || c == '-') {
			return "?"
		}
	}
	return text
}

// replayed says that an answer is the stored one of an earlier call under the same idempotency key, and so maybe old.
func replayed(r *sdk.APIResponse) bool {
	return r != nil && r.Header.Get("Idempotent-Replayed") == "true"
}

// call makes one call of the library, again where another call was in its way.
func call[T any](ctx context.Context, do func() (T, error)) (answer T, f *failure) {
	for try := 1; ; try++ {
		got, err := do()
		if err == nil {
			return got, nil
		}
		f = failureOf(err)
		if !f.passing() || try == triesMax || pause(ctx, try) != nil {
			return answer, f
		}
	}
}

// pause waits a little, longer with each try.
func pause(ctx context.Context, try int) error {
	most := min(pauseMin<<try, pauseMax)
	t := time.NewTimer(most/2 + rand.N(most/2))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keyed makes a call under an idempotency key. Where the key has kept a failure that says nothing of the call (Stripe
// keeps its own errors too, for a day), everybody meets the same one under it and goes on to the same next key.
func keyed[T any](ctx context.Context, key string, spent func(*failure) bool, do func(key string) (T, error)) (T, *failure) {
	for n := 1; ; n++ {
		k := key
		if n > 1 {
			k = fmt.Sprintf("%s.%d", key, n)
		}
		answer, f := call(ctx, func() (T, error) { return do(k) })
		if f == nil || n == keysMax || !spent(f) {
			return answer, f
		}
	}
}

var errTooLong = fmt.Errorf("the answer has more than %d bytes", answerMax)

// bounded is a transport whose answers end at answerMax.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(q *http.Request) (*http.Response, error) {
	r, err := b.RoundTripper.RoundTrip(q)
	if err == nil {
		r.Body = &boundedBody{r.Body, answerMax}
	}
	return r, err
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}
