package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
)

// How long people wait for money that is on its way, and how often they look.
const (
	takenWait = 90 * time.Second // for the payment to be taken: before, nothing can be given back of it
	lookEvery = 500 * time.Millisecond
	lookMost  = 5 * time.Second // while a payment is not taken, each pause is longer than the one before
)

// afterwards goes on with a booking that is paid, beside the counter.
func (v *visit) afterwards(ctx context.Context, b *httpapi.Booking, random *rand.Rand) {
	if b == nil || b.State != "PAID" {
		return
	}
	if v.isNamed() {
		v.figures.did(namedBookings)
	}
	if v.after == afterNothing {
		v.mayGiveBack(b, random)
		return
	}
	later := *v.buyer // the first visit may go on: what both change is each one's own
	later.random = fork(random)
	w := &visit{sale: v.sale, buyer: &later, house: v.house, who: v.who, keys: v.keys + keysAhead, attending: v.attending,
		place: v.place, session: v.session, admission: v.admission}
	v.waiting.Go(func() {
		w.think(ctx)
		switch v.after {
		case afterRefundAll:
			w.refund(ctx, b, nil)
		case afterRefundSome:
			w.refund(ctx, b, []string{b.Tickets[0].ID})
		case afterRefundRace:
			w.refundRace(ctx, b)
		case afterOrganizer:
			w.organizerRefund(ctx, b)
		case afterRefused:
			w.refusedRefund(ctx, b)
		case afterDearer, afterCheaper, afterDeclined, afterLapse:
			w.exchange(ctx, b)
		case afterTransfer:
			w.transfer(ctx, b)
		case afterDocument:
			w.usedDocument(ctx)
		default:
			w.comeToTheDoor(ctx, b)
		}
	})
}

// keysAhead is how many more keys a visit may have used than when it was left.
const keysAhead = 100

// call is a request of the visit's own.
func (v *visit) call(name, method, path string) call {
	return call{name: name, method: method, path: path, who: v.who}
}

// taken makes a call again and again as long as its answer is that the payment is still under way.
func (v *visit) taken(ctx context.Context, q call) (answer, error) {
	pause := lookEvery
	for end := time.Now().Add(takenWait); ; pause = min(pause*3/2, lookMost) {
		a, err := v.client.do(ctx, q, v.random)
		if err != nil || a.code() != fault.PaymentInProgress || time.Now().After(end) {
			return a, err
		}
		q.drop = false
		if !sleep(ctx, pause) {
			return a, ctx.Err()
		}
	}
}

// ticketsOf are the ids of a booking's tickets that are named, all where none are.
func ticketsOf(b *httpapi.Booking, named []string) (all []string, total int64) {
	for i := range b.Tickets {
		if t := &b.Tickets[i]; named == nil || slices.Contains(named, t.ID) {
			all, total = append(all, t.ID), total+t.Price.AmountMinor
		}
	}
	return all, total
}

func (v *visit) refundCall(b *httpapi.Booking, tickets []string) call {
	q := v.call("refund", http.MethodPost, "/v1/bookings/"+b.ID+"/refund")
	q.key, q.body = v.key("refund"), httpapi.RefundRequest{Tickets: tickets}
	return q
}

// refund gives tickets back, by the event's rule: 10 % are kept. The first answer is not waited for; the same request again
// answers the same refund; another one for the same tickets is refused.
func (v *visit) refund(ctx context.Context, b *httpapi.Booking, tickets []string) {
	all, total := ticketsOf(b, tickets)
	v.journal.asks(v.number, "refund", all)
	q := v.refundCall(b, tickets)
	q.drop = v.random.IntN(2) == 0
	a, err := v.taken(ctx, q)
	if err != nil || !v.refundGiven(q, &a) {
		return
	}
	first, err := v.refundShown(&a)
	if err != nil {
		v.wrong("buyer %d: a refund: %v", v.number, err)
		return
	}
	kept := first.Refunds[0].Kept
	if off := 10*kept - total; first.Total.AmountMinor+kept != total || off > 10*int64(len(all)) || off < -10*int64(len(all)) {
		v.wrong("%s gives %d back and keeps %d of %d", first.Refunds[0].ID, first.Total.AmountMinor, kept, total)
	}
	if tickets == nil {
		v.figures.did(refundsWhole)
	} else {
		v.figures.did(refundsPart)
	}
	q.drop = false
	if again, err := v.client.do(ctx, q, v.random); err == nil && v.refundGiven(q, &again) {
		if same, err := v.refundShown(&again); err != nil || same.Refunds[0].ID != first.Refunds[0].ID {
			v.wrong("buyer %d: the same refund again is another one: %v", v.number, err)
		}
		v.figures.did(refundsAgain)
	}
	second := v.refundCall(b, all[:1])
	switch a, err := v.client.do(ctx, second, v.random); {
	case err != nil:
	case a.code() == fault.Conflict:
		v.figures.did(refundsTwice)
	default:
		v.odd(second, &a)
	}
	v.watchRefunds(ctx, b)
}

// refundGiven says whether a refund was made. The payment may still not be taken, or it could not be had at all.
func (v *visit) refundGiven(q call, a *answer) bool {
	switch {
	case a.status == http.StatusCreated:
		return true
	case a.code() == fault.PaymentInProgress:
		v.figures.did(notTakenYet)
	default:
		v.odd(q, a)
	}
	return false
}

func (v *visit) refundShown(a *answer) (r httpapi.Refunds, err error) {
	if err = a.read(&r); err != nil {
		return r, err
	}
	if len(r.Refunds) == 0 {
		return r, errors.New("it has no refunds")
	}
	for i := range r.Refunds {
		err = errors.Join(err, v.journal.refunded(v.number, &r.Refunds[i]))
	}
	return r, err
}

// refundRace gives one ticket back twice at once, under two keys: at most one may be taken.
func (v *visit) refundRace(ctx context.Context, b *httpapi.Booking) {
	one := []string{b.Tickets[0].ID}
	v.journal.asks(v.number, "refund", one)
	var both sync.WaitGroup
	var answers [2]answer
	var errs [2]error
	for i := range answers {
		q, random := v.refundCall(b, one), fork(v.random)
		w := &visit{sale: v.sale, buyer: &buyer{number: v.number, random: random}, who: v.who}
		both.Go(func() { answers[i], errs[i] = w.taken(ctx, q) })
	}
	both.Wait()
	given := 0
	for i := range answers {
		switch {
		case errs[i] != nil:
		case answers[i].status == http.StatusCreated:
			if _, err := v.refundShown(&answers[i]); err != nil {
				v.wrong("buyer %d: a refund: %v", v.number, err)
			}
			given++
		case answers[i].code() != fault.Conflict && answers[i].code() != fault.PaymentInProgress:
			v.odd(call{method: http.MethodPost, path: "/v1/bookings/" + b.ID + "/refund"}, &answers[i])
		}
	}
	if given > 1 {
		v.wrong("%s was given back twice", one[0])
	}
	if given == 1 {
		v.figures.did(refundRaces)
	}
}

// watchRefunds looks once more at what was given back of a booking, as a customer would.
func (v *visit) watchRefunds(ctx context.Context, b *httpapi.Booking) {
	if !sleep(ctx, pollEvery) {
		return
	}
	q := v.call("refunds", http.MethodGet, "/v1/bookings/"+b.ID+"/refunds")
	a, err := v.client.do(ctx, q, v.random)
	if err != nil {
		return
	}
	var list httpapi.RefundList
	if a.status != http.StatusOK || a.read(&list) != nil || len(list.Refunds) == 0 {
		v.odd(q, &a)
		return
	}
	for i := range list.Refunds {
		if err := v.journal.refunded(v.number, &list.Refunds[i]); err != nil {
			v.wrong("buyer %d: a refund: %v", v.number, err)
		}
	}
}

// organizerRefund is a call to the organizer, who gives all of it back.
func (v *visit) organizerRefund(ctx context.Context, b *httpapi.Booking) (httpapi.Refund, bool) {
	all, total := ticketsOf(b, nil)
	v.journal.asks(v.number, "organizer", all)
	q := v.call("refund", http.MethodPost, "/v1/organizer/bookings/"+b.ID+"/refund")
	q.who, q.key, q.body = v.staff.owner, v.key("organizer"), httpapi.OrganizerRefundRequest{Reason: "asked for it on the telephone"}
	a, err := v.taken(ctx, q)
	if err != nil || !v.refundGiven(q, &a) {
		return httpapi.Refund{}, false
	}
	r, err := v.refundShown(&a)
	if err != nil || r.Total.AmountMinor != total {
		v.wrong("buyer %d: %s gives %d of %d back: %v", v.number, b.ID, r.Total.AmountMinor, total, err)
		return httpapi.Refund{}, false
	}
	v.figures.did(refundsOrganizer)
	return r.Refunds[0], true
}

// refusedRefund is one that the bank never takes: it stays REQUESTED, the organizer sees it in the list and tries again.
func (v *visit) refusedRefund(ctx context.Context, b *httpapi.Booking) {
	r, ok := v.organizerRefund(ctx, b)
	if !ok || !v.listedAsRefused(ctx, r.ID) {
		return
	}
	v.figures.did(refundsRefused)
	q := v.call("refund retry", http.MethodPost, "/v1/organizer/refunds/"+r.ID+"/retry")
	q.who = v.staff.owner
	a, err := v.client.do(ctx, q, v.random)
	switch {
	case err != nil:
		return
	case a.status == http.StatusOK:
	case a.code() == fault.Conflict: // the answer to the first try was lost, and the second is still at the bank
	default:
		v.odd(q, &a)
		return
	}
	if v.listedAsRefused(ctx, r.ID) {
		v.figures.did(refundsRetried)
	}
}

// listedAsRefused waits until the organizer sees a refund as refused.
func (v *visit) listedAsRefused(ctx context.Context, refund string) bool {
	q := v.call("refused refunds", http.MethodGet, "/v1/organizer/events/"+v.house.event.ID+"/refunds")
	q.who = v.staff.owner
	for end := time.Now().Add(takenWait); time.Now().Before(end); {
		a, err := v.client.do(ctx, q, v.random)
		if err != nil {
			return false
		}
		var list httpapi.RefundList
		if a.status != http.StatusOK || a.read(&list) != nil {
			v.odd(q, &a)
			return false
		}
		i := slices.IndexFunc(list.Refunds, func(r httpapi.Refund) bool { return r.ID == refund && r.Refused != "" })
		if i >= 0 {
			if err := v.journal.refunded(v.number, &list.Refunds[i]); err != nil {
				v.wrong("buyer %d: a refused refund: %v", v.number, err)
			}
			return true
		}
		if !sleep(ctx, lookEvery) {
			return false
		}
	}
	v.wrong("the bank refuses %s, and the organizer does not see it", refund)
	return false
}
