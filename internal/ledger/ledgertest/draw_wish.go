package ledgertest

import (
	"context"
	"fmt"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// Drawing the waitlist's commands, and looking at what they did.

// fill claims most of the main event, so that something can come back.
func (h *history) fill() {
	h.run(5, func(i int) ledger.Command {
		c := ledger.HoldSeats{ID: h.id(), Event: mainEvent, Customer: h.drawCustomer(), Seats: []int32{int32(2 * i), int32(2*i + 1)}}
		if i == 4 {
			return ledger.HoldPlaces{ID: h.id(), Event: mainEvent, Customer: h.drawCustomer(), Area: int32(h.among(2, "area")), Quantity: 2 + h.among(2, "places")}
		}
		return c
	})
	h.run(4, func(int) ledger.Command { return h.drawAddWish() })
}

func (h *history) drawAddWish() ledger.Command {
	w := ledger.Wish{ID: h.id(), Event: mainEvent, Customer: h.drawCustomer(), Quantity: 1 + h.among(3, "quantity"), Order: int64(h.among(5, "order"))}
	if h.oneIn(20, "another event") {
		w.Event = oneOf(h, "event", otherEvent, id.ID(999))
	}
	w.Least = 1 + h.among(w.Quantity, "least")
	w.Together = h.oneIn(2, "together")
	if h.oneIn(3, "of a category") {
		w.Categories = oneOf(h, "categories", []int16{0}, []int16{1}, []int16{2, 0}, []int16{3}, []int16{1, 1})
	}
	if h.oneIn(4, "in a section") {
		w.Sections = oneOf(h, "sections", []int16{0}, []int16{1}, []int16{2, 1}, []int16{-1})
	}
	if h.oneIn(4, "with a price") {
		w.PriceMax = oneOf[int64](h, "price max", 3000, 2999, 9000)
	}
	if h.oneIn(25, "what cannot be") {
		w.Least = oneOf(h, "least", 0, w.Quantity+1)
	}
	return ledger.AddWish{Wish: w, Key: h.drawKey("event", fmt.Sprint(w.Event), "quantity", fmt.Sprint(w.Quantity))}
}

func (h *history) wishesIn(states ...ledger.WishState) (fitting []id.ID) {
	for _, wish := range h.wishes {
		if w, err := h.model.Wish(context.Background(), wish); err == nil && slices.Contains(states, w.State) {
			fitting = append(fitting, wish)
		}
	}
	return fitting
}

func (h *history) drawWithdrawWish() ledger.Command {
	c := ledger.WithdrawWish{Wish: h.drawFrom(h.wishes, h.wishesIn(ledger.WishWaiting, ledger.WishOffered), "wish"), Customer: h.drawCustomer()}
	if w, err := h.model.Wish(context.Background(), c.Wish); err == nil && !h.oneIn(8, "another customer") {
		c.Customer = w.Customer
	}
	return c
}

func (h *history) drawSettleWish() ledger.Command {
	return ledger.SettleWish{Wish: h.drawFrom(h.wishes, h.wishesIn(ledger.WishOffered), "wish")}
}

// drawOffer offers mostly what is returned, as many as are wished for.
func (h *history) drawOffer() ledger.Command {
	ctx := context.Background()
	waiting := h.wishesIn(ledger.WishWaiting)
	if len(waiting) == 0 && !h.oneIn(6, "nobody waits") {
		return h.drawAddWish()
	}
	c := ledger.Offer{Hold: h.id(), Wish: h.drawFrom(h.wishes, waiting, "wish"), TTL: oneOf(h, "ttl", 20*second, 60*second, 60*second)}
	back, err := h.model.Returned(ctx, mainEvent, hallSeats)
	if err != nil {
		h.fail("the model: %v", err)
	}
	n := 1
	w, err := h.model.Wish(ctx, c.Wish)
	if err == nil {
		n = w.Least + h.among(w.Quantity-w.Least+1, "more than the least")
		back.Seats = slices.DeleteFunc(back.Seats, func(seat int32) bool {
			return len(w.Categories) > 0 && !slices.Contains(w.Categories, hallLayout().Category[seat]) && !h.oneIn(10, "any category")
		})
	}
	places := slices.IndexFunc(back.Areas, func(k int32) bool { return int(k) >= n })
	switch {
	case places >= 0 && h.oneIn(3, "places"):
		c.Area, c.Quantity = int32(places), n
	case len(back.Seats) > 0:
		at := h.among(max(1, len(back.Seats)-n+1), "first seat")
		c.Seats = back.Seats[at:min(len(back.Seats), at+n)]
	case len(h.payable()) > 0 && !h.oneIn(4, "nothing is back"):
		return h.drawRelease()
	default:
		c.Seats = h.drawSeats(2)
	}
	if h.oneIn(25, "what cannot be") {
		c.TTL, c.Seats = oneOf[ledger.Duration](h, "ttl", 0, ledger.OfferTTLMax+1, 60*second), []int32{seatNone}
	}
	return c
}

func (h *history) drawReleaseReturned() ledger.Command {
	c := ledger.ReleaseReturned{Event: h.drawEvent()}
	back, err := h.model.Returned(context.Background(), mainEvent, hallSeats)
	if err != nil {
		h.fail("the model: %v", err)
	}
	if n := len(back.Seats); n > 0 && !h.oneIn(5, "any seat") {
		c.Seats = back.Seats[:1+h.among(n, "how many")]
	} else if h.oneIn(2, "any seat") {
		c.Seats = h.drawSeats(3)
	}
	if len(c.Seats) == 0 || h.oneIn(2, "places too") {
		c.Area, c.Quantity = oneOf[int32](h, "area", 0, 1, 0, 1, areaNone), h.among(4, "places")
	}
	return c
}

func (h *history) drawSetReturns() ledger.Command {
	return ledger.SetReturns{
		Event: h.drawEvent(), Returns: oneOf(h, "returns", ledger.ReturnsWaitlist, ledger.ReturnsWaitlist, ledger.ReturnsWaitlist, ledger.ReturnsAvailable),
	}
}

// A listSeen is what the waitlist's readers say.
type listSeen struct {
	Returned map[id.ID]ledger.ReturnedPlaces
	Waiting  []ledger.Wish
	Page     []ledger.Wish
	Of       map[id.ID][]ledger.Wish
	Newest   map[id.ID]ledger.Wish
}

func (h *history) lookAtList(l ledger.Ledger) (s listSeen, err error) {
	ctx := context.Background()
	s = listSeen{Returned: map[id.ID]ledger.ReturnedPlaces{}, Of: map[id.ID][]ledger.Wish{}, Newest: map[id.ID]ledger.Wish{}}
	for _, event := range []id.ID{mainEvent, otherEvent} {
		if s.Returned[event], err = l.Returned(ctx, event, 5); err != nil {
			return s, err
		}
	}
	if s.Waiting, err = l.Wishes(ctx, mainEvent, ledger.WishWaiting, ledger.WishCursor{}, 3); err != nil {
		return s, err
	}
	if n := len(s.Waiting); n > 0 {
		if s.Page, err = l.Wishes(ctx, mainEvent, ledger.WishWaiting, s.Waiting[n-1].Cursor(), 3); err != nil {
			return s, err
		}
	}
	for _, customer := range []id.ID{alice, bob, carol, dave} {
		if s.Of[customer], err = l.WishesOfCustomer(ctx, customer, 0, 3); err != nil {
			return s, err
		}
		newest, err := l.WishOf(ctx, mainEvent, customer)
		if err != nil && !isNotFound(err) {
			return s, err
		}
		s.Newest[customer] = newest
	}
	return s, nil
}
