package app

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
	"onsale/internal/outbox/mail"
	"onsale/internal/outbox/mail/mailbox"
	"onsale/internal/outbox/mail/smtp"
	"onsale/internal/payment"
	"onsale/internal/ticket"
	"onsale/internal/venue"
)

// MailSettings say how mails go out.
type MailSettings struct {
	Name string       // of the shop, as people know it
	SMTP smtp.Options // a Host of "": no mail is sent; in a demo a mailbox at MailboxPath takes its place
}

// MailboxPath is where a demo shows its mails (E1).
const MailboxPath = "/dev/mailbox"

// openMail opens what writes to people: nil where mails go nowhere.
func (a *App) openMail() error {
	s := &a.Settings
	var sender mail.Sender
	switch {
	case s.Mail.SMTP.Host != "":
		out, err := smtp.New(s.Mail.SMTP)
		if err != nil {
			return err
		}
		a.onClose(func(context.Context) error { return out.Close() })
		sender = out
	case s.Demo:
		a.Mailbox = mailbox.New(MailboxPath, nil)
		sender = a.Mailbox
	default:
		return nil
	}
	facts := mailFacts{a}
	a.desk = mail.NewDesk(mail.Options{
		Site: a.site(), Sender: sender, Facts: facts, Store: a.Control.Mail(), Log: a.Log,
		Dead: func(kind mail.Kind) { a.metrics.alerts.WithLabelValues("mail").Inc() },
	})
	a.mails = mail.NewHandler(facts, a.Control.Mail(), a.desk.Wake)
	return nil
}

// site is what all mails share. Its host is in ids of mails and calendar entries, which must stay the same. It has no URL:
// there are no pages yet to which a link could lead.
func (a *App) site() mail.Site {
	site := mail.Site{Name: a.Settings.Mail.Name, Host: "onsale.localhost"}
	if u, err := url.Parse(a.Settings.PublicURL); err == nil && u.Hostname() != "" {
		site.Host = u.Hostname()
	} else if _, domain, ok := strings.Cut(strings.TrimSuffix(a.Settings.Mail.SMTP.From, ">"), "@"); ok {
		site.Host = domain
	}
	return site
}

// resend sends the tickets of an order again.
func (a *App) resend(ctx context.Context, order id.ID) error {
	o, err := a.Store.Order(ctx, order)
	if err != nil {
		return err
	}
	if o.State != ledger.OrderPaid {
		return fault.New(fault.Conflict, "the booking is %s: it has no valid tickets", o.State)
	}
	return a.desk.Resend(ctx, o)
}

// alertOwners tells the owners of an event's organizer what somebody should look at. It does not wait for the mail.
func (a *App) alertOwners(ctx context.Context, alert string, event id.ID) {
	if a.desk == nil || event == 0 {
		return
	}
	if err := a.desk.Alert(ctx, alert, event); err != nil {
		a.Log.WarnContext(ctx, "owners could not be told of an alert", "alert", alert, "event", event.Text(id.Event), "error", err)
	}
}

// mailFacts is what mails are written from.
type mailFacts struct{ a *App }

var _ mail.Facts = mailFacts{}

// unknown turns what is not there into the mails' own word for it.
func unknown(err error) error {
	if isUnknown(err) {
		return mail.ErrUnknown
	}
	return err
}

// isUnknown says whether an error is that there is no such thing.
func isUnknown(err error) bool {
	code := fault.CodeOf(err)
	return errors.Is(err, ledger.ErrNotFound) || errors.Is(err, catalog.ErrNotFound) || code == fault.NotFound || code == fault.EventUnknown
}

func (f mailFacts) Order(ctx context.Context, order id.ID) (ledger.Order, error) {
	o, err := f.a.Store.Order(ctx, order)
	return o, unknown(err)
}

func (f mailFacts) Payments(ctx context.Context, order id.ID) ([]ledger.Payment, error) {
	return f.a.Store.Payments(ctx, order)
}

func (f mailFacts) Refund(ctx context.Context, refund id.ID) (ledger.Refund, error) {
	r, err := f.a.Store.Refund(ctx, refund)
	return r, unknown(err)
}

func (f mailFacts) RefundsOf(ctx context.Context, order id.ID) ([]ledger.Refund, error) {
	return f.a.Store.RefundsOf(ctx, order)
}

func (f mailFacts) Ticket(ctx context.Context, number id.ID) (ledger.Ticket, error) {
	t, err := f.a.Store.Ticket(ctx, number)
	return t, unknown(err)
}

func (f mailFacts) Hold(ctx context.Context, hold id.ID) (ledger.Hold, error) {
	h, err := f.a.Store.Hold(ctx, hold)
	return h, unknown(err)
}

func (f mailFacts) OrdersOfEvent(ctx context.Context, event, after id.ID, max int) ([]ledger.Order, error) {
	return f.a.Store.OrdersOfEvent(ctx, event, ledger.OrderFilter{After: after}, max)
}

func (f mailFacts) Event(ctx context.Context, event id.ID) (mail.Event, error) {
	e, err := f.a.Catalog.Event(ctx, event)
	if err != nil {
		return mail.Event{}, unknown(err)
	}
	return mail.Event{
		ID: e.ID, Organizer: e.Organizer, Version: e.Version, Cancelled: e.State == catalog.Cancelled, Title: e.Title, Starts: e.Starts, Doors: e.Doors,
		Venue: e.Venue.Name, City: e.Venue.City, Zone: e.Venue.Zone, Test: f.a.Provider.Mode() == payment.Test,
	}, nil
}

func (f mailFacts) Person(ctx context.Context, customer id.ID) (mail.Person, error) {
	p, err := f.a.People.Profile(ctx, customer)
	if err != nil {
		return mail.Person{}, unknown(err)
	}
	return mail.Person{Customer: customer, Name: p.Name, Email: string(p.Email()), Locale: p.Locale}, nil
}

func (f mailFacts) Owners(ctx context.Context, organizer id.ID) ([]id.ID, string, error) {
	o, err := f.a.Catalog.Organizer(ctx, organizer)
	if err != nil {
		return nil, "", unknown(err)
	}
	members, err := f.a.People.Members(ctx, organizer)
	if err != nil {
		return nil, "", err
	}
	var owners []id.ID
	for _, m := range members {
		if m.Role == identity.Owner {
			owners = append(owners, m.Customer)
		}
	}
	return owners, o.Name, nil
}

// Tickets are how people see tickets.
func (f mailFacts) Tickets(ctx context.Context, all []ledger.Ticket, codes bool) ([]mail.Ticket, error) {
	names := map[id.ID][]identity.Attending{} // by order
	shown := make([]mail.Ticket, 0, len(all))
	for i := range all {
		t := &all[i]
		e, err := f.a.Catalog.Event(ctx, t.Event)
		if err != nil {
			return nil, unknown(err)
		}
		plan, err := f.a.Catalog.Plan(ctx, e.PlanHash)
		if err != nil {
			return nil, err
		}
		m := place(plan, t)
		m.ID, m.Total, m.Test = t.ID, t.Total, f.a.Provider.Mode() == payment.Test
		if _, read := names[t.Order]; !read {
			if names[t.Order], err = f.a.People.Attendees(ctx, t.Order); err != nil {
				return nil, err
			}
		}
		for _, n := range names[t.Order] {
			if n.Place == t.Place {
				m.Attendee = n.Name
			}
		}
		if codes && t.State == ledger.TicketValid {
			if m.Code, err = f.a.code(t); err != nil {
				return nil, err
			}
		}
		shown = append(shown, m)
	}
	return shown, nil
}

// place is where a ticket leads, in the plan's words.
func place(plan *venue.Plan, t *ledger.Ticket) mail.Ticket {
	var m mail.Ticket
	if c := int(t.Category); c >= 0 && c < len(plan.Categories) {
		m.Category = plan.Categories[c].Name
	}
	switch {
	case t.Seat >= 0 && int(t.Seat) < len(plan.Seats):
		seat := plan.Seats[t.Seat]
		row := plan.Rows[seat.Row]
		m.Section, m.Row, m.Seat = plan.Sections[row.Section].Name, row.Label, seat.Label
	case t.Area >= 0 && int(t.Area) < len(plan.Areas):
		area := plan.Areas[t.Area]
		m.Section, m.Area = plan.Sections[area.Section].Name, area.Name
	}
	return m
}

// code is the text of a ticket's QR code.
func (a *App) code(t *ledger.Ticket) (string, error) {
	key, err := ticket.SigningKey(a.Keys, a.Provider.Mode() == payment.Test)
	if err != nil {
		return "", err
	}
	said := ticket.Ticket{ID: int64(t.ID), EventID: int64(t.Event), Index: t.Seat, Test: key.Test}
	if t.Area >= 0 {
		said.Index, said.Area = t.Area, true
	}
	return ticket.Sign(key, said)
}
