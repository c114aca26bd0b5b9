package outbox

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Log writes each notice to a log: ids only (E10), alerts as errors.
func Log(log *slog.Logger) Handler {
	return HandlerFunc(func(ctx context.Context, n ledger.Notice) error {
		level := slog.LevelInfo
		if n.Alert {
			level = slog.LevelError
		}
		about := slog.String("order", n.Order.Text(id.Order))
		switch {
		case strings.HasPrefix(n.Kind, "event."):
			about = slog.String("event", n.Order.Text(id.Event))
		case strings.HasPrefix(n.Kind, ledger.WishNotices):
			about = slog.String("wish", n.Order.Text(id.Wish))
		}
		log.LogAttrs(ctx, level, "notice", slog.String("kind", n.Kind), about,
			slog.Int64("sequence", n.Sequence), slog.Bool("alert", n.Alert), slog.Time("at", n.At.Std()))
		return nil
	})
}

// A Count counts notices by kind, for metrics. A notice that comes twice counts twice: wrap it in Dedup.
type Count struct {
	mu     sync.Mutex
	kinds  map[string]int64
	alerts int64
}

// Handle implements Handler.
func (c *Count) Handle(_ context.Context, n ledger.Notice) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds == nil {
		c.kinds = map[string]int64{}
	}
	c.kinds[n.Kind]++
	if n.Alert {
		c.alerts++
	}
	return nil
}

// Kinds are the counts so far, by kind.
func (c *Count) Kinds() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.kinds)
}

// Alerts is how many of them were alerts.
func (c *Count) Alerts() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alerts
}

// dedup remembers, of the orders it saw last, the greatest sequence that was taken.
type dedup struct {
	next Handler

	mu     sync.Mutex
	orders map[id.ID]*seen
	ring   []id.ID // in the order of coming; the oldest is forgotten
	at     int
}

type seen struct {
	mu       sync.Mutex
	sequence int64
}

// Dedup lets a handler see each notice once, as far as it remembers: the last ordersMax orders. Notices that come at the
// same time from two relays are handled one after the other.
func Dedup(next Handler, ordersMax int) Handler {
	return &dedup{next: next, orders: make(map[id.ID]*seen), ring: make([]id.ID, max(1, ordersMax))}
}

// Handle implements Handler.
func (d *dedup) Handle(ctx context.Context, n ledger.Notice) error {
	s := d.order(n.Order)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.Sequence <= s.sequence {
		return nil
	}
	if err := d.next.Handle(ctx, n); err != nil {
		return err
	}
	s.sequence = n.Sequence
	return nil
}

func (d *dedup) order(order id.ID) *seen {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.orders[order]
	if s == nil {
		s = &seen{}
		delete(d.orders, d.ring[d.at])
		d.orders[order] = s
		d.ring[d.at] = order
		d.at = (d.at + 1) % len(d.ring)
	}
	return s
}
