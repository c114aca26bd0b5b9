package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"onsale/internal/httpapi"
	"onsale/internal/inventory"
	"onsale/internal/venue"
)

// A house is what the buyers know of the event: the plan, and a picture of what is free that is up to a second old, as it
// would be from a CDN (F4).
type house struct {
	client  *client
	event   httpapi.Event
	plan    *venue.Plan
	layout  *venue.Layout
	places  int // capacity of all areas
	picture atomic.Pointer[inventory.Picture]
}

const pictureEvery = time.Second

// openHouse asks the server what is sold: at the event for which attendees are named, or the other one.
func openHouse(ctx context.Context, c *client, named bool, random *rand.Rand) (*house, error) {
	h := &house{client: c}
	var list httpapi.EventList
	a, err := h.get(ctx, call{name: "events", path: "/v1/events"}, random)
	if err == nil {
		err = a.read(&list)
	}
	if err != nil {
		return nil, fmt.Errorf("the list of events: %w", err)
	}
	for i := range list.Events {
		if list.Events[i].State != "cancelled" && list.Events[i].Documents == named {
			h.event = list.Events[i]
			break
		}
	}
	if h.event.ID == "" {
		return nil, errors.New("the server has no event on sale")
	}
	if a, err = h.get(ctx, call{name: "plan", path: "/v1/plans/" + h.event.PlanHash}, random); err != nil {
		return nil, fmt.Errorf("the seating plan: %w", err)
	}
	if h.plan, err = venue.Decode(a.body); err != nil {
		return nil, fmt.Errorf("the seating plan: %w", err)
	}
	h.layout = h.plan.Layout()
	for i := range h.plan.Areas {
		h.places += h.plan.Areas[i].Capacity
	}
	return h, h.look(ctx)
}

func (h *house) get(ctx context.Context, q call, random *rand.Rand) (answer, error) {
	q.method = http.MethodGet
	a, err := h.client.do(ctx, q, random)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("status %d, %s", a.status, a.problem.Code)
	}
	return a, err
}

// look takes a new picture.
func (h *house) look(ctx context.Context) error {
	a, _, err := h.client.try(ctx, call{name: "seats", method: http.MethodGet, path: "/v1/events/" + h.event.ID + "/seats", accept: "application/octet-stream"}, nil)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return fmt.Errorf("the seats: status %d, %s", a.status, a.problem.Code)
	}
	p, err := inventory.ParseOctets(a.body)
	if err != nil {
		return err
	}
	if p.Seats != len(h.plan.Seats) || len(p.Areas) != len(h.plan.Areas) {
		return errors.New("the picture of the seats is not of the plan")
	}
	h.picture.Store(p)
	return nil
}

// watch keeps the picture fresh until ctx ends. While the server is away the old one stays, as it would at a CDN.
func (h *house) watch(ctx context.Context) {
	for sleep(ctx, pictureEvery) {
		if err := h.look(ctx); err != nil && ctx.Err() == nil {
			h.client.figures.failed("no_picture")
		}
	}
}

// byPrice are the keys of the categories, dearest first.
func (h *house) byPrice() []string {
	tiers := slices.SortedFunc(slices.Values(h.event.Tiers), func(a, b httpapi.Tier) int { return cmp.Compare(b.Total.AmountMinor, a.Total.AmountMinor) })
	keys := make([]string, len(tiers))
	for i := range tiers {
		keys[i] = tiers[i].Category
	}
	return keys
}

// middle is a category with a dearer one and cheaper ones beside it, as far as there are.
func (h *house) middle() string {
	keys := h.byPrice()
	return keys[min(1, len(keys)-1)]
}

// beside are the categories dearer than one, or those cheaper, nearest first.
func (h *house) beside(category string, dearer bool) []string {
	keys := h.byPrice()
	i := slices.Index(keys, category)
	if !dearer {
		return slices.Clone(keys[i+1:])
	}
	before := slices.Clone(keys[:max(i, 0)])
	slices.Reverse(before)
	return before
}

// A state counts what the picture shows.
type houseState struct {
	free, held, sold int // seats
	placesLeft       int
}

func (h *house) state() houseState {
	var s houseState
	p := h.picture.Load()
	for i := range int32(p.Seats) {
		switch p.Seat(i) {
		case inventory.ShownAvailable:
			s.free++
		case inventory.ShownHeld:
			s.held++
		default:
			s.sold++
		}
	}
	for _, free := range p.Areas {
		s.placesLeft += int(free)
	}
	return s
}

const looksMax = 40 // of somebody who picks by hand, before giving up

// choose picks seats side by side in the picture, nearer to the stage rather than further: free ones, or with stale ones
// that are free no more. nil where a person would give up looking.
func (h *house) choose(random *rand.Rand, count int, stale bool) []string {
	p := h.picture.Load()
	for range looksMax {
		u := random.Float64()
		first := h.layout.BestFirst[int(u*u*float64(len(h.layout.BestFirst)))]
		if seats := h.around(p, first, count, stale); seats != nil {
			return seats
		}
	}
	return nil
}

// around is a run of neighbours that begins with a seat, all free; with stale at least one of them is not.
func (h *house) around(p *inventory.Picture, first int32, count int, stale bool) []string {
	var seats []string
	taken := false
	for seat := first; seat < int32(p.Seats) && len(seats) < count; seat++ {
		if seat > first && !h.layout.Joined.Has(seat) {
			return nil
		}
		free := p.Seat(seat) == inventory.ShownAvailable
		if !free && !stale {
			return nil
		}
		taken = taken || !free
		seats = append(seats, h.plan.Seats[seat].ID)
	}
	if len(seats) < count || stale && !taken {
		return nil
	}
	return seats
}

// area picks a standing area that still has places, by the picture; "" where the plan has none.
func (h *house) area(random *rand.Rand, count int) string {
	if len(h.plan.Areas) == 0 {
		return ""
	}
	p := h.picture.Load()
	first := random.IntN(len(h.plan.Areas))
	for k := range h.plan.Areas {
		i := (first + k) % len(h.plan.Areas)
		if int(p.Areas[i]) >= count {
			return h.plan.Areas[i].ID
		}
	}
	return h.plan.Areas[first].ID
}

// taken is the share of all places that is sold or held.
func (h *house) taken() float64 {
	s := h.state()
	return 1 - float64(s.free+s.placesLeft)/float64(max(len(h.plan.Seats)+h.places, 1))
}

// full says that nothing is free.
func (h *house) full() bool {
	s := h.state()
	return s.free+s.placesLeft == 0
}
