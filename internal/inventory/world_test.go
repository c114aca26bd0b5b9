package inventory

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

const (
	hotEvent id.ID = 7
	holdTTL        = ledger.Duration(10 * 60 * 1000)
	opens          = ledger.Time(1_800_000_000_000)
	closes         = opens + ledger.Time(30*24*60*60*1000)
)

// A world is a plan that is sold, its ledger (the model), and a clock that moves when told.
type world struct {
	t      testing.TB
	plan   *venue.Plan
	ledger *watched
	quiet  *slog.Logger

	mu   sync.Mutex
	time time.Time
	last id.ID
}

// Watched is a ledger that can be told to lose its answers or to hang when it is read, and that counts.
type watched struct {
	ledger.Ledger
	mu        sync.Mutex
	applied   int
	snapshots int
	lose      int         // so many commits to come are made and not known of
	hang      bool        // reads wait until nobody waits for them
	left      ledger.Time // of a hold that no Sweep ends
}

// dead waits where reads hang.
func (w *watched) dead(ctx context.Context) error {
	w.mu.Lock()
	hang := w.hang
	w.mu.Unlock()
	if !hang {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// failOver puts another ledger in this one's place.
func (w *watched) failOver(to ledger.Ledger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Ledger = to
}

func (w *watched) setHang(hang bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hang = hang
}

func (w *watched) ChangesSince(ctx context.Context, event id.ID, version int64, most int) ([]ledger.Change, bool, error) {
	if err := w.dead(ctx); err != nil {
		return nil, false, err
	}
	return w.Ledger.ChangesSince(ctx, event, version, most)
}

func (w *watched) NextExpiry(ctx context.Context) (ledger.Time, error) {
	if err := w.dead(ctx); err != nil {
		return 0, err
	}
	if w.left != 0 {
		return w.left, nil
	}
	return w.Ledger.NextExpiry(ctx)
}

func (w *watched) Apply(ctx context.Context, commands []ledger.Command) (ledger.Batch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.applied += len(commands)
	batch, err := w.Ledger.Apply(ctx, commands)
	if err == nil && w.lose > 0 {
		w.lose--
		return ledger.Batch{}, fmt.Errorf("the line went dead: %w", ledger.ErrOutcomeUnknown)
	}
	return batch, err
}

func (w *watched) Snapshot(ctx context.Context, event id.ID) (ledger.Snapshot, error) {
	w.mu.Lock()
	w.snapshots++
	w.mu.Unlock()
	if err := w.dead(ctx); err != nil {
		return ledger.Snapshot{}, err
	}
	return w.Ledger.Snapshot(ctx, event)
}

func (w *watched) figures() (applied, snapshots int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.applied, w.snapshots
}

// rowsPlan has one section for each list of rows; a row is a string of seats: '.' ordinary, 'a' accessible, 'c' companion,
// ' ' an aisle. All are of one category for each section. Rows get worse from front to back, seats from left to right.
func rowsPlan(areas []venue.Area, sections ...[]string) *venue.Plan {
	p := &venue.Plan{Format: venue.FormatVersion, Name: "rows"}
	for s, rows := range sections {
		p.Categories = append(p.Categories, venue.Category{Key: fmt.Sprint("c", s)})
		section := venue.Section{Key: fmt.Sprint("s", s), RowFirst: len(p.Rows), RowCount: len(rows), SeatFirst: len(p.Seats)}
		for k, text := range rows {
			row := venue.Row{Section: s, Label: fmt.Sprint(k), SeatFirst: len(p.Seats)}
			for x, letter := range text {
				flags := map[rune]venue.SeatFlags{'a': venue.Accessible, 'c': venue.Companion}[letter]
				if letter == ' ' {
					row.Breaks = append(row.Breaks, int32(len(p.Seats)))
					continue
				}
				p.Seats = append(p.Seats, venue.Seat{
					ID: fmt.Sprintf("%d-%d-%d", s, k, x), Row: int32(len(p.Rows)), Category: int16(s), Flags: flags,
					X: float32(x), Y: float32(1000*s + 100*k),
				})
			}
			row.SeatCount = len(p.Seats) - row.SeatFirst
			p.Rows = append(p.Rows, row)
		}
		section.SeatCount = len(p.Seats) - section.SeatFirst
		p.Sections = append(p.Sections, section)
	}
	p.Areas = areas
	return p
}

func ledgerLayout(plan *venue.Plan) *ledger.Layout {
	from := plan.Layout()
	l := &ledger.Layout{PlanHash: plan.Hash(), Quality: from.Quality, Run: make([]int32, from.SeatCount)}
	for i := range plan.Seats {
		l.Section = append(l.Section, int16(from.SectionOf(int32(i))))
		l.Category = append(l.Category, plan.Seats[i].Category)
	}
	for k, run := range from.Runs {
		for seat := run.First; seat < run.End; seat++ {
			l.Run[seat] = int32(k)
		}
	}
	for _, a := range plan.Areas {
		l.Areas = append(l.Areas, ledger.AreaLayout{Section: int16(a.Section), Category: a.Category, Capacity: a.Capacity})
	}
	return l
}

// newWorld puts the plan on sale.
func newWorld(t testing.TB, plan *venue.Plan, change ...func(*ledger.Event)) *world {
	w := &world{t: t, plan: plan, time: opens.Std(), last: 1000, quiet: slog.New(slog.NewTextHandler(io.Discard, nil))}
	w.ledger = &watched{Ledger: ledger.NewModel(func() ledger.Time { return ledger.TimeOf(w.now()) })}
	event := ledger.Event{
		ID: hotEvent, Organizer: 1, Show: 2, Version: 1, State: ledger.OnSale, PlanHash: plan.Hash(),
		SaleOpens: opens, SaleCloses: closes, HoldTTL: holdTTL, PaymentWindow: 5 * 60 * 1000, ExtendMax: 1,
		SeatsPerHoldMax: 20, Currency: "EUR", Returns: ledger.ReturnsAvailable,
	}
	for c := range plan.Categories {
		event.Tiers = append(event.Tiers, ledger.Tier{Category: int16(c), Name: "tier", Face: 1000})
	}
	for _, f := range change {
		f(&event)
	}
	w.apply(ledger.SetEvent{Event: event, Layout: ledgerLayout(plan)})
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.time
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.time = w.time.Add(d)
}

func (w *world) next() id.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	return w.last
}

// apply is another node's commit.
func (w *world) apply(c ledger.Command) ledger.Result {
	w.t.Helper()
	batch, err := w.ledger.Ledger.Apply(context.Background(), []ledger.Command{c})
	if err != nil {
		w.t.Fatal(err)
	}
	if f := batch.Results[0].Fault; f != nil {
		w.t.Fatalf("%T: %v", c, f)
	}
	return batch.Results[0]
}

func (w *world) setEvent(change func(*ledger.Event)) ledger.SetEvent {
	event, err := w.ledger.Event(context.Background(), hotEvent)
	if err != nil {
		w.t.Fatal(err)
	}
	event.Version++
	change(&event)
	return ledger.SetEvent{Event: event}
}

// A node is one program in front of the world's ledger.
type node struct {
	*Service
	batcher *ledger.Batcher
	w       *world
}

func (w *world) node(options Options, rules Rules) *node {
	w.t.Helper()
	batcher := ledger.NewBatcher(w.ledger, ledger.BatcherOptions{Logger: w.quiet})
	if options.Now == nil {
		options.Now = w.now
	}
	options.Logger = w.quiet
	n := &node{Service: New(batcher, options), batcher: batcher, w: w}
	if err := n.Load(context.Background(), hotEvent, w.plan, rules); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		n.Close()
		if err := batcher.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	return n
}

func (n *node) claim(customer id.ID, key string) Claim {
	return Claim{ID: n.w.next(), Event: hotEvent, Customer: customer, Key: ledger.Key{Value: key}}
}

func (n *node) seats(customer id.ID, seats ...int32) (Held, error) {
	return n.HoldSeats(context.Background(), n.claim(customer, ""), seats)
}

func (n *node) best(customer id.ID, quantity int) (Held, error) {
	return n.HoldBest(context.Background(), n.claim(customer, ""), Wish{Quantity: quantity, Category: -1, Section: -1})
}

func (n *node) do(c ledger.Command) ledger.Result {
	n.w.t.Helper()
	r, err := n.batcher.Do(context.Background(), c)
	if err != nil {
		n.w.t.Fatalf("%T: %v", c, err)
	}
	return r
}

func wantHeld(t testing.TB, h Held, err error, step Adjacency, seats ...int32) {
	t.Helper()
	if err != nil || h.Step != step || !slices.Equal(h.Hold.Seats(), seats) {
		t.Fatalf("held %v (%q), %v; want %v (%q)", h.Hold.Seats(), h.Step, err, seats, step)
	}
}

func wantFault(t testing.TB, err error, code fault.Code, seats ...int32) {
	t.Helper()
	if fault.CodeOf(err) != code || !slices.Equal(fault.Of(err).Seats, seats) {
		t.Fatalf("got %v, want %s %v", err, code, seats)
	}
}

// wantPicture compares a board with the ledger's own picture.
func wantPicture(t testing.TB, b *Board, s *ledger.Snapshot) {
	t.Helper()
	p := b.Picture()
	if p.Version != s.Version {
		t.Fatalf("the board is at version %d, the ledger at %d", p.Version, s.Version)
	}
	counts := [5]int{}
	for i, seat := range s.Seats {
		counts[seat.State]++
		if p.Seat(int32(i)) != shown[seat.State] || b.states[i] != seat.State || (seat.State == ledger.Held && b.until[i] != seat.Expires) {
			t.Fatalf("version %d, seat %d: shown %d, on the board %s until %d, in the ledger %s until %d",
				s.Version, i, p.Seat(int32(i)), b.states[i], b.until[i], seat.State, seat.Expires)
		}
	}
	for i, a := range s.Areas {
		if p.Areas[i] != a.Free() {
			t.Fatalf("version %d, area %d: %d free on the board, %+v in the ledger", s.Version, i, p.Areas[i], a)
		}
	}
	if counts != b.counts {
		t.Fatalf("version %d: counts %v on the board, %v in the ledger", s.Version, b.counts, counts)
	}
}
