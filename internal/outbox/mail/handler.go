package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// waitMin is how long somebody must have waited for a booking that came to nothing to be told by mail: who waited less was
// told on the page.
const waitMin = time.Minute

// seededMax is of how many events a node remembers that what they are was noted.
const seededMax = 10_000

// A Handler is the outbox.Handler that turns notices into jobs. It only reads and writes rows: a slow mail server never
// holds up the outbox.
type Handler struct {
	facts Facts
	store Store
	wake  func()

	mu     sync.Mutex
	seeded map[id.ID]bool // events of which something was told
}

// NewHandler makes one. wake is told when there are new jobs (Desk.Wake); may be nil.
func NewHandler(facts Facts, store Store, wake func()) *Handler {
	if wake == nil {
		wake = func() {}
	}
	return &Handler{facts: facts, store: store, wake: wake, seeded: map[id.ID]bool{}}
}

// body is what mails need of a notice's.
type body struct {
	Refund string `json:"refund_id"`
	Ticket string `json:"ticket_id"`
	To     string `json:"to"`

	Event    string `json:"event_id"`
	Customer string `json:"customer_id"`
	Hold     string `json:"hold_id"`
	State    string `json:"state"`
}

// optional reads an id that may be missing.
func optional(prefix, text string) (id.ID, error) {
	if text == "" {
		return 0, nil
	}
	return id.Parse(prefix, text)
}

// Handle implements outbox.Handler.
func (h *Handler) Handle(ctx context.Context, n ledger.Notice) error {
	make, ok := makers[n.Kind]
	if !ok {
		return nil
	}
	var b body
	if err := json.Unmarshal(n.Body, &b); err != nil {
		return fmt.Errorf("the body of a notice: %w", err)
	}
	jobs, err := make(h, ctx, n, b)
	if errors.Is(err, ErrUnknown) {
		return nil // what it is about is gone: there is nobody to tell
	}
	if err == nil {
		jobs, err = h.reachable(ctx, jobs)
	}
	if err != nil || len(jobs) == 0 {
		return err
	}
	if err := h.store.PutJobs(ctx, jobs); err != nil {
		return err
	}
	h.wake()
	return nil
}

// reachable leaves out jobs for those who cannot be written to (the desk would drop them as soon as it looks): to read that
// costs far less than to write a job and its end, and the notices behind it wait for that.
func (h *Handler) reachable(ctx context.Context, jobs []Job) ([]Job, error) {
	var reached []Job
	for _, j := range jobs {
		if j.Customer != 0 {
			switch to, err := h.facts.Person(ctx, j.Customer); {
			case errors.Is(err, ErrUnknown), err == nil && to.Email == "":
				continue
			case err != nil:
				return nil, err
			}
		}
		reached = append(reached, j)
	}
	return reached, nil
}

type maker func(h *Handler, ctx context.Context, n ledger.Notice, b body) ([]Job, error)

// makers say which mails a notice leads to. Notices that are not here lead to none: another one of the same change tells of
// it (booking.exchanged of the old order, booking.paid of the new one; booking.refunded, refund.done).
var makers = map[string]maker{
	ledger.NoticePaid:            (*Handler).paid,
	ledger.NoticePayment:         (*Handler).payment,
	ledger.NoticeFailed:          (*Handler).ended,
	ledger.NoticeExpired:         (*Handler).ended,
	ledger.NoticeGiveBack:        (*Handler).giveBack,
	ledger.NoticeCaptureRefused:  (*Handler).captureRefused,
	ledger.NoticeRefundRequested: (*Handler).refundRequested,
	ledger.NoticeRefundDone:      (*Handler).refundDone,
	ledger.NoticeRefundRefused:   (*Handler).refundRefused,
	ledger.NoticeTransferred:     (*Handler).transferred,
	ledger.NoticeCheckInConflict: (*Handler).conflict,
	ledger.NoticeEvent:           (*Handler).event,
	ledger.NoticeWishOffered:     (*Handler).wish,
	ledger.NoticeWishEnded:       (*Handler).wish,
}

// key is the name of the one job that a notice leads to, of a kind, to somebody.
func key(n ledger.Notice, kind Kind, to string) string {
	return n.Order.Text(id.Order) + "." + strconv.FormatInt(n.Sequence, 10) + "." + string(kind) + to
}

func one(n ledger.Notice, kind Kind, o *ledger.Order) Job {
	return Job{Key: key(n, kind, ""), Kind: kind, Customer: o.Customer, Order: o.ID, Event: o.Event, Created: n.At.Std()}
}

// paid mails the tickets where the money is here: nothing was due, or it was taken at once. Else payment does it (A18).
func (h *Handler) paid(ctx context.Context, n ledger.Notice, _ body) ([]Job, error) {
	return h.ticketsDue(ctx, n)
}

func (h *Handler) payment(ctx context.Context, n ledger.Notice, b body) ([]Job, error) {
	if b.Refund != "" {
		return nil, nil // money went back
	}
	return h.ticketsDue(ctx, n)
}

// ticketsDue is the job that mails an order's tickets, where they are paid. Several notices may find that; the key is the
// order's alone, so that it is done once.
func (h *Handler) ticketsDue(ctx context.Context, n ledger.Notice) ([]Job, error) {
	o, err := h.facts.Order(ctx, n.Order)
	if err != nil || o.State != ledger.OrderPaid {
		return nil, err
	}
	if o.Amount > 0 {
		payments, err := h.facts.Payments(ctx, o.ID)
		if err != nil || !captured(&o, payments) {
			return nil, err
		}
	}
	if err := h.seed(ctx, o.Event); err != nil {
		return nil, err
	}
	kind := KindTickets
	if o.Exchange != 0 {
		kind = KindExchanged
	}
	j := one(n, kind, &o)
	j.Key = o.ID.Text(id.Order) + "." + string(kind)
	return []Job{j}, nil
}

// captured says whether the payment that made an order PAID has been taken (and perhaps given back since).
func captured(o *ledger.Order, payments []ledger.Payment) bool {
	for i := range payments {
		p := &payments[i]
		if p.Provider == o.Provider && p.ID == o.Payment {
			return p.State == ledger.PaymentCaptured || p.State == ledger.PaymentRefunded
		}
	}
	return false
}

// seed notes what an event is when the first tickets are mailed, so that a later change has something to differ from.
func (h *Handler) seed(ctx context.Context, event id.ID) error {
	h.mu.Lock()
	known := h.seeded[event]
	h.mu.Unlock()
	if known {
		return nil
	}
	e, err := h.facts.Event(ctx, event)
	if err != nil {
		return err
	}
	if err := h.store.PutTold(ctx, e); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.seeded) >= seededMax {
		clear(h.seeded)
	}
	h.seeded[event] = true
	return nil
}

func (h *Handler) ended(ctx context.Context, n ledger.Notice, _ body) ([]Job, error) {
	o, err := h.facts.Order(ctx, n.Order)
	if err != nil {
		return nil, err
	}
	if n.At.Std().Sub(o.Created.Std()) < waitMin {
		return nil, nil
	}
	refunds, err := h.facts.RefundsOf(ctx, o.ID)
	if err != nil || len(refunds) > 0 { // the mail of the payment that is given back tells it
		return nil, err
	}
	kind := KindFailed
	if n.Kind == ledger.NoticeExpired {
		kind = KindExpired
	}
	return []Job{one(n, kind, &o)}, nil
}

func (h *Handler) giveBack(ctx context.Context, n ledger.Notice, b body) ([]Job, error) {
	return h.aboutRefund(ctx, n, b, KindGivenBack, AlertGiveBack)
}

func (h *Handler) refundRequested(ctx context.Context, n ledger.Notice, b body) ([]Job, error) {
	refund, err := id.Parse(id.Refund, b.Refund)
	if err != nil {
		return nil, fmt.Errorf("refund_id: %w", err)
	}
	r, err := h.facts.Refund(ctx, refund)
	switch {
	case err != nil:
		return nil, err
	case r.Reason == ledger.ReasonDifference, r.Reason == ledger.ReasonEventCancelled, len(r.Tickets) == 0:
		return nil, nil // the mail of the exchange tells it, that of the cancellation, that of the request's first row
	}
	return h.aboutRefund(ctx, n, b, KindRefundRequested, "")
}

// refundDone tells that the money is back; of nothing, nothing is told.
func (h *Handler) refundDone(ctx context.Context, n ledger.Notice, b body) ([]Job, error) {
	refund, err := id.Parse(id.Refund, b.Refund)
	if err != nil {
		return nil, fmt.Errorf("refund_id: %w", err)
	}
	r, err := h.facts.Refund(ctx, refund)
	if err != nil || r.Amount == 0 {
		return nil, err
	}
	return h.aboutRefund(ctx, n, b, KindRefundDone, "")
}

func (h *Handler) refundRefused(ctx context.Context, n ledger.Notice, b body) ([]Job, error) {
	return h.aboutRefund(ctx, n, b, "", AlertRefundRefused)
}

func (h *Handler) captureRefused(ctx context.Context, n ledger.Notice, b body) ([]Job, error) {
	return h.aboutRefund(ctx, n, b, KindCaptureRefused, AlertCaptureRefused)
}

func (h *Handler) conflict(ctx context.Context, n ledger.Notice, b body) ([]Job, error) {
	return h.aboutRefund(ctx, n, b, "", AlertConflict)
}

// aboutRefund makes the customer's job ("" for none) and the owners' alert ("" for none).
func (h *Handler) aboutRefund(ctx context.Context, n ledger.Notice, b body, kind Kind, alert string) ([]Job, error) {
	refund, err := optional(id.Refund, b.Refund)
	if err != nil {
		return nil, fmt.Errorf("refund_id: %w", err)
	}
	o, err := h.facts.Order(ctx, n.Order)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	if kind != "" {
		j := one(n, kind, &o)
		j.Refund = refund
		jobs = append(jobs, j)
	}
	if alert == "" {
		return jobs, nil
	}
	alerts, err := alertJobs(ctx, h.facts, key(n, KindAlert, ""), alert, o.Event, n.At.Std())
	if err != nil {
		return nil, err
	}
	for i := range alerts {
		alerts[i].Order, alerts[i].Refund = o.ID, refund
	}
	return append(jobs, alerts...), nil
}

// alertJobs are an alert's, to the owners of an event's organizer.
func alertJobs(ctx context.Context, facts Facts, key, alert string, event id.ID, now time.Time) ([]Job, error) {
	e, err := facts.Event(ctx, event)
	if err != nil {
		return nil, err
	}
	owners, _, err := facts.Owners(ctx, e.Organizer)
	if err != nil {
		return nil, err
	}
	jobs := []Job{}
	for _, owner := range owners[:min(len(owners), OwnersPerAlertMax)] {
		jobs = append(jobs, Job{
			Key: key + "." + alert + "." + owner.Text(id.Customer), Kind: KindAlert, Word: alert, Customer: owner, Event: event, Created: now,
		})
	}
	return jobs, nil
}

func (h *Handler) transferred(ctx context.Context, n ledger.Notice, b body) ([]Job, error) {
	number, err := id.Parse(id.Ticket, b.Ticket)
	if err != nil {
		return nil, fmt.Errorf("ticket_id: %w", err)
	}
	t, err := h.facts.Ticket(ctx, number)
	if err != nil {
		return nil, err
	}
	to, err := optional(id.Customer, b.To)
	if err != nil {
		return nil, fmt.Errorf("to: %w", err)
	}
	if to == 0 {
		to = t.Customer
	}
	received := Job{Key: key(n, KindReceived, ""), Kind: KindReceived, Customer: to, Order: t.Order, Event: t.Event, Ticket: t.ID, Created: n.At.Std()}
	jobs := []Job{received}
	if was, err := h.facts.Ticket(ctx, t.Was); err == nil {
		passed := received
		passed.Key, passed.Kind, passed.Customer = key(n, KindPassedOn, ""), KindPassedOn, was.Customer
		jobs = append(jobs, passed)
	} else if !errors.Is(err, ErrUnknown) {
		return nil, err
	}
	return jobs, h.seed(ctx, t.Event)
}

// wish tells somebody of the waitlist that they are offered something, or that nothing will come any more. What they bought or
// took back they know.
func (h *Handler) wish(_ context.Context, n ledger.Notice, b body) ([]Job, error) {
	event, err := id.Parse(id.Event, b.Event)
	if err != nil {
		return nil, fmt.Errorf("event_id: %w", err)
	}
	customer, err := id.Parse(id.Customer, b.Customer)
	if err != nil {
		return nil, fmt.Errorf("customer_id: %w", err)
	}
	j := Job{Kind: KindOffered, Customer: customer, Event: event, Word: b.Hold, Created: n.At.Std()}
	if n.Kind == ledger.NoticeWishEnded {
		if b.State != ledger.WishEnded.String() {
			return nil, nil
		}
		j.Kind, j.Word = KindWishEnded, ""
	}
	j.Key = n.Order.Text(id.Wish) + "." + strconv.FormatInt(n.Sequence, 10) + "." + string(j.Kind)
	return []Job{j}, nil
}

// event begins a run where customers must be told something new.
func (h *Handler) event(ctx context.Context, n ledger.Notice, _ body) ([]Job, error) {
	now, err := h.facts.Event(ctx, n.Order)
	if err != nil {
		return nil, err
	}
	told, err := h.store.Told(ctx, now.ID)
	if errors.Is(err, ErrUnknown) {
		return nil, h.store.PutTold(ctx, now)
	}
	if err != nil {
		return nil, err
	}
	kind := KindEventChanged
	switch {
	case told.Event.Cancelled || now.Version < told.Event.Version:
		return nil, nil
	case now.Cancelled:
		kind = KindEventCancelled
	case !now.moved(&told.Event):
		return nil, nil
	}
	err = h.store.PutRun(ctx, Run{Event: now.ID, Kind: kind, Version: now.Version, Was: told.Event, Now: now, Changes: told.Changes + 1})
	if err == nil {
		h.wake()
	}
	return nil, err
}
