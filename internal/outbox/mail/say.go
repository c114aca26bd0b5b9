package mail

import (
	"context"
	"errors"
	"strconv"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// errNothing says that a job has nothing to say any more: the tickets were given back meanwhile.
var errNothing = errors.New("mail: there is nothing to tell any more")

// errNoAddress says that somebody cannot be written to.
var errNoAddress = errors.New("mail: the customer has no address")

// message reads everything that a job's mail says. Errors: errNothing, errNoAddress, those of Facts and Store.
func message(ctx context.Context, facts Facts, store Store, j Job) (Message, error) {
	to, err := facts.Person(ctx, j.Customer)
	if errors.Is(err, ErrUnknown) || err == nil && to.Email == "" {
		return Message{}, errNoAddress
	}
	if err != nil {
		return Message{}, err
	}
	m := Message{Key: j.Key, Kind: j.Kind, Locale: to.Locale, To: Address{Name: to.Name, Email: to.Email}}
	if j.Event != 0 {
		if m.Event, err = facts.Event(ctx, j.Event); err != nil {
			return Message{}, nothing(err)
		}
	}
	told, err := store.Told(ctx, j.Event)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return Message{}, err
	}
	if told.Event.Cancelled && j.Kind == KindEventChanged {
		return Message{}, errNothing
	}
	m.Changes = told.Changes
	f := filler{facts, store, j, &m}
	if err := f.fill(ctx); err != nil {
		return Message{}, nothing(err)
	}
	return m, nil
}

func nothing(err error) error {
	if errors.Is(err, ErrUnknown) {
		return errNothing
	}
	return err
}

// A filler adds to a message what its kind speaks of.
type filler struct {
	facts Facts
	store Store
	j     Job
	m     *Message
}

func (f filler) fill(ctx context.Context) error {
	switch f.j.Kind {
	case KindTickets, KindExchanged:
		return f.tickets(ctx)
	case KindGivenBack, KindRefundDone, KindRefundRequested, KindCaptureRefused:
		return f.refund(ctx)
	case KindReceived, KindPassedOn:
		return f.transfer(ctx)
	case KindEventChanged, KindEventCancelled:
		return f.news(ctx)
	case KindAlert:
		return f.alert(ctx)
	case KindOffered:
		return f.offer(ctx)
	case KindWishEnded:
		return nil
	}
	f.m.Order = f.j.Order
	return nil
}

// offer tells what is offered, as long as it is.
func (f filler) offer(ctx context.Context) error {
	hold, err := id.Parse(id.Hold, f.j.Word)
	if err != nil {
		return err
	}
	h, err := f.facts.Hold(ctx, hold)
	if err != nil {
		return err
	}
	if h.State != ledger.HoldLive || h.Customer != f.j.Customer {
		return errNothing
	}
	f.m.Count, f.m.Amount, f.m.Currency, f.m.Expires = len(h.Lines), h.Total(), h.Currency, h.Expires.Std()
	return nil
}

func (f filler) order(ctx context.Context) (ledger.Order, error) {
	o, err := f.facts.Order(ctx, f.j.Order)
	f.m.Order, f.m.Amount, f.m.Currency = o.ID, o.Amount, o.Currency
	return o, err
}

func (f filler) tickets(ctx context.Context) error {
	o, err := f.order(ctx)
	if err != nil {
		return err
	}
	good := valid(o.Tickets, o.Customer)
	if o.State != ledger.OrderPaid || len(good) == 0 {
		return errNothing
	}
	f.m.Tickets, err = f.facts.Tickets(ctx, good, true)
	if err != nil || f.j.Kind != KindExchanged {
		return err
	}
	// What is given back of an exchange lies with the old order.
	refunds, err := f.facts.RefundsOf(ctx, o.Exchange)
	for i := range refunds {
		if r := &refunds[i]; r.Reason == ledger.ReasonDifference && !r.Created.Std().Before(o.Created.Std()) {
			f.m.Back += r.Amount
		}
	}
	return err
}

// valid are the tickets that somebody has and that let them in.
func valid(all []ledger.Ticket, customer id.ID) []ledger.Ticket {
	var good []ledger.Ticket
	for _, t := range all {
		if t.Customer == customer && t.State != ledger.TicketVoid {
			good = append(good, t)
		}
	}
	return good
}

func (f filler) refund(ctx context.Context) error {
	o, err := f.order(ctx)
	if err != nil {
		return err
	}
	if f.j.Refund == 0 {
		return nil
	}
	r, err := f.facts.Refund(ctx, f.j.Refund)
	if err != nil {
		return err
	}
	f.m.Amount, f.m.Currency, f.m.Kept, f.m.Rule, f.m.Reason = r.Amount, r.Currency, r.FeeKept, r.Rule, r.Reason
	if f.j.Kind == KindRefundRequested {
		if err := f.parts(ctx, &r); err != nil {
			return err
		}
	}
	var chosen []ledger.Ticket
	for _, number := range r.Tickets {
		for _, t := range o.Tickets {
			if t.ID == number {
				chosen = append(chosen, t)
			}
		}
	}
	if f.j.Kind != KindRefundRequested || len(chosen) == 0 {
		return nil
	}
	f.m.Tickets, err = f.facts.Tickets(ctx, chosen, false)
	return err
}

// parts adds what other rows of the same request give back: one that draws from several payments has a row for each.
func (f filler) parts(ctx context.Context, first *ledger.Refund) error {
	all, err := f.facts.RefundsOf(ctx, first.Order)
	if err != nil {
		return err
	}
	for i := range all {
		r := &all[i]
		if r.ID != first.ID && r.Created == first.Created && r.Reason == first.Reason && r.By == first.By && len(r.Tickets) == 0 && len(first.Tickets) > 0 {
			f.m.Amount += r.Amount
		}
	}
	return nil
}

func (f filler) transfer(ctx context.Context) error {
	t, err := f.facts.Ticket(ctx, f.j.Ticket)
	if err != nil {
		return err
	}
	if f.j.Kind == KindPassedOn {
		f.m.Order = f.j.Order
		t.ID = t.Was // the one they had; the new one is the other's
		if f.m.Tickets, err = f.facts.Tickets(ctx, []ledger.Ticket{t}, false); err == nil {
			f.m.Tickets[0].Attendee = "" // whom they passed it on to has a name that is theirs
		}
		return err
	}
	if t.State == ledger.TicketVoid || t.Customer != f.j.Customer {
		return errNothing // passed on further, or given back
	}
	if f.m.Tickets, err = f.facts.Tickets(ctx, []ledger.Ticket{t}, true); err != nil {
		return err
	}
	was, err := f.facts.Ticket(ctx, t.Was)
	if err != nil {
		return err
	}
	other, err := f.facts.Person(ctx, was.Customer)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	f.m.Other = other.Name
	return err
}

// news tells what a run tells: how the event was and is then, not what it is by now.
func (f filler) news(ctx context.Context) error {
	run, err := f.store.Run(ctx, f.j.Event, f.j.Kind, f.j.Version)
	if err != nil {
		return err
	}
	today := f.m.Event
	f.m.Event, f.m.Was, f.m.Changes = run.Now, &run.Was, run.Changes
	f.m.Event.ID, f.m.Event.Organizer, f.m.Event.Test = f.j.Event, today.Organizer, today.Test
	if f.j.Ticket == 0 {
		f.m.Order = f.j.Order
		return nil
	}
	f.m.Tickets = []Ticket{{ID: f.j.Ticket}} // for the calendar entry: it is of the ticket, not of the booking
	return nil
}

func (f filler) alert(ctx context.Context) error {
	f.m.Alert = f.j.Word
	if f.m.Event.Organizer != 0 {
		_, name, err := f.facts.Owners(ctx, f.m.Event.Organizer)
		if err != nil {
			return err
		}
		f.m.Organizer = name
	}
	f.m.Order = f.j.Order
	if f.j.Refund == 0 {
		return nil
	}
	r, err := f.facts.Refund(ctx, f.j.Refund)
	f.m.Amount, f.m.Currency = r.Amount, r.Currency
	return err
}

// recipients are the jobs of a run for one order: whoever has its tickets, or had them until one of the refunds in gone.
func recipients(run *Run, o *ledger.Order, gone map[id.ID]bool) []Job {
	key := o.ID.Text(id.Order) + "." + string(run.Kind) + "." + run.Event.Text(id.Event) + "." + strconv.FormatInt(run.Version, 10)
	var jobs []Job
	told := map[id.ID]bool{}
	for i := range o.Tickets {
		t := &o.Tickets[i]
		has := t.State != ledger.TicketVoid || gone[t.Refund]
		if told[t.Customer] || t.Event != run.Event || !has {
			continue
		}
		told[t.Customer] = true
		j := Job{Key: key, Kind: run.Kind, Customer: t.Customer, Order: o.ID, Event: run.Event, Version: run.Version, Bulk: true}
		if t.Customer != o.Customer {
			j.Ticket, j.Key = t.ID, key+"."+t.ID.Text(id.Ticket)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// goneByCancellation are an order's refunds because of the cancellation: who got one had a ticket until then.
func goneByCancellation(ctx context.Context, facts Facts, run *Run, o *ledger.Order) (map[id.ID]bool, error) {
	gone := map[id.ID]bool{}
	if run.Kind != KindEventCancelled {
		return gone, nil
	}
	for i := range o.Tickets {
		if o.Tickets[i].Refund == 0 {
			continue
		}
		refunds, err := facts.RefundsOf(ctx, o.ID)
		for j := range refunds {
			if refunds[j].Reason == ledger.ReasonEventCancelled {
				gone[refunds[j].ID] = true
			}
		}
		return gone, err
	}
	return gone, nil
}
