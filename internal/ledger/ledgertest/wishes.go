package ledgertest

import (
	"context"
	"fmt"
	"strings"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The verbs of the waitlist.

// wishFor is a wish for so many places, all or nothing, whatever they are.
func (w *world) wishFor(customer id.ID, quantity int) ledger.AddWish {
	wish := w.id()
	return ledger.AddWish{Wish: ledger.Wish{
		ID: wish, Event: mainEvent, Customer: customer, Quantity: quantity, Least: quantity, Order: int64(wish),
	}}
}

func (w *world) wished(customer id.ID, quantity int) *ledger.Wish {
	w.Helper()
	return w.given(w.wishFor(customer, quantity)).Wish
}

// offer offers seats to a wish, for 15 minutes.
func (w *world) offer(wish *ledger.Wish, seats ...int32) ledger.Offer {
	return ledger.Offer{Hold: w.id(), Wish: wish.ID, Seats: seats, TTL: 15 * minute}
}

func (w *world) offerPlaces(wish *ledger.Wish, area int32, quantity int) ledger.Offer {
	c := w.offer(wish)
	c.Area, c.Quantity = area, quantity
	return c
}

// returned makes seats of the main event returned.
func (w *world) returned(seats ...int32) {
	w.Helper()
	h := w.held(dave, seats...)
	w.returns(ledger.ReturnsWaitlist)
	w.given(ledger.Release{Hold: h.ID, Customer: dave})
	w.wantSeats(ledger.Returned, seats...)
}

// returnedPlaces makes places of an area returned.
func (w *world) returnedPlaces(area int32, quantity int) {
	w.Helper()
	h := w.given(w.holdPlaces(dave, area, quantity)).Hold
	w.returns(ledger.ReturnsWaitlist)
	w.given(ledger.Release{Hold: h.ID, Customer: dave})
}

func (w *world) wishNow(wish id.ID) ledger.Wish {
	w.Helper()
	r, err := w.ledger.Wish(context.Background(), wish)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) wantWish(wish id.ID, state ledger.WishState, offers int) {
	w.Helper()
	if r := w.wishNow(wish); r.State != state || r.Offers != offers {
		w.Errorf("the wish is %s after %d offers, want %s after %d", r.State, r.Offers, state, offers)
	}
}

func (w *world) wantReturned(areas ...int32) {
	w.Helper()
	r, err := w.ledger.Returned(context.Background(), mainEvent, hallSeats)
	if err != nil {
		w.Fatal(err)
	}
	w.same("returned places", r.Areas, areas)
}

// line gives the main event a waiting room.
func (w *world) line() {
	w.Helper()
	w.set(func(e *ledger.Event) {
		e.Room = ledger.RoomRule{Mode: ledger.RoomOn, Opens: start, Arrival: true, Rate: 10, ActiveMax: 10}
	})
}

// openLine opens it for the first so many who came.
func (w *world) openLine(n int64) {
	w.Helper()
	w.given(ledger.RoomCommit{Event: mainEvent})
	w.given(ledger.RoomNumbers{Event: mainEvent, Lane: ledger.LaneDefault, Upto: 10})
	w.given(ledger.RoomFreeze{Event: mainEvent, Lanes: lineOf(n), ListHash: strings.Repeat("0", 64)})
}

func lineOf(n int64) []ledger.LaneCount {
	return []ledger.LaneCount{{Lane: ledger.LaneDefault, Count: n}}
}

// aWish is a wish with its notices.
func aWish(wish id.ID) []string {
	return []string{fmt.Sprintf("wish %d", wish), fmt.Sprintf("notices %d", wish)}
}

var wishScenarios = []scenario{
	{"A23: a wish is kept with all that it says", func(w *world) {
		c := w.wishFor(alice, 3)
		c.Wish.Least, c.Wish.Categories, c.Wish.Sections = 2, []int16{1, 0}, []int16{1}
		c.Wish.Together, c.Wish.PriceMax, c.Wish.Order = true, 4000, 17
		c.Wish.State, c.Wish.Offers, c.Wish.Hold, c.Wish.Sequence = ledger.WishTaken, 2, 5, 9 // not the caller's to say
		got := w.ok(c, aWish(c.Wish.ID)...).Wish
		want := c.Wish
		want.State, want.Offers, want.Hold, want.Sequence, want.Created, want.Updated = ledger.WishWaiting, 0, 0, 1, start, start
		w.same("the wish", *got, want)
		w.reopen()
		w.same("the wish", w.wishNow(want.ID), want)
		w.same("what is told", w.kinds(want.ID), []string{ledger.NoticeWishAdded})
	}},
	{"A23: a customer waits once: a second wish changes the first, which keeps its place", func(w *world) {
		first := w.wished(alice, 2)
		w.pass(second)
		c := w.wishFor(alice, 1)
		c.Wish.Categories = []int16{1}
		got := w.ok(c, aWish(first.ID)...).Wish
		w.same("its place", []any{got.ID, got.Order, got.Created}, []any{first.ID, first.Order, first.Created})
		w.same("what it says", []any{got.Quantity, got.Least, got.Categories}, []any{1, 1, []int16{1}})
		other := w.wishFor(alice, 1)
		other.Wish.Event = otherEvent
		w.ok(other, aWish(other.Wish.ID)...)
		bobs := w.wishFor(bob, 1)
		w.ok(bobs, aWish(bobs.Wish.ID)...)
	}},
	{"A12: a repeated wish is answered as it is now", func(w *world) {
		c := w.wishFor(alice, 2)
		c.Key = keyOf("k", "quantity", "2")
		first := w.given(c).Wish
		w.given(ledger.WithdrawWish{Wish: first.ID, Customer: alice})
		again := w.wishFor(alice, 2)
		again.Key = c.Key
		w.same("the state", w.again(again).Wish.State, ledger.WishWithdrawn)
		again.Key = keyOf("k", "quantity", "3")
		w.same("the field", w.no(fault.KeyReused, again).Field, "quantity")
	}},
	{"refusals of AddWish come in their order", func(w *world) {
		c := w.wishFor(alice, 0)
		c.Wish.Event = 999
		w.no(fault.EventUnknown, c)
		c.Wish.Event = mainEvent
		w.set(func(e *ledger.Event) { e.Waitlist, e.State = false, ledger.Ended })
		w.same("the field", w.no(fault.Invalid, c).Field, "quantity")
		c.Wish.Quantity, c.Wish.Least = 1, 1
		w.no(fault.NotOnSale, c)
		w.set(func(e *ledger.Event) { e.State = ledger.Draft })
		w.no(fault.NotOnSale, c)
		w.set(func(e *ledger.Event) { e.State, e.SaleCloses = ledger.OnSale, start+1 })
		w.pass(1)
		w.no(fault.NotOnSale, c)
		w.set(func(e *ledger.Event) { e.SaleCloses = start + ledger.Time(hour) })
		w.no(fault.Conflict, c)
		w.set(func(e *ledger.Event) { e.Waitlist, e.State = true, ledger.Paused })
		w.ok(c, aWish(c.Wish.ID)...)
	}},
	{"what cannot be wished for", func(w *world) {
		for field, change := range map[string]func(*ledger.Wish){
			"quantity":   func(r *ledger.Wish) { r.Quantity = 7 }, // of at most 6 in a hold
			"least":      func(r *ledger.Wish) { r.Least = 3 },
			"categories": func(r *ledger.Wish) { r.Categories = []int16{3} }, // without a price
			"sections":   func(r *ledger.Wish) { r.Sections = []int16{1, 1} },
			"price_max":  func(r *ledger.Wish) { r.PriceMax = -1 },
			"order":      func(r *ledger.Wish) { r.Order = -1 },
			"customer":   func(r *ledger.Wish) { r.Customer = 0 },
			"id":         func(r *ledger.Wish) { r.ID = 0 },
		} {
			c := w.wishFor(alice, 2)
			change(&c.Wish)
			w.same("the field", w.no(fault.Invalid, c).Field, field)
		}
		c := w.wishFor(alice, 2)
		for i := range ledger.WishNamesMax + 1 {
			c.Wish.Sections = append(c.Wish.Sections, int16(i))
		}
		w.same("the field", w.no(fault.Invalid, c).Field, "sections")
	}},
	{"a wish is withdrawn by its customer", func(w *world) {
		wish := w.wished(alice, 1)
		w.no(fault.WishUnknown, ledger.WithdrawWish{Wish: 999, Customer: alice})
		w.no(fault.WrongCustomer, ledger.WithdrawWish{Wish: wish.ID, Customer: bob})
		c := ledger.WithdrawWish{Wish: wish.ID, Customer: alice}
		w.ok(c, aWish(wish.ID)...)
		w.again(c)
		w.wantWish(wish.ID, ledger.WishWithdrawn, 0)
		next := w.wishFor(alice, 1)
		w.ok(next, aWish(next.Wish.ID)...)
	}},
	{"A23: an offer makes a hold of returned seats, for as long as it says", func(w *world) {
		w.returned(0, 1)
		wish := w.wished(alice, 2)
		c := w.offer(wish, 1, 0)
		r := w.ok(c, things(aSeat(0, 1), aHold(c.Hold), aWish(wish.ID))...)
		w.same("the hold", []any{r.Hold.Customer, r.Hold.Offer, r.Hold.Expires, r.Hold.Session, r.Hold.Total()},
			[]any{alice, wish.ID, start + ledger.Time(15*minute), id.ID(0), int64(2 * priceA)})
		w.same("the wish", []any{r.Wish.State, r.Wish.Hold, r.Wish.Offers}, []any{ledger.WishOffered, c.Hold, 1})
		w.again(c)
		w.no(fault.Conflict, w.offer(wish, 0, 1))
		w.no(fault.Conflict, w.wishFor(alice, 1))
		w.no(fault.Conflict, ledger.WithdrawWish{Wish: wish.ID, Customer: alice})
		w.same("settled while it lasts", w.again(ledger.SettleWish{Wish: wish.ID}).Wish.State, ledger.WishOffered)
		w.pass(minute)
		w.no(fault.HoldNotExtendable, ledger.Extend{Hold: c.Hold, Customer: alice})
		o := w.pending(r.Hold)
		w.same("PAID", w.given(w.pay(o, "p")).Order.State, ledger.OrderPaid)
		w.ok(ledger.SettleWish{Wish: wish.ID}, aWish(wish.ID)...)
		w.wantWish(wish.ID, ledger.WishTaken, 1)
		w.again(ledger.SettleWish{Wish: wish.ID})
		w.same("what is told", w.kinds(wish.ID), []string{ledger.NoticeWishAdded, ledger.NoticeWishOffered, ledger.NoticeWishEnded})
		w.wished(alice, 1) // of others
	}},
	{"A23: what lapses is returned again, for the next", func(w *world) {
		w.returned(0)
		first, next := w.wished(alice, 1), w.wished(bob, 1)
		c := w.offer(first, 0)
		w.given(c)
		w.pass(15 * minute)
		w.ok(ledger.SettleWish{Wish: first.ID}, things(aSeat(0), aHold(c.Hold), aWish(first.ID))...)
		w.wantSeats(ledger.Returned, 0)
		w.wantWish(first.ID, ledger.WishWaiting, 1)
		w.no(fault.SeatsTaken, w.holdSeats(carol, 0))
		offer := w.offer(next, 0)
		w.ok(offer, things(aSeat(0), aHold(offer.Hold), aWish(next.ID))...)
		w.given(ledger.Release{Hold: offer.Hold, Customer: bob}) // they do not want it
		w.wantSeats(ledger.Returned, 0)
		w.wantWish(next.ID, ledger.WishOffered, 1)
		w.ok(w.wishFor(bob, 2), aWish(next.ID)...) // settles it first
		w.wantWish(next.ID, ledger.WishWaiting, 1)
	}},
	{"A23: a withdrawal settles an offer that is over", func(w *world) {
		w.returned(0)
		wish := w.wished(alice, 1)
		c := w.offer(wish, 0)
		w.given(c)
		w.given(ledger.Release{Hold: c.Hold, Customer: alice})
		w.ok(ledger.WithdrawWish{Wish: wish.ID, Customer: alice}, aWish(wish.ID)...)
		w.wantWish(wish.ID, ledger.WishWithdrawn, 1)
	}},
	{"A23: offers to one person are bounded, also over several wishes", func(w *world) {
		w.returned(0)
		wish := w.wished(alice, 1)
		for n := range ledger.WishOffersMax {
			if n == 1 { // withdrawing does not forget
				w.given(ledger.WithdrawWish{Wish: wish.ID, Customer: alice})
				wish = w.wished(alice, 1)
				w.wantWish(wish.ID, ledger.WishWaiting, 1)
			}
			c := w.offer(wish, 0)
			w.given(c)
			w.pass(15 * minute)
			w.given(ledger.SettleWish{Wish: wish.ID})
		}
		w.wantWish(wish.ID, ledger.WishEnded, ledger.WishOffersMax)
		w.no(fault.Conflict, w.wishFor(alice, 1))
		w.no(fault.Conflict, w.offer(wish, 0))
	}},
	{"A23: an offer takes what is returned, and nothing else", func(w *world) {
		w.paid(carol, 3)
		w.returned(0, 1)
		w.given(ledger.Block{Event: mainEvent, Seats: []int32{4}})
		wish := w.wished(alice, 1)
		w.held(bob, 2)
		for _, seat := range []int32{2, 3, 4, 5} { // held, sold, blocked, available
			w.same("the taken ones", w.no(fault.SeatsTaken, w.offer(wish, seat)).Seats, []int32{seat})
		}
		w.no(fault.PlacesTaken, w.offerPlaces(wish, 0, 1))
		w.given(ledger.ReleaseReturned{Event: mainEvent, Seats: []int32{0}})
		w.no(fault.SeatsTaken, w.offer(wish, 0))
		c := w.offer(wish, 1)
		w.ok(c, things(aSeat(1), aHold(c.Hold), aWish(wish.ID))...)
	}},
	{"A23: the seats of an expired hold are returned on the way to an offer", func(w *world) {
		h := w.held(bob, 0, 1)
		w.returns(ledger.ReturnsWaitlist)
		wish := w.wished(alice, 1)
		w.pass(holdTTL)
		c := w.offer(wish, 0)
		w.ok(c, things(aSeat(0, 1), aHold(h.ID), aHold(c.Hold), aWish(wish.ID))...)
		w.wantSeats(ledger.Returned, 1)
	}},
	{"A23: nobody is offered what they do not want", func(w *world) {
		w.returned(0, 1, 3, 4, 8, 9)
		add := w.wishFor(alice, 3)
		add.Wish.Least, add.Wish.Categories, add.Wish.Together, add.Wish.Sections = 2, []int16{0, 1}, true, []int16{0}
		wish := w.given(add).Wish
		for _, seats := range [][]int32{{0}, {0, 3}, {3, 4}, {8, 9}, {0, 0}, {0, seatNone}, {0, 1, 3, 4}} {
			w.no(fault.Invalid, w.offer(wish, seats...))
		}
		w.no(fault.Invalid, w.offerPlaces(wish, 0, 2)) // of another category
		w.no(fault.Invalid, w.offerPlaces(wish, areaNone, 2))
		w.no(fault.Invalid, w.offerPlaces(wish, 0, 0))
		for _, ttl := range []ledger.Duration{0, -1, ledger.OfferTTLMax + 1} {
			c := w.offer(wish, 0, 1)
			c.TTL = ttl
			w.same("the field", w.no(fault.Invalid, c).Field, "ttl_ms")
		}
		add.Wish.PriceMax = priceA - 1
		w.given(ledger.AddWish{Wish: add.Wish})
		w.no(fault.Invalid, w.offer(wish, 0, 1))
		add.Wish.PriceMax = priceA
		w.given(ledger.AddWish{Wish: add.Wish})
		w.given(w.offer(wish, 0, 1))
	}},
	{"A23: an offer obeys limits, quotas and the state of the sale", func(w *world) {
		w.returned(0, 1)
		wish := w.wished(alice, 2)
		w.no(fault.WishUnknown, ledger.Offer{Hold: w.id(), Wish: 999, Seats: []int32{0}, TTL: minute})
		w.set(func(e *ledger.Event) { e.State = ledger.Paused })
		w.no(fault.Paused, w.offer(wish, 0, 1))
		w.set(func(e *ledger.Event) { e.State = ledger.Cancelled })
		w.no(fault.NotOnSale, w.offer(wish, 0, 1))
		w.set(func(e *ledger.Event) {
			e.State, e.Limits = ledger.OnSale, []ledger.Limit{{Scope: ledger.PerEvent, Max: 1}}
		})
		w.no(fault.LimitReached, w.offer(wish, 0, 1))
		w.set(func(e *ledger.Event) { e.Limits, e.Quotas = nil, []ledger.Quota{{Category: 0, Section: -1, Max: 1}} })
		w.same("the field", w.no(fault.PlacesTaken, w.offer(wish, 0, 1)).Field, "quota")
		w.wantSeats(ledger.Returned, 0, 1)
		w.set(func(e *ledger.Event) { e.Quotas = nil })
		w.given(w.offer(wish, 0, 1))
	}},
	{"A23: when the sale is over, those who wait wait no more", func(w *world) {
		w.returned(0)
		waits, offered := w.wished(alice, 1), w.wished(bob, 1)
		c := w.offer(offered, 0)
		w.given(c)
		w.again(ledger.SettleWish{Wish: waits.ID})
		w.set(func(e *ledger.Event) { e.State = ledger.Ended })
		w.ok(ledger.SettleWish{Wish: waits.ID}, aWish(waits.ID)...)
		w.wantWish(waits.ID, ledger.WishEnded, 0)
		w.again(ledger.SettleWish{Wish: offered.ID}) // their hold may still be paid for
		w.pass(15 * minute)
		w.given(ledger.SettleWish{Wish: offered.ID})
		w.wantWish(offered.ID, ledger.WishEnded, 1)
		w.no(fault.WishUnknown, ledger.SettleWish{Wish: 999})
	}},
	{"A23: an offer whose payment is under way is not over with its hold", func(w *world) {
		w.returned(0)
		wish := w.wished(alice, 1)
		c := w.offer(wish, 0)
		o := w.pending(w.given(c).Hold)
		w.pass(20 * minute)
		w.ok(ledger.SettleWish{Wish: wish.ID}, things(aSeat(0), aHold(c.Hold))...) // the hold has ended, the wish has not
		w.wantWish(wish.ID, ledger.WishOffered, 1)
		w.same("rescued", w.given(w.pay(o, "p")).Order.State, ledger.OrderPaid)
		w.given(ledger.SettleWish{Wish: wish.ID})
		w.wantWish(wish.ID, ledger.WishTaken, 1)
	}},
	{"A23: an offer that was bought and given back is not made again", func(w *world) {
		w.allow()
		w.returned(0)
		wish := w.wished(alice, 1)
		o := w.pending(w.given(w.offer(wish, 0)).Hold)
		o = w.given(w.pay(o, "p")).Order
		r := w.given(w.refund(o)).Refund
		w.given(back(r))
		w.given(ledger.ReleaseSeats{Refund: r.ID})
		w.wantSeats(ledger.Returned, 0)
		w.given(ledger.SettleWish{Wish: wish.ID})
		w.wantWish(wish.ID, ledger.WishTaken, 1)
	}},
	{"A23: places of an area are returned, offered and released like seats", func(w *world) {
		w.returnedPlaces(1, 2)
		w.wantReturned(0, 2)
		w.wantArea(1, 0, 0)
		w.same("free", w.snapshot(mainEvent).Areas[1].Free(), int32(1))
		w.no(fault.PlacesTaken, w.holdPlaces(bob, 1, 2))
		wish := w.wished(alice, 2)
		c := w.offerPlaces(wish, 1, 2)
		r := w.ok(c, things(anArea(1), aHold(c.Hold), aWish(wish.ID))...)
		w.same("the hold", []any{r.Hold.Area, len(r.Hold.Lines), r.Hold.Offer}, []any{int32(1), 2, wish.ID})
		w.wantReturned(0, 0)
		w.wantArea(1, 2, 0)
		w.pass(15 * minute)
		w.given(ledger.SettleWish{Wish: wish.ID})
		w.wantReturned(0, 2)
		w.same("released", w.ok(ledger.ReleaseReturned{Event: mainEvent, Area: 1, Quantity: 5}, anArea(1)).Count, 2)
		w.wantReturned(0, 0)
		w.given(w.holdPlaces(bob, 1, 3))
	}},
	{"A23: places that are given back after they were sold are returned, too", func(w *world) {
		w.allow()
		o := w.pending(w.given(w.holdPlaces(alice, 1, 2)).Hold)
		o = w.given(w.pay(o, "p")).Order
		w.returns(ledger.ReturnsWaitlist)
		r := w.given(w.refund(o, o.Tickets[0].ID)).Refund
		w.given(back(r))
		w.ok(ledger.ReleaseSeats{Refund: r.ID}, things(anOrder(o.ID), anArea(1), aHold(o.Hold))...)
		w.wantReturned(0, 1)
		w.wantArea(1, 0, 1)
	}},
	{"A23: returned places that nobody sees to are anybody's", func(w *world) {
		w.returnedPlaces(1, 2)
		w.pass(ledger.ReturnedPatience - 1)
		w.no(fault.PlacesTaken, w.holdPlaces(bob, 1, 3))
		w.pass(1)
		c := w.holdPlaces(bob, 1, 2) // the free one first
		w.ok(c, anArea(1), aHold(c.ID))
		w.wantReturned(0, 1)
		w.given(ledger.Release{Hold: c.ID, Customer: bob})
		w.wantReturned(0, 3)
		w.given(ledger.ReleaseReturned{Event: mainEvent, Area: 1, Quantity: 1}) // somebody sees to them
		w.no(fault.PlacesTaken, w.holdPlaces(bob, 1, 2))
		w.pass(ledger.ReturnedPatience)
		w.given(w.holdPlaces(bob, 1, 3))
		w.wantReturned(0, 0)
	}},
	{"A23, A9: places of expired holds are returned on the way", func(w *world) {
		h := w.given(w.holdPlaces(bob, 1, 3)).Hold
		w.returns(ledger.ReturnsWaitlist)
		wish := w.wished(alice, 2)
		w.pass(holdTTL)
		w.no(fault.PlacesTaken, w.holdPlaces(carol, 1, 1), anArea(1), aHold(h.ID))
		w.wantReturned(0, 3)
		c := w.offerPlaces(wish, 1, 2)
		w.ok(c, things(anArea(1), aHold(c.Hold), aWish(wish.ID))...)
		w.wantReturned(0, 1)
	}},
	{"A17: a rescue takes places that are returned", func(w *world) {
		o := w.pending(w.given(w.holdPlaces(alice, 1, 3)).Hold)
		w.returns(ledger.ReturnsWaitlist)
		w.pass(20 * minute)
		w.given(ledger.Sweep{})
		w.wantReturned(0, 3)
		w.same("rescued", w.given(w.pay(o, "p")).Order.State, ledger.OrderPaid)
		w.wantReturned(0, 0)
	}},
	{"A23: what nobody wants goes back to the sale", func(w *world) {
		w.returned(0, 1)
		w.held(bob, 2)
		c := ledger.ReleaseReturned{Event: mainEvent, Seats: []int32{2, 1, 3}}
		w.same("the count", w.ok(c, "seat 1").Count, 1)
		w.same("again", w.ok(c).Count, 0)
		w.given(w.holdSeats(carol, 1))
		w.no(fault.EventUnknown, ledger.ReleaseReturned{Event: 999})
		w.no(fault.Invalid, ledger.ReleaseReturned{Event: mainEvent})
		w.no(fault.Invalid, ledger.ReleaseReturned{Event: mainEvent, Seats: []int32{0, 0}})
		w.no(fault.Invalid, ledger.ReleaseReturned{Event: mainEvent, Area: 0, Quantity: -1})
		w.no(fault.SeatUnknown, ledger.ReleaseReturned{Event: mainEvent, Seats: []int32{seatNone}})
		w.no(fault.SeatUnknown, ledger.ReleaseReturned{Event: mainEvent, Area: areaNone, Quantity: 1})
	}},
	{"A23: what becomes of freed seats is the ledger's own once the event is there", func(w *world) {
		c := ledger.SetReturns{Event: mainEvent, Returns: ledger.ReturnsWaitlist}
		w.no(fault.EventUnknown, ledger.SetReturns{Event: 999})
		w.no(fault.Invalid, ledger.SetReturns{Event: mainEvent, Returns: ledger.ReturnsWaitlist + 1})
		w.ok(c, anEvent...)
		w.again(c)
		w.set(func(e *ledger.Event) { e.Returns = ledger.ReturnsAvailable }) // not the caller's to say
		e, err := w.ledger.Event(context.Background(), mainEvent)
		if err != nil {
			w.Fatal(err)
		}
		w.same("returns", e.Returns, ledger.ReturnsWaitlist)
		w.reopen()
		w.again(c)
		c.Returns = ledger.ReturnsAvailable
		w.ok(c, anEvent...)
		w.set(func(e *ledger.Event) { e.Waitlist = false })
		w.again(c)
		c.Returns = ledger.ReturnsWaitlist
		w.no(fault.Conflict, c)
	}},
	{"A23: the line goes before the list", func(w *world) {
		list := ledger.SetReturns{Event: mainEvent, Returns: ledger.ReturnsWaitlist}
		w.line()
		w.no(fault.Conflict, list) // the room has not opened yet
		w.openLine(3)
		w.no(fault.Conflict, list) // three wait
		w.pass(minute)
		w.given(ledger.Advance{Event: mainEvent, Joined: lineOf(3), Available: 50})
		w.pass(second)
		w.given(ledger.Advance{Event: mainEvent, Joined: lineOf(3), Available: 50})
		w.no(fault.Conflict, list) // they are called, and may come
		enter := ledger.Enter{Session: w.id(), Event: mainEvent, Customer: alice, Lane: ledger.LaneDefault}
		w.given(enter)
		w.no(fault.Conflict, list)
		for range 14 { // their turns pass; the room calls nobody more
			w.pass(10 * second)
			for range 10 {
				w.pass(second)
				w.given(ledger.Advance{Event: mainEvent, Joined: lineOf(3), Available: 50})
			}
		}
		ahead := list
		ahead.Line = lineOf(4)
		w.no(fault.Conflict, ahead) // one more has joined, as the sender knows
		w.reopen()
		w.ok(list, anEvent...)
	}},
	{"A23: a room that is closed for good has no line", func(w *world) {
		w.line()
		w.openLine(3)
		w.set(func(e *ledger.Event) { e.Room.Closed = true })
		w.ok(ledger.SetReturns{Event: mainEvent, Returns: ledger.ReturnsWaitlist}, anEvent...)
	}},
	{"A23: wishes are read in the order in which they are served", func(w *world) {
		ctx := context.Background()
		third, first, second := w.wishFor(alice, 1), w.wishFor(bob, 1), w.wishFor(carol, 1)
		first.Wish.Order, second.Wish.Order = 3, 3
		for _, c := range []ledger.AddWish{third, second, first} {
			w.given(c)
		}
		var served []id.ID
		var after ledger.WishCursor
		for {
			page, err := w.ledger.Wishes(ctx, mainEvent, ledger.WishWaiting, after, 2)
			if err != nil {
				w.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, wish := range page {
				served, after = append(served, wish.ID), wish.Cursor()
			}
		}
		w.same("the order", served, []id.ID{first.Wish.ID, second.Wish.ID, third.Wish.ID})
		w.returned(0)
		c := w.offer(&first.Wish, 0)
		w.given(c)
		w.given(ledger.Release{Hold: c.Hold, Customer: bob})
		w.given(ledger.SettleWish{Wish: first.Wish.ID})
		page, err := w.ledger.Wishes(ctx, mainEvent, ledger.WishWaiting, ledger.WishCursor{}, 5)
		if err != nil || len(page) != 3 || page[0].ID != second.Wish.ID || page[2].ID != first.Wish.ID {
			w.Errorf("who lets an offer lapse goes behind those who had none: %+v, %v", page, err)
		}
		_, err = w.ledger.WishOf(ctx, otherEvent, alice)
		w.same("none", isNotFound(err), true)
		of, err := w.ledger.WishesOfCustomer(ctx, alice, 0, 5)
		w.same("alice's", []any{len(of), err}, []any{1, error(nil)})
	}},
}
