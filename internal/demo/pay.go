package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
)

const pollEvery = time.Second

// pay pays for a hold with a card. The first payment may be clicked twice or be hung up on.
func (v *visit) pay(ctx context.Context, h *httpapi.Hold, card string, first bool) {
	if first {
		v.sameDocument(ctx, h)
	}
	q := call{
		name: "booking", method: http.MethodPost, path: "/v1/bookings", who: v.who, key: v.key("pay"), drop: first && v.dropPaid,
		body: httpapi.BookingRequest{Hold: h.ID, Token: card, AllowOther: v.otherGood, Attendees: v.attendees(h)},
	}
	a, err := v.twice(ctx, q, first && v.doublePaid, doubleBookings, sameBooking)
	if errors.Is(err, errNoAnswer) {
		return // it may be paid or not: the ledger and the provider must agree, and the audit compares them
	}
	if err != nil {
		return
	}
	if first && (v.card == cardLostAnswer || v.card == cardServerError) {
		v.figures.did(providerSilent)
	}
	switch {
	case a.status == http.StatusCreated:
		v.afterwards(ctx, v.booked(&a, h), v.random)
	case a.status == http.StatusAccepted:
		v.figures.did(pendings)
		if b := v.booked(&a, h); b != nil {
			v.follow(ctx, b.ID, h)
		}
	case a.code() == fault.PaymentDeclined:
		v.figures.did(declined)
		if err := v.journal.refused(v.number, a.problem.Booking, h); err != nil {
			v.wrong("buyer %d: a declined booking: %v", v.number, err)
		}
		if first && v.retry {
			v.figures.did(retried)
			v.think(ctx)
			v.pay(ctx, h, tokens[cardGood], false)
		}
	case a.code() == fault.HoldExpired: // the server was away for too long
	case a.code() == fault.Conflict && a.problem.Booking != "":
		v.ended(ctx, a.problem.Booking, h, first)
	case a.code() == fault.PaymentInProgress && a.problem.Booking != "":
		v.follow(ctx, a.problem.Booking, h)
	default:
		v.odd(q, &a)
	}
}

// sameBooking compares two answers under one key: they must speak of the same booking, and not one of them of a success
// and the other of a refusal. One may be earlier than the other (PENDING, then PAID).
func sameBooking(a, b *answer) string {
	x, y := bookingOf(a), bookingOf(b)
	switch {
	case x == "" || y == "":
		return ""
	case x != y:
		return x + " and " + y
	case a.status == http.StatusCreated && b.status == http.StatusPaymentRequired,
		b.status == http.StatusCreated && a.status == http.StatusPaymentRequired:
		return x + " is paid and declined"
	}
	return ""
}

func bookingOf(a *answer) string {
	if a.status >= http.StatusBadRequest {
		return a.problem.Booking
	}
	var b httpapi.Booking
	if a.read(&b) != nil {
		return "an answer that cannot be read"
	}
	return b.ID
}

// booked takes note of a booking that was shown, and looks whether it is what was paid for.
func (v *visit) booked(a *answer, h *httpapi.Hold) *httpapi.Booking {
	b := &httpapi.Booking{}
	err := a.read(b)
	if err == nil {
		err = v.journal.booked(v.number, b)
	}
	if err != nil {
		v.wrong("buyer %d: a booking: %v", v.number, err)
		return nil
	}
	switch {
	case b.Price.AmountMinor+b.Credit != h.Price.AmountMinor:
		v.wrong("%s costs %d, its hold %s %d", b.ID, b.Price.AmountMinor, h.ID, h.Price.AmountMinor)
	case b.Hold != h.ID && !b.Rescued:
		v.wrong("%s is of %s, and was made for %s", b.ID, b.Hold, h.ID)
	case b.State == "PAID" && len(b.Tickets) != h.Quantity:
		v.wrong("%s is paid and has %d tickets for %d places", b.ID, len(b.Tickets), h.Quantity)
	}
	if b.State == "PAID" {
		v.figures.did(bookings)
		if h.Area != "" {
			v.figures.placesSold.Add(int64(h.Quantity))
		}
		if v.showsQR {
			v.waiting.Go(func() { v.show(b.Tickets[0].ID) })
		}
	}
	return b
}

// ended looks at a booking that came to nothing otherwise than by a declined card: the provider took another amount, or an
// attempt that a kill had cut off was given up. In the second case the buyer, whose hold goes on, books again.
func (v *visit) ended(ctx context.Context, booking string, h *httpapi.Hold, first bool) {
	b, err := v.status(ctx, booking, h, v.random)
	if err == nil && b.State == "EXPIRED" && first {
		v.pay(ctx, h, tokens[cardGood], false)
	}
}

// status asks what has become of a booking, and writes down what is said where that is final.
func (v *visit) status(ctx context.Context, booking string, h *httpapi.Hold, random *rand.Rand) (httpapi.Booking, error) {
	q := call{name: "booking status", method: http.MethodGet, path: "/v1/bookings/" + booking, who: v.who}
	var b httpapi.Booking
	a, err := v.client.do(ctx, q, random)
	if err != nil {
		return b, err
	}
	if a.status != http.StatusOK {
		v.odd(q, &a)
		return b, nil
	}
	if err := a.read(&b); err != nil {
		v.wrong("buyer %d: %v", v.number, err)
	} else if b.State != "PENDING" {
		v.booked(&a, h)
	}
	return b, nil
}

// follow asks again and again what became of a pending booking. It needs no place at the counter: it goes on beside.
func (v *visit) follow(ctx context.Context, booking string, h *httpapi.Hold) {
	random := fork(v.random)
	v.waiting.Go(func() {
		for end := time.Now().Add(followMax); time.Now().Before(end); {
			if !sleep(ctx, pollEvery) {
				return
			}
			b, err := v.status(ctx, booking, h, random)
			if err == nil && b.State != "PENDING" {
				v.figures.did(lateWebhooks)
				v.afterwards(ctx, &b, random)
				return
			}
		}
		v.wrong("%s is still pending after %s", booking, followMax)
	})
}

// show looks at a ticket as its owner would at home.
func (v *visit) show(ticket string) {
	ctx, cancel := context.WithTimeout(context.Background(), callPatience)
	defer cancel()
	q := call{name: "ticket", method: http.MethodGet, path: "/v1/tickets/" + ticket, who: v.who}
	a, err := v.client.do(ctx, q, fork(v.random))
	if err != nil {
		return
	}
	var t httpapi.Ticket
	switch {
	case a.status != http.StatusOK:
		v.odd(q, &a)
	case a.read(&t) != nil || t.QR == "" && t.State != "VOID" || !t.Test:
		v.wrong("%s has no code, or does not say that it is a test", ticket)
	default:
		v.figures.did(ticketsShown)
	}
}
