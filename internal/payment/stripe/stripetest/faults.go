package stripetest

import (
	"net/http"
	"slices"
)

// A FaultKind is what goes wrong.
type FaultKind int

const (
	LoseRequest    FaultKind = iota // the connection ends before anything is done
	LoseAnswer                      // the connection ends after it was done
	Unavailable                     // 503, nothing done, nothing kept under the key
	ErrorKept                       // 500, nothing done, kept under the key
	ErrorAfterKept                  // 500 after it was done, kept under the key
	RateLimit                       // 429 with Retry-After: 7
	LockTimeout                     // 429 lock_timeout: another call is at the same object
	Garbage                         // 200 with half an answer, after it was done
	Endless                         // 200 with an answer without an end, after it was done
	Stall                           // nothing is done until the fault's Until is closed
	StallAnswer                     // it is done at once, and answered when Until is closed
	NoBalance                       // 400 balance_insufficient, kept under the key
)

// A Fault happens to the next Times calls (0 is one) of a name, "" being any; see Server.Calls for the names.
type Fault struct {
	Kind  FaultKind
	Call  string
	Times int
	Until <-chan struct{} // of Stall and StallAnswer
	// Reached is closed, if not nil, when the (first) call has come to where it stalls.
	Reached chan struct{}
}

// Inject lets a fault happen. Several happen one after the other, in the order given.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Times = max(f.Times, 1)
	s.faults = append(s.faults, &f)
}

// Open says how many faults have not happened yet.
func (s *Server) Open() (count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		count += f.Times
	}
	return count
}

// fault counts a call and takes the fault that is to happen to it.
func (s *Server) fault(call string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call]++
	for i, f := range s.faults {
		if f.Call != "" && f.Call != call {
			continue
		}
		now := *f
		f.Reached = nil
		if f.Times--; f.Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return &now
	}
	return nil
}

// before does what happens before a call; true ends it.
func (f *Fault) before(w http.ResponseWriter, q *http.Request) bool {
	switch f.Kind {
	case LoseRequest:
		lose(w)
	case Unavailable:
		write(w, apiError(http.StatusServiceUnavailable, "api_error", "", ""))
	case RateLimit:
		w.Header().Set("Retry-After", "7")
		write(w, apiError(http.StatusTooManyRequests, "invalid_request_error", "rate_limit", ""))
	case LockTimeout:
		write(w, apiError(http.StatusTooManyRequests, "invalid_request_error", "lock_timeout", ""))
	case Stall:
		return !f.wait(q)
	default:
		return false
	}
	return true
}

// around is the call itself.
func (f *Fault) around(run func() answer) answer {
	if f == nil {
		return run()
	}
	switch f.Kind {
	case ErrorKept:
		return keptError(http.StatusInternalServerError, "api_error", "", "")
	case ErrorAfterKept:
		run()
		return keptError(http.StatusInternalServerError, "api_error", "", "")
	case NoBalance:
		return keptError(http.StatusBadRequest, "invalid_request_error", "balance_insufficient", "")
	}
	return run()
}

// after does what happens to an answer; true means that it is not sent.
func (f *Fault) after(w http.ResponseWriter, q *http.Request) bool {
	switch f.Kind {
	case LoseAnswer:
		lose(w)
	case Garbage:
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte(`{"id": "pi_1", "client_secret": "pi_1_secret_garbage", "status": "succ`))
	case Endless:
		w.WriteHeader(http.StatusOK)
		space := make([]byte, 1<<16)
		for i := range space {
			space[i] = ' '
		}
		for q.Context().Err() == nil {
			if _, err := w.Write(space); err != nil {
				break
			}
		}
	case StallAnswer:
		return !f.wait(q)
	default:
		return false
	}
	return true
}

// wait is false where the caller has gone meanwhile.
func (f *Fault) wait(q *http.Request) bool {
	if f.Reached != nil {
		close(f.Reached)
	}
	select {
	case <-f.Until:
		return true
	case <-q.Context().Done():
		return false
	}
}

// lose ends the connection in the middle of an answer. Before its first byte, net/http itself would send the request once
// more, since it has an idempotency key.
func lose(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"))
		_ = conn.Close()
	}
}
