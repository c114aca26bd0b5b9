package httpapi

import (
	"net/http"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A BookingHistory is everything that is known of a booking.
type BookingHistory struct {
	Booking  OrganizerBooking `json:"booking"`
	Exchange string           `json:"exchange_of,omitempty" doc:"the booking whose tickets it took the place of"`
	Claims   []ClaimStep      `json:"claims" doc:"what became of its seats or places"`
	Payments []PaymentShown   `json:"payments"`
	Refunds  []Refund         `json:"refunds"`
	CheckIns []CheckIn        `json:"checkins"`
	Notices  []NoticeShown    `json:"notices" doc:"what was published about it; kept for some days"`
}

// A ClaimStep is one transition of a claim.
type ClaimStep struct {
	Hold   string    `json:"hold_id"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Why    string    `json:"why,omitempty"`
	Seats  []string  `json:"seat_ids,omitempty"`
	Places int       `json:"place_count,omitempty"`
	At     time.Time `json:"at"`
}

// A PaymentShown is money at the provider, in minor units.
type PaymentShown struct {
	Provider   string `json:"provider"`
	Payment    string `json:"payment_id" doc:"the provider's"`
	State      string `json:"state"`
	Currency   string `json:"currency"`
	Authorized int64  `json:"authorized_minor"`
	Captured   int64  `json:"captured_minor"`
	Voided     int64  `json:"voided_minor"`
	Refunded   int64  `json:"refunded_minor"`
}

// A NoticeShown is a notice that was, or is to be, published.
type NoticeShown struct {
	Sequence int64     `json:"sequence"`
	Kind     string    `json:"kind"`
	Alert    bool      `json:"alert,omitempty"`
	At       time.Time `json:"at"`
}

func (a *api) bookingHistory(w http.ResponseWriter, r *request) error {
	o := r.order
	booking, err := a.showOrganizerBooking(r, o)
	if err != nil {
		return err
	}
	h := BookingHistory{Booking: booking, Claims: []ClaimStep{}, Payments: []PaymentShown{}, Refunds: []Refund{}, CheckIns: []CheckIn{}, Notices: []NoticeShown{}}
	if o.Exchange != 0 {
		h.Exchange = o.Exchange.Text(id.Order)
	}
	for _, part := range []func(*request, *ledger.Order, *BookingHistory) error{a.historyClaims, a.historyMoney, a.historyUses} {
		if err := part(r, o, &h); err != nil {
			return err
		}
	}
	return write(w, http.StatusOK, h)
}

func (a *api) historyClaims(r *request, o *ledger.Order, h *BookingHistory) error {
	names, err := a.withPlanOf(r, r.event)
	if err != nil {
		return err
	}
	steps, err := a.Ledger.ClaimHistory(r.Context(), []id.ID{o.Hold})
	if err != nil {
		return err
	}
	for _, s := range steps {
		shown := ClaimStep{Hold: s.Hold.Text(id.Hold), From: s.From, To: s.To, Why: s.Why, Places: s.Places, At: s.At.Std()}
		for _, seat := range s.Seats {
			shown.Seats = append(shown.Seats, names.seat(seat))
		}
		h.Claims = append(h.Claims, shown)
	}
	notices, err := a.Ledger.NoticesOf(r.Context(), o.ID)
	for _, n := range notices {
		h.Notices = append(h.Notices, NoticeShown{n.Sequence, n.Kind, n.Alert, n.At.Std()})
	}
	return err
}

func (a *api) historyMoney(r *request, o *ledger.Order, h *BookingHistory) error {
	payments, err := a.Ledger.Payments(r.Context(), o.ID)
	if err != nil {
		return err
	}
	for _, p := range payments {
		h.Payments = append(h.Payments, PaymentShown{p.Provider, p.ID, p.State.String(), p.Currency, p.Authorized, p.Captured, p.Voided, p.Refunded})
	}
	refunds, err := a.Ledger.RefundsOf(r.Context(), o.ID)
	for i := range refunds {
		h.Refunds = append(h.Refunds, showRefund(&refunds[i]))
	}
	return err
}

func (a *api) historyUses(r *request, o *ledger.Order, h *BookingHistory) error {
	for i := range o.Tickets {
		uses, err := a.Ledger.CheckInsOf(r.Context(), o.Tickets[i].ID)
		if err != nil {
			return err
		}
		for k := range uses {
			h.CheckIns = append(h.CheckIns, showUse(&uses[k]))
		}
	}
	return nil
}
