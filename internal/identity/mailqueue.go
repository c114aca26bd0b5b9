package identity

import (
	"context"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

// Of sending mails.
const (
	sendTimeMax = 20 * time.Second // one talk with the mail server
	drainMax    = 5 * time.Second  // how long a stopping program sends what still waits
)

// sendAgainAfter are the waits before each further try.
var sendAgainAfter = []time.Duration{2 * time.Second, 10 * time.Second}

// A mailQueue holds mails that wait to be sent: bounded, in memory. A mail that is lost with its node is asked for again by
// whoever misses it. Room is taken before anything is stored, so that no code is kept whose mail has no place.
type mailQueue struct {
	max  int
	now  func() time.Time
	log  *slog.Logger
	jobs chan mailJob

	mu    sync.Mutex
	taken int // places: promised or waiting
}

type mailJob struct {
	kind    string
	expires time.Time // of what it brings: no use after that
	send    func(context.Context) error
}

func newMailQueue(max int, now func() time.Time, log *slog.Logger) *mailQueue {
	return &mailQueue{max: max, now: now, log: log, jobs: make(chan mailJob, max)}
}

// take promises a place: give it to put or back to leave.
func (q *mailQueue) take() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken >= q.max {
		return false
	}
	q.taken++
	return true
}

func (q *mailQueue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken--
}

func (q *mailQueue) put(j mailJob) { q.jobs <- j } // has room: a place was taken

// work sends mails until ctx ends, then for a moment what still waits.
func (q *mailQueue) work(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case j := <-q.jobs:
			q.deliver(ctx, j)
		}
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainMax)
	defer cancel()
	for drain.Err() == nil {
		select {
		case j := <-q.jobs:
			q.deliver(drain, j)
		default:
			return
		}
	}
}

func (q *mailQueue) deliver(ctx context.Context, j mailJob) {
	defer q.leave()
	for try := 0; ; try++ {
		if !q.now().Before(j.expires) {
			q.log.WarnContext(ctx, "a mail was not sent: what it brings has expired", "kind", j.kind)
			return
		}
		err := q.send(ctx, j)
		if err == nil {
			return
		}
		q.log.WarnContext(ctx, "a mail could not be sent", "kind", j.kind, "try", try+1, "error", withoutAddresses(err.Error()))
		if try == len(sendAgainAfter) {
			return
		}
		wait := time.NewTimer(sendAgainAfter[try])
		select {
		case <-ctx.Done():
			wait.Stop()
			if try > 0 {
				return
			}
			// Stopping: once more at once, under what is left of the time for it.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainMax)
			defer cancel()
			if err := q.send(last, j); err != nil {
				q.log.WarnContext(ctx, "a mail was not sent before stopping", "kind", j.kind, "error", withoutAddresses(err.Error()))
			}
			return
		case <-wait.C:
		}
	}
}

func (q *mailQueue) send(ctx context.Context, j mailJob) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeMax)
	defer cancel()
	return j.send(ctx)
}

var anAddress = regexp.MustCompile(`[^\s<>"'(),:;]+@[^\s<>"'(),:;]+`)

// withoutAddresses is what a mail server said, without whom it said it of (E10).
func withoutAddresses(text string) string { return anAddress.ReplaceAllString(text, "(address)") }
