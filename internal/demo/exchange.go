package demo

import (
	"context"
	"net/http"
	"time"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
)

const exchangeTriesMax = 4 // a kill may last longer than a hold

// exchange swaps tickets for others: dearer or cheaper ones, with a card that is declined, or not at all.
func (v *visit) exchange(ctx context.Context, b *httpapi.Booking) {
	for range exchangeTriesMax {
		h, q := v.holdInstead(ctx, b)
		if h == nil {
			return
		}
		switch quote, ok := v.quote(ctx, h); {
		case !ok: // the hold ran out in the meantime
		case v.after == afterLapse:
			v.figures.did(exchangesLapsed)
			return
		case v.swap(ctx, b, h, q, quote):
			return
		}
		v.think(ctx)
	}
}

// holdInstead holds places that are to take the place of tickets: of all where they are dearer, of the first where they are
// cheaper. nil where there are none.
func (v *visit) holdInstead(ctx context.Context, b *httpapi.Booking) (*httpapi.Hold, []string) {
	given, _ := ticketsOf(b, nil)
	if v.after == afterCheaper {
		given = given[:1]
	}
	for _, category := range v.house.beside(b.Tickets[0].Category, v.after != afterCheaper) {
		q := v.call("hold", http.MethodPost, "/v1/holds")
		q.key = v.key("instead")
		q.body = httpapi.HoldRequest{
			Event: v.house.event.ID, Best: &httpapi.BestRequest{Quantity: len(given), Category: category},
			Exchange: &httpapi.ExchangeOf{Booking: b.ID, Tickets: given},
		}
		q.pass = v.admission
		a, err := v.taken(ctx, q)
		if err == nil && (a.code() == fault.NotAdmitted || a.code() == fault.AdmissionExpired) && v.comeAgain(ctx) { // it needs a session as any other
			q.pass = v.admission
			a, err = v.taken(ctx, q)
		}
		switch {
		case err != nil:
			return nil, nil
		case a.status == http.StatusCreated:
			h := &httpapi.Hold{}
			err := a.read(h)
			if err == nil {
				err = v.journal.held(v.number, "hold instead", h)
			}
			if err != nil || h.Exchange != b.ID || h.Quantity != len(given) {
				v.wrong("buyer %d: the hold %s instead of %s: %v", v.number, h.ID, b.ID, err)
				return nil, nil
			}
			v.figures.held()
			return h, given
		}
		switch a.code() {
		case fault.NoSeatsFound, fault.SeatsTaken, fault.PlacesTaken, fault.SoldOut, fault.OrphanSeat, fault.LimitReached, fault.NotAdmitted, fault.AdmissionExpired: // perhaps elsewhere
		case fault.Busy, fault.PaymentInProgress:
			return nil, nil
		case fault.Conflict: // an earlier hold of ours, whose payment's answer was lost, has marked the tickets
			return nil, nil
		default:
			v.odd(q, &a)
			return nil, nil
		}
	}
	v.figures.did(exchangesNone)
	return nil, nil
}

// quote asks what an exchange costs, and looks whether that can be.
func (v *visit) quote(ctx context.Context, h *httpapi.Hold) (httpapi.ExchangeQuote, bool) {
	q := v.call("exchange quote", http.MethodGet, "/v1/holds/"+h.ID+"/exchange")
	var quote httpapi.ExchangeQuote
	a, err := v.client.do(ctx, q, v.random)
	if err != nil || a.status != http.StatusOK {
		if err == nil && a.code() != fault.HoldExpired && a.code() != fault.HoldUnknown {
			v.odd(q, &a)
		}
		return quote, false
	}
	if err := a.read(&quote); err != nil || quote.New != h.Price.AmountMinor || quote.Due*quote.Back != 0 || quote.Due-quote.Back != quote.New+quote.Fee-quote.Old {
		v.wrong("the exchange for %s costs %d and gives %d back for %d, %d kept, instead of %d: %v", h.ID, quote.Due, quote.Back, quote.New, quote.Fee, quote.Old, err)
		return quote, false
	}
	return quote, true
}

// swap pays for the exchange; false where it should be tried again.
func (v *visit) swap(ctx context.Context, b *httpapi.Booking, h *httpapi.Hold, given []string, quote httpapi.ExchangeQuote) (done bool) {
	q := v.call("exchange", http.MethodPost, "/v1/bookings/"+b.ID+"/exchange")
	body := httpapi.ExchangeRequest{Hold: h.ID, Token: tokens[cardGood]}
	if v.after == afterDeclined {
		body.Token = tokens[cardDeclined]
	} else {
		v.journal.asks(v.number, "exchange", given)
	}
	q.key, q.body, q.drop = v.key("exchange"), body, v.random.IntN(3) == 0
	a, err := v.client.do(ctx, q, v.random)
	switch {
	case err != nil:
		return true // whether it is done is not known; the audit compares
	case a.status == http.StatusCreated && v.after != afterDeclined:
		v.exchanged(&a, h, quote)
	case a.status == http.StatusAccepted:
		return v.swapLater(ctx, &a, h, quote)
	case a.code() == fault.PaymentDeclined && v.after == afterDeclined:
		v.keptTickets(ctx, b, h, &a)
	case a.code() == fault.HoldExpired, a.code() == fault.Conflict && a.problem.Booking != "": // the server was away for too long
		return false
	case a.code() == fault.PaymentInProgress:
		return true
	default:
		v.odd(q, &a)
	}
	return true
}

// exchanged takes note of the booking that an exchange made.
func (v *visit) exchanged(a *answer, h *httpapi.Hold, quote httpapi.ExchangeQuote) {
	b := v.booked(a, h)
	switch {
	case b == nil || b.State != "PAID":
	case b.Price.AmountMinor != quote.Due || b.Exchange != quote.Booking:
		v.wrong("%s costs %d, and %d was said", b.ID, b.Price.AmountMinor, quote.Due)
	case quote.Back > 0:
		v.figures.did(exchangesCheaper)
	case quote.Due > 0:
		v.figures.did(exchangesDearer)
	}
}

// swapLater waits for a payment that is under way.
func (v *visit) swapLater(ctx context.Context, a *answer, h *httpapi.Hold, quote httpapi.ExchangeQuote) (done bool) {
	b := v.booked(a, h)
	if b == nil {
		return true
	}
	for end := time.Now().Add(followMax); time.Now().Before(end) && sleep(ctx, pollEvery); {
		now, err := v.client.do(ctx, v.call("booking status", http.MethodGet, "/v1/bookings/"+b.ID), v.random)
		if err != nil || now.read(b) != nil || now.status != http.StatusOK {
			continue
		}
		if b.State != "PENDING" {
			v.exchanged(&now, h, quote)
			return b.State == "PAID"
		}
	}
	return true
}

// keptTickets looks whether the old tickets are as good as ever after a declined card.
func (v *visit) keptTickets(ctx context.Context, b *httpapi.Booking, h *httpapi.Hold, declinedBy *answer) {
	if err := v.journal.refusedExchange(v.number, declinedBy.problem.Booking, h); err != nil {
		v.wrong("buyer %d: a declined exchange: %v", v.number, err)
	}
	a, err := v.client.do(ctx, v.call("booking status", http.MethodGet, "/v1/bookings/"+b.ID), v.random)
	var now httpapi.Booking
	if err != nil || a.status != http.StatusOK || a.read(&now) != nil {
		return
	}
	for i := range now.Tickets {
		if now.State != "PAID" || now.Tickets[i].State != "VALID" {
			v.wrong("%s is %s, its ticket %s, after an exchange that was declined", b.ID, now.State, now.Tickets[i].State)
		}
	}
	v.figures.did(exchangesDeclined)
}
