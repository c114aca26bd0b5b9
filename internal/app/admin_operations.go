package app

import (
	"context"
	"net/http"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/keys"
	"onsale/internal/ledger"
)

// What commands do for those who run the house: keys, and what a person may ask for by law.

// An AdminKey is a key as commands show it, without its secret.
type AdminKey struct {
	KID     string    `json:"kid"`
	Purpose string    `json:"purpose"`
	State   string    `json:"state"`
	Created time.Time `json:"created_at"`
}

// A RotateRequest names what gets a new key; "" is every purpose that can have one.
type RotateRequest struct {
	Purpose string `json:"purpose"`
}

// A CustomerRequest names somebody, by an e-mail address or a customer's id.
type CustomerRequest struct {
	Who string `json:"who"`
	// EvenSo erases also who has tickets for events to come.
	EvenSo bool `json:"even_so,omitempty"`
}

// operationsRoutes adds them. people is the running service, nil where none runs.
func (a *App) operationsRoutes(mux *http.ServeMux, people *identity.Service) {
	service := func() (*identity.Service, error) { return people, nil }
	if people == nil {
		service = sync.OnceValues(func() (*identity.Service, error) { return a.openPeople(context.Background(), noMail{}) })
	}
	mux.HandleFunc("GET /keys", a.admin(func(r *http.Request) (any, error) { return a.adminKeys(r.Context()) }))
	mux.HandleFunc("POST /keys/rotate", a.admin(func(r *http.Request) (any, error) {
		var in RotateRequest
		if err := readBody(r, &in); err != nil {
			return nil, err
		}
		return a.rotateKeys(r.Context(), keys.Purpose(in.Purpose))
	}))
	customer := func(do func(context.Context, *identity.Service, id.ID, CustomerRequest) (any, error)) http.HandlerFunc {
		return a.admin(func(r *http.Request) (any, error) {
			var in CustomerRequest
			if err := readBody(r, &in); err != nil {
				return nil, err
			}
			s, err := service()
			if err != nil {
				return nil, err
			}
			number, err := who(r.Context(), s, in.Who, false)
			if err != nil {
				return nil, err
			}
			return do(r.Context(), s, number, in)
		})
	}
	mux.HandleFunc("POST /customers/export", customer(func(ctx context.Context, s *identity.Service, c id.ID, _ CustomerRequest) (any, error) {
		return a.exportCustomer(ctx, s, c)
	}))
	mux.HandleFunc("POST /customers/erase", customer(func(ctx context.Context, s *identity.Service, c id.ID, in CustomerRequest) (any, error) {
		return a.eraseCustomer(ctx, s, c, in.EvenSo)
	}))
	mux.HandleFunc("GET /customers/erasures", a.admin(func(r *http.Request) (any, error) {
		return a.erasureList(r.Context())
	}))
}

func (a *App) adminKeys(ctx context.Context) ([]AdminKey, error) {
	records, err := a.Control.Keys().List(ctx)
	all := make([]AdminKey, 0, len(records))
	for _, r := range records {
		all = append(all, AdminKey{KID: r.KID, Purpose: string(r.Purpose), State: string(r.State), Created: r.CreatedAt})
	}
	return all, err
}

// rotateKeys makes new active keys; the old ones go on checking, ticket keys as long as there are tickets signed by them.
// Other nodes hear of it within keysEvery.
func (a *App) rotateKeys(ctx context.Context, purpose keys.Purpose) ([]AdminKey, error) {
	records, err := a.Control.Keys().List(ctx)
	if err != nil {
		return nil, err
	}
	known := false
	for _, r := range records {
		if r.State != keys.Active || (purpose != "" && r.Purpose != purpose) {
			continue
		}
		known = true
		if purpose == "" && !rotatable(r.Purpose) {
			continue
		}
		made, err := a.Keys.Rotate(ctx, r.Purpose)
		if err != nil {
			return nil, err
		}
		a.logged(ctx, 0, "keys.rotate", made.KID)
		a.Log.InfoContext(ctx, "a new key", "purpose", r.Purpose)
	}
	if !known {
		return nil, fault.New(fault.NotFound, "there is no key for %q; see onsale keys list", purpose)
	}
	return a.adminKeys(ctx)
}

// rotatable says of which purposes a new key does no harm: what the others hashed could not be found again.
func rotatable(p keys.Purpose) bool { return p != keys.Pepper && p != keys.Idempotency }

// A CustomerExport is everything that is known of a person (F2).
type CustomerExport struct {
	Format     int              `json:"format"` // 1
	Customer   string           `json:"customer_id"`
	Made       time.Time        `json:"made_at"`
	Name       string           `json:"name"`
	Locale     string           `json:"locale"`
	Emails     []string         `json:"emails"`
	Since      time.Time        `json:"customer_since"`
	Erased     *time.Time       `json:"erased_at,omitempty"`
	Identities []ExportIdentity `json:"identities"`
	SignIns    []ExportSignIn   `json:"sign_ins"`
	Roles      []ExportRole     `json:"roles"`
	Attendees  []ExportAttendee `json:"attendees"`
	Bookings   []ExportBooking  `json:"bookings"`
	Tickets    []ExportTicket   `json:"tickets"` // that they have now, those passed on to them, too
}

// The parts of a CustomerExport.
type (
	ExportIdentity struct {
		Issuer string    `json:"issuer"`
		Sub    string    `json:"sub"`
		Since  time.Time `json:"since"`
	}
	ExportSignIn struct {
		Method  string    `json:"method"`
		Created time.Time `json:"created_at"`
		Seen    time.Time `json:"seen_at"`
	}
	ExportRole struct {
		Organizer string    `json:"organizer_id"`
		Role      string    `json:"role"`
		Since     time.Time `json:"since"`
	}
	ExportAttendee struct {
		Booking       string `json:"booking_id"`
		Event         string `json:"event_id"`
		Place         int32  `json:"place"`
		Name          string `json:"name"`
		DocumentType  string `json:"document_type,omitempty"`
		DocumentLast4 string `json:"document_last4,omitempty"`
	}
	ExportBooking struct {
		ID       string          `json:"booking_id"`
		Event    string          `json:"event_id"`
		State    string          `json:"state"`
		Amount   int64           `json:"amount_minor"`
		Currency string          `json:"currency"`
		Created  time.Time       `json:"created_at"`
		Payments []ExportPayment `json:"payments"`
		Refunds  []ExportRefund  `json:"refunds"`
	}
	ExportPayment struct {
		Provider string `json:"provider"`
		ID       string `json:"payment_id"`
		Captured int64  `json:"captured_minor"`
		Refunded int64  `json:"refunded_minor"`
	}
	ExportRefund struct {
		ID      string    `json:"refund_id"`
		State   string    `json:"state"`
		Amount  int64     `json:"amount_minor"`
		Reason  string    `json:"reason"`
		Created time.Time `json:"created_at"`
	}
	ExportTicket struct {
		ID       string          `json:"ticket_id"`
		Booking  string          `json:"booking_id"`
		Event    string          `json:"event_id"`
		State    string          `json:"state"`
		CheckIns []ExportCheckIn `json:"check_ins"`
	}
	ExportCheckIn struct {
		At   time.Time `json:"at"`
		Gate string    `json:"gate"`
	}
)

func (a *App) exportCustomer(ctx context.Context, s *identity.Service, customer id.ID) (*CustomerExport, error) {
	p, err := s.Export(ctx, customer)
	if err != nil {
		return nil, err
	}
	a.logged(ctx, 0, "customer.export", customer.Text(id.Customer))
	e := personExport(&p, customer)
	if err := a.exportBookings(ctx, e, customer); err != nil {
		return nil, err
	}
	return e, a.exportTickets(ctx, e, customer)
}

func personExport(p *identity.Personal, customer id.ID) *CustomerExport {
	e := &CustomerExport{
		Format: 1, Customer: customer.Text(id.Customer), Made: time.Now().UTC().Truncate(time.Second), Name: p.Profile.Name, Locale: p.Profile.Locale,
		Since: p.Profile.Created, Emails: []string{}, Identities: []ExportIdentity{}, SignIns: []ExportSignIn{}, Roles: []ExportRole{},
		Attendees: []ExportAttendee{}, Bookings: []ExportBooking{}, Tickets: []ExportTicket{},
	}
	if !p.Profile.Erased.IsZero() {
		e.Erased = &p.Profile.Erased
	}
	for _, m := range p.Profile.Emails {
		e.Emails = append(e.Emails, string(m))
	}
	for _, i := range p.Identities {
		e.Identities = append(e.Identities, ExportIdentity{i.Issuer, i.Sub, i.Since})
	}
	for _, s := range p.SignIns {
		e.SignIns = append(e.SignIns, ExportSignIn{string(s.Method), s.Created, s.Seen})
	}
	for _, r := range p.Roles {
		e.Roles = append(e.Roles, ExportRole{r.Organizer.Text(id.Org), string(r.Role), r.Since})
	}
	for _, t := range p.Attendees {
		e.Attendees = append(e.Attendees, ExportAttendee{
			Booking: t.Order.Text(id.Order), Event: t.Event.Text(id.Event), Place: t.Place, Name: t.Name,
			DocumentType: string(t.DocumentType), DocumentLast4: t.DocumentLast4,
		})
	}
	return e
}

// exportPage is how many orders or tickets are read at once.
const exportPage = 200

// ordersOf gives all orders of a customer, the newest first.
func (a *App) ordersOf(ctx context.Context, customer id.ID, each func(*ledger.Order) error) error {
	for before := id.ID(0); ; {
		page, err := a.Store.OrdersOf(ctx, customer, before, exportPage)
		if err != nil {
			return err
		}
		for i := range page {
			if err := each(&page[i]); err != nil {
				return err
			}
			before = page[i].ID
		}
		if len(page) < exportPage {
			return nil
		}
	}
}

// ticketsOf gives all tickets that a customer has now.
func (a *App) ticketsOf(ctx context.Context, customer id.ID, each func(*ledger.Ticket) error) error {
	for before := id.ID(0); ; {
		page, err := a.Store.TicketsOf(ctx, customer, before, exportPage)
		if err != nil {
			return err
		}
		for i := range page {
			if err := each(&page[i]); err != nil {
				return err
			}
			before = page[i].ID
		}
		if len(page) < exportPage {
			return nil
		}
	}
}

func (a *App) exportBookings(ctx context.Context, e *CustomerExport, customer id.ID) error {
	return a.ordersOf(ctx, customer, func(o *ledger.Order) error {
		b := ExportBooking{
			ID: o.ID.Text(id.Order), Event: o.Event.Text(id.Event), State: o.State.String(), Amount: o.Amount, Currency: o.Currency,
			Created: o.Created.Std(), Payments: []ExportPayment{}, Refunds: []ExportRefund{},
		}
		payments, err := a.Store.Payments(ctx, o.ID)
		if err != nil {
			return err
		}
		for _, p := range payments {
			b.Payments = append(b.Payments, ExportPayment{p.Provider, p.ID, p.Captured, p.Refunded})
		}
		refunds, err := a.Store.RefundsOf(ctx, o.ID)
		if err != nil {
			return err
		}
		for _, r := range refunds {
			b.Refunds = append(b.Refunds, ExportRefund{r.ID.Text(id.Refund), r.State.String(), r.Amount, r.Reason, r.Created.Std()})
		}
		e.Bookings = append(e.Bookings, b)
		return nil
	})
}

func (a *App) exportTickets(ctx context.Context, e *CustomerExport, customer id.ID) error {
	return a.ticketsOf(ctx, customer, func(t *ledger.Ticket) error {
		shown := ExportTicket{ID: t.ID.Text(id.Ticket), Booking: t.Order.Text(id.Order), Event: t.Event.Text(id.Event), State: t.State.String(), CheckIns: []ExportCheckIn{}}
		uses, err := a.Store.CheckInsOf(ctx, t.ID)
		if err != nil {
			return err
		}
		for _, u := range uses {
			shown.CheckIns = append(shown.CheckIns, ExportCheckIn{u.At.Std(), u.Gate})
		}
		e.Tickets = append(e.Tickets, shown)
		return nil
	})
}
