package guard

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"onsale/internal/id"
)

// Bounds of evidence.
const (
	EvidenceBytesMax  = 1 << 10             // of one, as JSON
	EvidenceKeep      = 30 * 24 * time.Hour // after the event
	EvidenceWaitMax   = 8_192               // orders whose evidence waits to be written; more is let go of
	evidenceBatch     = 256
	evidenceVersion   = 1
	evidencePruneStep = 1_000
)

// Evidence is what was seen of who made an order: for people of the organizer to look at. Nothing is ever cancelled for it.
type Evidence struct {
	Version int     `json:"version"`
	Score   int     `json:"score"`
	Step    string  `json:"step"` // what was asked for because of it
	Signals Signals `json:"signals"`
	// Address and Device are keyed hashes, the same for equal ones of one event and no others: which orders came from one
	// place can be seen, but not which place that is.
	Address string `json:"address,omitempty"`
	Device  string `json:"device,omitempty"`
}

// Evidence is that of a visit with these signals.
func (g *Gate) evidence(v Visit, s Signals) Evidence {
	e := Evidence{Version: evidenceVersion, Score: s.Score(), Step: s.Step().String(), Signals: s}
	event := binary.BigEndian.AppendUint64(nil, uint64(v.Event))
	key := g.secrets.Of("evidence")[0]
	if v.Address.IsValid() {
		k := addressKey(v.Address)
		e.Address = hex.EncodeToString(mac(key, []byte("address"), event, k[:])[:8])
	}
	if !v.Mark.Device.IsZero() {
		e.Device = hex.EncodeToString(mac(key, []byte("device"), event, v.Mark.Device[:])[:8])
	}
	return e
}

// Text is the evidence as it is stored.
func (e Evidence) Text() (string, error) {
	b, err := json.Marshal(e)
	if err == nil && len(b) > EvidenceBytesMax {
		err = fmt.Errorf("guard: evidence of %d bytes", len(b))
	}
	return string(b), err
}

// ParseEvidence reads what Text wrote, also of an earlier program; of a later one, what it knows.
func ParseEvidence(text string) (e Evidence, err error) {
	if len(text) > EvidenceBytesMax {
		return e, fmt.Errorf("guard: evidence of %d bytes", len(text))
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&e); err != nil {
		return Evidence{}, fmt.Errorf("guard: evidence: %w", err)
	}
	if e.Version < 1 || e.Score < 0 || e.Score > ScoreMax || math.IsNaN(e.Signals.Heat) {
		return Evidence{}, errors.New("guard: evidence out of its bounds")
	}
	return e, nil
}

// OrderEvidence is the evidence of an order.
type OrderEvidence struct {
	Order    id.ID
	Event    id.ID
	At       time.Time // whole milliseconds, UTC
	Evidence Evidence
}

// ErrNoEvidence says that none is kept of an order.
var ErrNoEvidence = errors.New("guard: no evidence is kept of this order")

// An EvidenceStore keeps evidence of orders, in the control database.
type EvidenceStore interface {
	// PutEvidence keeps it; an order that has some keeps the one with the greater score.
	PutEvidence(ctx context.Context, all []OrderEvidence) error
	// Evidence is an order's. ErrNoEvidence.
	Evidence(ctx context.Context, order id.ID) (OrderEvidence, error)
	// EvidenceOf are an event's with at least this score, by order, those after the given, at most max.
	EvidenceOf(ctx context.Context, event id.ID, score int, after id.ID, max int) ([]OrderEvidence, error)
	// PruneEvidence deletes that of events that started before, and of events that are no more, at most max rows, and says how
	// many: call again while it is max.
	PruneEvidence(ctx context.Context, startedBefore time.Time, max int) (int, error)
}

// A Recorder writes evidence beside the sale: no order waits for it, and what cannot be written in time is let go of and
// counted.
type Recorder struct {
	store  EvidenceStore
	failed func(lost int, err error)

	mu      sync.Mutex
	waiting []OrderEvidence
	wake    chan struct{}
}

// NewRecorder writes into a store. failed is told of evidence that was let go of; may be nil.
func NewRecorder(store EvidenceStore, failed func(lost int, err error)) *Recorder {
	if failed == nil {
		failed = func(int, error) {}
	}
	return &Recorder{store: store, failed: failed, wake: make(chan struct{}, 1)}
}

// Record keeps an order's evidence, soon. It never waits.
func (r *Recorder) Record(e OrderEvidence) {
	r.mu.Lock()
	full := len(r.waiting) >= EvidenceWaitMax
	if !full {
		r.waiting = append(r.waiting, e)
	}
	r.mu.Unlock()
	if full {
		r.failed(1, nil)
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends, and then what still waits.
func (r *Recorder) Run(ctx context.Context) {
	for {
		select {
		case <-r.wake:
			r.write(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			r.write(last)
			return
		}
	}
}

func (r *Recorder) write(ctx context.Context) {
	for {
		r.mu.Lock()
		n := min(len(r.waiting), evidenceBatch)
		batch := r.waiting[:n:n]
		r.waiting = r.waiting[n:]
		if len(r.waiting) == 0 {
			r.waiting = nil
		}
		r.mu.Unlock()
		if n == 0 {
			return
		}
		if err := r.store.PutEvidence(ctx, batch); err != nil {
			r.failed(n, err)
		}
	}
}

// Prune deletes what is older than EvidenceKeep after its event.
func (r *Recorder) Prune(ctx context.Context, now time.Time) error {
	for {
		n, err := r.store.PruneEvidence(ctx, now.Add(-EvidenceKeep), evidencePruneStep)
		if err != nil || n < evidencePruneStep {
			return err
		}
	}
}
