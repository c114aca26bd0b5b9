package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// What a handler remembers.
const (
	eventsKnownMax     = 10_000
	organizersKnownMax = 10_000
	endpointsKnown     = 2 * time.Second // a new endpoint is told from then on at the latest
)

// Organizer says to whom an event belongs. ErrUnknown where there is no such event.
type Organizer func(ctx context.Context, event id.ID) (id.ID, error)

// A Handler is the outbox.Handler that turns notices into deliveries.
type Handler struct {
	store     Store
	organizer Organizer
	now       func() time.Time
	wake      func()

	mu         sync.Mutex
	organizers map[id.ID]id.ID // by event
	endpoints  map[id.ID]known // by organizer
}

type known struct {
	endpoints []Endpoint
	until     time.Time
}

// NewHandler makes one. wake is told of new deliveries (Dispatcher.Wake); it and now may be nil.
func NewHandler(store Store, organizer Organizer, wake func(), now func() time.Time) *Handler {
	if wake == nil {
		wake = func() {}
	}
	if now == nil {
		now = time.Now
	}
	return &Handler{store: store, organizer: organizer, now: now, wake: wake, organizers: map[id.ID]id.ID{}, endpoints: map[id.ID]known{}}
}

// A message is what is posted: as CloudEvents, as far as these have fields for it.
type message struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Subject     string          `json:"subject"`
	Time        time.Time       `json:"time"`
	Sequence    int64           `json:"sequence"` // per subject, ascending; messages may come in another order
	Data        json.RawMessage `json:"data"`     // ids and figures, never names (E10)
}

// compose is the body of a notice's message.
func compose(n ledger.Notice) (message, error) {
	subject := n.Order.Text(id.Order)
	switch {
	case n.Kind == ledger.NoticeEvent:
		subject = n.Order.Text(id.Event)
	case strings.HasPrefix(n.Kind, ledger.WishNotices):
		subject = n.Order.Text(id.Wish)
	}
	m := message{
		SpecVersion: "1.0", ID: n.Order.Text("msg") + "_" + strconv.FormatInt(n.Sequence, 10), Source: "onsale", Type: n.Kind,
		Subject: subject, Time: n.At.Std(), Sequence: n.Sequence, Data: json.RawMessage(n.Body),
	}
	if !json.Valid(n.Body) {
		return m, errors.New("the body of a notice is not JSON")
	}
	return m, nil
}

// Handle implements outbox.Handler.
func (h *Handler) Handle(ctx context.Context, n ledger.Notice) error {
	var b struct {
		Event string `json:"event_id"`
	}
	if err := json.Unmarshal(n.Body, &b); err != nil {
		return fmt.Errorf("the body of a notice: %w", err)
	}
	event, err := id.Parse(id.Event, b.Event)
	if err != nil {
		return fmt.Errorf("event_id of a notice: %w", err)
	}
	organizer, err := h.organizerOf(ctx, event)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	endpoints, err := h.endpointsOf(ctx, organizer)
	if err != nil {
		return err
	}
	var all []Delivery
	for i := range endpoints {
		e := &endpoints[i]
		if !e.On || !e.wants(n.Kind) {
			continue
		}
		m, err := compose(n)
		if err != nil {
			return err
		}
		body, err := json.Marshal(m)
		if err != nil {
			return err
		}
		all = append(all, Delivery{Endpoint: e.ID, Message: m.ID, Kind: n.Kind, Body: string(body), State: Due, Created: n.At.Std()})
	}
	if len(all) == 0 {
		return nil
	}
	if err := h.store.Put(ctx, all, QueueMax); err != nil {
		return err
	}
	h.wake()
	return nil
}

// organizerOf remembers whose an event is: that never changes.
func (h *Handler) organizerOf(ctx context.Context, event id.ID) (id.ID, error) {
	h.mu.Lock()
	organizer, ok := h.organizers[event]
	h.mu.Unlock()
	if ok {
		return organizer, nil
	}
	organizer, err := h.organizer(ctx, event)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.organizers) >= eventsKnownMax {
		clear(h.organizers)
	}
	h.organizers[event] = organizer
	return organizer, nil
}

func (h *Handler) endpointsOf(ctx context.Context, organizer id.ID) ([]Endpoint, error) {
	now := h.now()
	h.mu.Lock()
	k, ok := h.endpoints[organizer]
	h.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.endpoints, nil
	}
	all, err := h.store.Endpoints(ctx, organizer)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.endpoints) >= organizersKnownMax {
		clear(h.endpoints)
	}
	h.endpoints[organizer] = known{all, now.Add(endpointsKnown)}
	return all, nil
}
