package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/id"
	"onsale/internal/inventory"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

const currency = "EUR"

// A hall is what is sold: a plan, its event and how the ledger knows them.
type hall struct {
	plan   *venue.Plan
	layout *ledger.Layout
	event  ledger.Event
	ids    *id.Generator
}

// newHall makes an arena with exactly so many seats, and an event in it that sells now. limit is how many places a
// customer may have.
func newHall(seats, limit int) (*hall, error) {
	h := &hall{plan: venue.Generate(venue.GenerateOptions{Seats: seats, NoStanding: true}), ids: id.NewGenerator(0, time.Now, 0, nil)}
	hash := h.plan.Hash()
	var err error
	if h.layout, err = catalog.LedgerLayout(h.plan, hash); err != nil {
		return nil, err
	}
	now := ledger.TimeOf(time.Now())
	day := ledger.Time(24 * time.Hour / time.Millisecond)
	h.event = ledger.Event{
		ID: h.ids.MustNext(0), Organizer: h.ids.MustNext(0), Show: h.ids.MustNext(0), Version: 1, State: ledger.OnSale, PlanHash: hash,
		SaleOpens: now - 60_000, SaleCloses: now + 30*day, HoldTTL: 600_000, PaymentWindow: 300_000, ExtendMax: 1, SeatsPerHoldMax: PartyMax,
		Currency: currency, TaxIncluded: true, Limits: []ledger.Limit{{Scope: ledger.PerEvent, Max: limit}},
	}
	for i, c := range h.plan.Categories {
		h.event.Tiers = append(h.event.Tiers, ledger.Tier{Category: int16(i), Name: c.Name, Face: 12_000 - 1_000*int64(i), Fee: 500, TaxBP: 700})
	}
	return h, nil
}

// open tells a ledger of the event.
func (h *hall) open(ctx context.Context, l ledger.Ledger) error {
	done, err := l.Apply(ctx, []ledger.Command{ledger.SetEvent{Event: h.event, Layout: h.layout}})
	if err != nil {
		return err
	}
	if f := done.Results[0].Fault; f != nil {
		return fmt.Errorf("the bench's event is refused: %w", f)
	}
	return nil
}

// A node is our own design around a ledger, as `serve` would have it.
type node struct {
	ledger    store
	batcher   *ledger.Batcher
	inventory *inventory.Service
	stop      context.CancelFunc
	stopped   chan struct{}
}

func (h *hall) node(ctx context.Context, l store) (*node, error) {
	if err := h.open(ctx, l); err != nil {
		return nil, err
	}
	n := &node{ledger: l, batcher: ledger.NewBatcher(l, ledger.BatcherOptions{}), stopped: make(chan struct{})}
	n.inventory = inventory.New(n.batcher, inventory.Options{})
	if err := n.inventory.Load(ctx, h.event.ID, h.plan, inventory.Rules{}); err != nil {
		return nil, errors.Join(err, n.batcher.Close(ctx))
	}
	background, stop := context.WithCancel(ctx)
	n.stop = stop
	go func() { defer close(n.stopped); n.inventory.Run(background) }()
	return n, nil
}

func (n *node) close(ctx context.Context) error {
	n.stop()
	<-n.stopped
	n.inventory.Close()
	return n.batcher.Close(ctx)
}
