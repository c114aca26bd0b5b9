package demo

import (
	"context"
	"net/http"
	"slices"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
)

// attendees are who will come with a hold's places, where the event wants to know.
func (v *visit) attendees(h *httpapi.Hold) []httpapi.Attendee {
	if !v.isNamed() {
		return nil
	}
	all := make([]httpapi.Attendee, h.Quantity)
	for i := range all {
		all[i] = v.secrets.attendee(v.random)
	}
	v.attending = all
	return all
}

// sameDocument tries to get two tickets of one booking with one document, which the event does not allow.
func (v *visit) sameDocument(ctx context.Context, h *httpapi.Hold) {
	if !v.isNamed() || h.Quantity < 2 {
		return
	}
	who := v.secrets.attendee(v.random)
	q := v.call("booking", http.MethodPost, "/v1/bookings")
	q.key = v.key("same")
	q.body = httpapi.BookingRequest{Hold: h.ID, Token: tokens[cardGood], Attendees: slices.Repeat([]httpapi.Attendee{who}, h.Quantity)}
	switch a, err := v.client.do(ctx, q, v.random); {
	case err != nil:
	case a.code() == fault.Invalid && a.problem.Field != "":
		v.figures.did(documentsTwice)
	case a.code() == fault.HoldExpired:
	default:
		v.odd(q, &a)
	}
}

// usedDocument tries to get one ticket more with a document that has one already.
func (v *visit) usedDocument(ctx context.Context) {
	v.party = 1
	h := v.hold(ctx)
	if h == nil {
		return
	}
	q := v.call("booking", http.MethodPost, "/v1/bookings")
	q.key = v.key("used")
	q.body = httpapi.BookingRequest{Hold: h.ID, Token: tokens[cardGood], Attendees: v.attending[:1]}
	switch a, err := v.client.do(ctx, q, v.random); {
	case err != nil:
	case a.code() == fault.LimitReached:
		v.figures.did(documentsUsed)
	case a.code() == fault.HoldExpired:
	default:
		v.odd(q, &a)
	}
	v.release(ctx, h)
}
