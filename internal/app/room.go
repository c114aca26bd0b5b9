package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"onsale/internal/booking"
	"onsale/internal/catalog"
	"onsale/internal/guard"
	"onsale/internal/guard/person"
	"onsale/internal/guard/picture"
	"onsale/internal/id"
	"onsale/internal/keys"
	"onsale/internal/ledger"
	"onsale/internal/presale"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/beacon"
	"onsale/internal/waitingroom/joinlog"
)

const (
	drawPurpose   = keys.Purpose("draw") // under which a draw's secret is sealed; no key of the ring has it
	drawBytes     = 32
	defaultIssuer = "onsale"
	pruneGate     = 10 * time.Minute
	loadOfGate    = time.Second // so often proofs of work follow the load
)

// openRooms opens what people wait in: the store of numbers, the log of joins, the rooms, the gate in front of them, and the
// list of wishes behind them.
func (a *App) openRooms(ctx context.Context) error {
	for _, purpose := range []keys.Purpose{keys.Queue, keys.Admission, keys.Guard} {
		if _, err := a.Keys.EnsureActive(ctx, purpose); err != nil {
			return fmt.Errorf("key for %s: %w", purpose, err)
		}
	}
	pepper, err := a.Keys.EnsureActive(ctx, keys.Pepper)
	if err != nil {
		return err
	}
	a.Presale = presale.New(a.Control.Presale(), a.derived(pepper, "presale codes and members"), nil)
	if err := a.openJoins(); err != nil {
		return err
	}
	shared, err := a.common()
	if err != nil {
		return err
	}
	store, err := shared.Store()
	if err != nil {
		return err
	}
	a.onClose(func(context.Context) error { return store.Close() })
	if a.beacon, err = beacon.New(a.Settings.Beacons, nil); err != nil {
		return err
	}
	a.onClose(func(context.Context) error { a.beacon.Close(); return nil })
	a.Rooms, err = waitingroom.New(waitingroom.Options{
		Store: store, Log: a.joins, Ledger: a.Batcher, Reader: a.Store, Keys: a.Keys,
		ListKey: a.derived(pepper, "entries of lists of joins"), Draw: a.drawSecret, Beacon: a.beacon, Left: a.leftOf,
		NewID:  func(event id.ID) (id.ID, error) { return a.NewID(event.Shard()) },
		Issuer: a.issuer(), Node: a.node.Number, Logger: a.Log,
		JoinQueueMax: a.Settings.JoinQueueMax, SubscribersMax: a.Settings.SubscribersMax,
	})
	if err != nil {
		return err
	}
	a.onClose(func(context.Context) error { a.Rooms.Close(); return nil })
	if err := a.openGate(ctx); err != nil {
		return err
	}
	a.Waitlist = booking.NewWaitlist(booking.WaitlistOptions{Shard: shard{a}, IDs: ids(a.NewID), Number: shardNumber, Line: a.lineOf, Holder: holder(), Logger: a.Log,
		OfferTTLOf: func(ctx context.Context, event id.ID) ledger.Duration {
			e, err := a.Catalog.Event(ctx, event) // from memory
			if err != nil {
				return 0
			}
			return e.OfferTTL
		},
	})
	return nil
}

// openJoins opens the log of joins: files beside an embedded ledger, else a table that all nodes see.
func (a *App) openJoins() error {
	if a.Settings.Ledger == Postgres {
		a.joins = a.Control.Joins()
		return nil
	}
	log, err := joinlog.Open(a.path(JoinsFolder))
	if err != nil {
		return err
	}
	a.joins = log
	a.onClose(func(context.Context) error { return log.Close() })
	return nil
}

// issuer is who signs admission tokens, as an edge that checks them knows us.
func (a *App) issuer() string {
	if a.Settings.PublicURL != "" {
		return a.Settings.PublicURL
	}
	return defaultIssuer
}

// drawSecret is the secret of an event's draw, made when it is first asked for. Who has it before the draw could know the
// order: it lies sealed, and each time that it is opened is in the event's log, before it is (E3).
func (a *App) drawSecret(ctx context.Context, event id.ID) (secret [drawBytes]byte, err error) {
	master, err := a.master()
	if err != nil {
		return secret, err
	}
	name := event.Text(id.Event)
	ctx = catalog.WithActor(ctx, catalog.Actor{Action: "draw.secret_read"})
	if err := a.Catalog.Note(ctx, event, catalog.NewChange("node", nil, a.node.Number)); err != nil {
		return secret, err
	}
	sealed, err := a.Control.DrawSecret(ctx, event)
	if err != nil {
		return secret, err
	}
	if sealed == nil {
		rand.Read(secret[:]) // never fails
		fresh, err := master.Seal(rand.Reader, name, drawPurpose, secret[:])
		if err != nil {
			return secret, err
		}
		if sealed, err = a.Control.PutDrawSecretOnce(ctx, event, fresh); err != nil { // another node's may have been first
			return secret, err
		}
	}
	opened, err := master.Open(name, drawPurpose, sealed)
	if err != nil {
		return secret, err
	}
	if len(opened) != drawBytes {
		return secret, fmt.Errorf("the secret of the draw of %s has %d bytes", name, len(opened))
	}
	copy(secret[:], opened)
	return secret, nil
}

// leftOf is what is left of an event, as far as this node's board has heard, for the rooms.
func (a *App) leftOf(event id.ID) (left waitingroom.Left, ok bool) {
	if a.Inventory == nil {
		return left, false
	}
	b := a.Inventory.Board(event)
	if b == nil {
		return left, false
	}
	ctx := context.Background()
	e, err := a.Catalog.Event(ctx, event) // from memory
	if err != nil {
		return left, false
	}
	plan, err := a.Catalog.Plan(ctx, e.PlanHash)
	if err != nil {
		return left, false
	}
	areas := make([]int16, len(plan.Areas))
	for i := range plan.Areas {
		areas[i] = plan.Areas[i].Category
	}
	t, ok := b.Tally(areas, time.Now())
	if !ok {
		return left, false
	}
	left = waitingroom.Left{Available: t.Available, Held: t.Held, Gone: t.Gone}
	for _, c := range t.Categories {
		key := plan.Categories[c.Category].Key
		one := waitingroom.CategoryLeft{Category: int16(c.Category), Key: key, Available: c.Available, Capacity: c.Capacity}
		for _, tier := range e.Tiers {
			if tier.Category == key {
				row := ledger.Event{TaxIncluded: e.TaxIncluded, Tiers: []ledger.Tier{{Face: tier.Face, Fee: tier.Fee, TaxBP: tier.TaxBP}}}
				one.Name, one.TotalMinor = tier.Name, row.Price(0).Total
			}
		}
		left.Categories = append(left.Categories, one)
	}
	return left, true
}

// lineOf is how many numbers each lane of an event's room has given out: while somebody of them waits, what comes back is
// theirs (A23). None where the event has no room.
func (a *App) lineOf(ctx context.Context, event id.ID) ([]ledger.LaneCount, error) {
	e, err := a.Catalog.Event(ctx, event)
	if err != nil || !e.Room.Active() {
		return nil, err
	}
	view, err := a.Rooms.View(ctx, event)
	if err != nil {
		return nil, err
	}
	counts := make([]ledger.LaneCount, 0, len(view.Room.Lanes))
	for i, lane := range view.Room.Lanes {
		n := lane.Joined
		for _, c := range view.Joined {
			if c.Lane == i {
				n = max(n, c.Count)
			}
		}
		counts = append(counts, ledger.LaneCount{Lane: lane.Key, Count: n})
	}
	return counts, nil
}

// openGate opens what stands in front of the rooms.
func (a *App) openGate(ctx context.Context) error {
	a.blocks = guard.NewBlocks(a.Control.Blocks(), func() (id.ID, error) { return a.NewID(0) }, time.Now)
	if err := a.blocks.Refresh(ctx); err != nil {
		return err
	}
	persons, err := a.persons()
	if err != nil {
		return err
	}
	a.evidence = guard.NewRecorder(a.Control.Evidence(), func(lost int, err error) {
		a.Log.Warn("evidence of orders could not be kept", "lost", lost, "error", err)
	})
	difficulty := a.Settings.ProofDifficulty
	if a.Settings.Demo || a.Settings.Throwaway { // simulators solve it, too (F4)
		difficulty = 1
	}
	a.Gate = guard.NewGate(guard.GateOptions{
		Secrets: a.gateSecrets, Blocks: a.blocks, Persons: persons, Difficulty: difficulty, Now: time.Now(),
	})
	return nil
}

// gateSecrets are the secrets of the gate, the newest first.
func (a *App) gateSecrets() [][]byte {
	var all [][]byte
	for _, key := range a.Keys.Checking(keys.Guard) {
		all = append(all, key.Secret())
	}
	return all
}

// PersonSettings say who tells people from machines.
type PersonSettings struct {
	Check   string // "picture", "turnstile", "hcaptcha" or "none"; "": none
	SiteKey string
	Secret  string // secret
}

// persons is who tells people from machines, nil where nobody is asked to be one.
func (a *App) persons() (*guard.Persons, error) {
	s := a.Settings.Person
	if s.Check == "" || s.Check == "none" {
		return nil, nil
	}
	a.pictures = picture.New(a.gateSecrets, time.Now())
	p := &guard.Persons{Fallback: a.pictures, Failed: func(err error) {
		a.Log.Warn("the provider of person checks is away: pictures are shown meanwhile", "error", err)
	}}
	o := person.Options{SiteKey: s.SiteKey, Secret: s.Secret}
	if u, err := url.Parse(a.Settings.PublicURL); err == nil {
		o.Hostnames = []string{u.Hostname()}
	}
	var err error
	switch s.Check {
	case "turnstile":
		p.First, err = person.Turnstile(o)
	case "hcaptcha":
		p.First, err = person.HCaptcha(o)
	}
	return p, err
}

// waiting runs the rooms and what belongs to them until ctx ends.
func (a *App) waiting(ctx context.Context, work *sync.WaitGroup) {
	work.Go(func() {
		if err := a.Rooms.Run(ctx); err != nil && ctx.Err() == nil {
			a.Log.Error("the waiting rooms have stopped", "error", err)
		}
	})
	work.Go(func() { a.Waitlist.Run(ctx) })
	work.Go(func() {
		a.blocks.Run(ctx, func(err error) {
			a.Log.Warn("the block lists could not be read; they are as they were", "error", err)
		})
	})
	work.Go(func() { a.evidence.Run(ctx) })
	a.every(ctx, work, pruneGate, "forgetting old blocks and evidence", func(ctx context.Context) error {
		return errors.Join(a.blocks.Prune(ctx), a.evidence.Prune(ctx, time.Now()))
	})
	a.every(ctx, work, loadOfGate, "telling the gate its load", func(context.Context) error {
		a.Gate.SetLoad(float64(a.Rooms.Stats().JoinsWaiting) / float64(cmp.Or(a.Settings.JoinQueueMax, waitingroom.JoinQueueMax)))
		return nil
	})
}

const (
	roomsPatience = 10 * time.Second // for the rooms to be restored before the first request is served
	roomsLook     = 20 * time.Millisecond
)

// roomsReady waits until the rooms that people may join are restored (B4). Where the store is away for longer the server
// starts all the same: who waits keeps their place, and joins are refused as busy until it is back (DESIGN 9).
func (a *App) roomsReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roomsPatience)
	defer cancel()
	look := time.NewTicker(roomsLook)
	defer look.Stop()
	for !a.Rooms.Ready() {
		select {
		case <-ctx.Done():
			if context.Cause(ctx) == context.DeadlineExceeded {
				a.Log.Warn("not all waiting rooms are restored yet: nobody can join those")
				return nil
			}
			return ctx.Err()
		case <-look.C:
		}
	}
	return nil
}
