package waitingroom

import (
	"context"
	"sync"
	"sync/atomic"

	"onsale/internal/fault"
)

// An appender makes many callers' records one Append (C2): while the log writes, the next batch gathers. There is no timer. What
// waits is bounded (I13).
type appender struct {
	log   Log
	queue chan *appending
	idle  sync.Pool // of *appending

	batches atomic.Int64
	closed  chan struct{} // closed when nothing is taken out of the queue any more
}

// An appending is one record that waits. Whoever made it waits for done, or leaves it.
type appending struct {
	record Record
	answer Appended
	done   chan struct{} // holds one token when the answer is there
}

func newAppender(log Log, queueMax int) *appender {
	a := &appender{log: log, queue: make(chan *appending, queueMax), closed: make(chan struct{})}
	a.idle.New = func() any { return &appending{done: make(chan struct{}, 1)} }
	return a
}

func (a *appender) stats() (batches int64, waiting int) { return a.batches.Load(), len(a.queue) }

// append makes a record durable. The log's word on this record alone is in Appended.Err; the error is busy where the log is away,
// the queue full, or the service closing, and that of ctx. It may be in the log all the same then.
func (a *appender) append(ctx context.Context, r Record) (Appended, error) {
	w := a.idle.Get().(*appending)
	w.record = r
	select {
	case a.queue <- w:
	default:
		a.idle.Put(w)
		return Appended{}, busy("too many people are joining at once")
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return Appended{}, ctx.Err() // the appender still has it: it is not used again
	case <-a.closed:
		select {
		case <-w.done:
		default:
			return Appended{}, busy("the waiting room is closing")
		}
	}
	answer := w.answer
	*w = appending{done: w.done}
	a.idle.Put(w)
	if f := fault.Of(answer.Err); answer.Err != nil && f.Code == fault.Busy {
		return Appended{}, f
	}
	return answer, nil
}

// run appends until ctx ends.
func (a *appender) run(ctx context.Context) {
	defer close(a.closed)
	waiting := make([]*appending, 0, JoinBatchMax)
	records := make([]Record, 0, JoinBatchMax)
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-a.queue:
			waiting = append(waiting[:0], w)
		}
		for more := true; more && len(waiting) < JoinBatchMax; {
			select {
			case w := <-a.queue:
				waiting = append(waiting, w)
			default:
				more = false
			}
		}
		records = records[:0]
		for _, w := range waiting {
			records = append(records, w.record)
		}
		a.batches.Add(1)
		answers, err := a.log.Append(ctx, records)
		for i, w := range waiting {
			if err != nil {
				w.answer = Appended{Err: &fault.Error{Code: fault.Busy, RetryAfter: retrySoon, Detail: "joins cannot be written down now", Cause: err}}
			} else {
				w.answer = answers[i]
			}
			w.done <- struct{}{}
		}
	}
}
