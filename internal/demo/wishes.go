package demo

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
)

// The waitlist: who found nothing leaves a wish, and takes what comes back in their turn.

const (
	wishesPer   = 3   // of those who found nothing, one in so many leaves a wish
	wishesMost  = 200 // more say nothing new
	changedMost = 4
	wishMargin  = 5 * time.Second // after the last hold has run out
	wishEvery   = 2 * time.Second // how often they look, beside the mail
)

// wishFor leaves a wish, where somebody found nothing, and goes on beside until it comes true or there is no hope any more.
func (v *visit) wishFor(ctx context.Context) {
	if v.isNamed() || v.random.IntN(wishesPer) > 0 || v.wishes.Add(1) > wishesMost {
		return
	}
	q := v.call("wish", http.MethodPost, "/v1/events/"+v.house.event.ID+"/waitlist")
	wish := httpapi.WaitlistRequest{Quantity: v.party, Queue: v.place.queue}
	if v.random.IntN(3) == 0 {
		wish.Least = 1 // the others want all or nothing
	}
	q.key, q.body = v.key("wish"), wish
	a, err := v.client.do(ctx, q, v.random)
	switch {
	case err != nil:
		return
	case a.code() == fault.NotOnSale, a.code() == fault.Conflict:
		return
	case a.status != http.StatusCreated:
		v.odd(q, &a)
		return
	}
	v.figures.did(wishesMade)
	w := &visit{sale: v.sale, buyer: v.buyer, house: v.house, who: v.who, keys: v.keys + keysAhead, place: v.place}
	v.hoping.Go(func() { w.hope(ctx) })
}

// hope looks again and again what has become of a wish.
func (v *visit) hope(ctx context.Context) {
	for {
		select {
		case <-v.noHope:
			v.giveUpWish(ctx)
			return
		case <-ctx.Done():
			return
		case <-time.After(wishEvery):
		}
		q := v.call("wish status", http.MethodGet, "/v1/events/"+v.house.event.ID+"/waitlist")
		a, err := v.client.do(ctx, q, v.random)
		var w httpapi.Wish
		switch {
		case err != nil:
			continue
		case a.status != http.StatusOK || a.read(&w) != nil:
			v.odd(q, &a)
			return
		}
		if w.State == "offered" && w.Hold != nil && w.Hold.State == "live" {
			v.takeOffer(ctx, w.Hold)
			return
		}
		if w.State == "ended" {
			return
		}
	}
}

// takeOffer pays for what was offered, like for any hold.
func (v *visit) takeOffer(ctx context.Context, h *httpapi.Hold) {
	if h.Quantity > v.party {
		v.wrong("buyer %d wished for %d places and is offered %d in %s", v.number, v.party, h.Quantity, h.ID)
	}
	if err := v.journal.held(v.number, "offer", h); err != nil {
		v.wrong("buyer %d, an offer: %v", v.number, err)
		return
	}
	v.figures.did(offersMade)
	if v.random.IntN(5) == 0 {
		v.release(ctx, h) // it goes to the next
		v.figures.did(offersRefused)
		return
	}
	v.card, v.after, v.doublePaid, v.dropPaid = cardGood, afterNothing, false, false
	v.pay(ctx, h, tokens[cardGood], false)
	v.figures.did(offersTaken)
}

// giveUpWish takes a wish back. What is offered just then is let go.
func (v *visit) giveUpWish(ctx context.Context) {
	q := v.call("wish back", http.MethodDelete, "/v1/events/"+v.house.event.ID+"/waitlist")
	a, err := v.client.do(ctx, q, v.random)
	switch {
	case err != nil:
	case a.status == http.StatusOK, a.status == http.StatusNoContent, a.code() == fault.Conflict, a.code() == fault.WishUnknown:
	default:
		v.odd(q, &a)
	}
}

// A changedMind is somebody who would give tickets back, were they asked to.
type changedMind struct {
	visit   *visit
	booking *httpapi.Booking
}

// mayGiveBack remembers some of those who have paid, the latest.
func (v *visit) mayGiveBack(b *httpapi.Booking, random *rand.Rand) {
	if v.isNamed() || v.card != cardGood || b.Exchange != "" {
		return
	}
	later := *v.buyer
	later.random = fork(random)
	w := &visit{sale: v.sale, buyer: &later, house: v.house, who: v.who}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.changed = append(v.changed, changedMind{w, b})
	v.changed = v.changed[max(0, len(v.changed)-changedMost):]
}

// giveBack lets some give their tickets back at last, by telephone: so there is something for the waitlist, whatever else
// comes back.
func (s *sale) giveBack(ctx context.Context) {
	s.mu.Lock()
	all := s.changed
	s.mu.Unlock()
	for _, c := range all {
		c.visit.organizerRefund(ctx, c.booking)
	}
}

// closeLine ends the line for good. Again: nothing.
func (s *sale) closeLine(ctx context.Context) error {
	if s.lineClosed {
		return nil
	}
	s.lineClosed = true
	return s.organize(ctx, "close", closePath, nil, s.chance(0x636c))
}

// lastChances closes the line, so that what comes back is for those who left a wish, and ends their hope some time after.
func (s *sale) lastChances(ctx context.Context) error {
	if s.wishes.Load() > 0 {
		if err := s.closeLine(ctx); err != nil {
			return err
		}
		s.giveBack(ctx)
		sleep(ctx, s.late()+wishMargin)
	}
	close(s.noHope)
	s.hoping.Wait()
	return nil
}
