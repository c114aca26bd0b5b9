package controltest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/id"
	"onsale/internal/identity"
)

func attending(order, event, customer id.ID, place int32, name string) identity.Attending {
	return identity.Attending{
		Order: order, Event: event, Customer: customer, Place: place, Name: name,
		DocumentType: identity.Passport, DocumentHash: "hash of " + name, DocumentLast4: "1234",
	}
}

func attendees(t *testing.T, p Ports, again func() Ports) {
	ctx, s := t.Context(), p.People
	ann, bob, event := newCustomer(t, p, "ann@x.de"), newCustomer(t, p, "bob@x.de"), next()
	order, later := next(), next()
	all := []identity.Attending{attending(order, event, ann, 0, "Ann"), attending(order, event, ann, 1, "李安")}
	for range 2 {
		ok(t, s.PutAttendees(ctx, all))
	}
	moved := attending(order, event, bob, 1, "Bob")
	for range 2 {
		ok(t, s.MoveAttendee(ctx, moved))
	}
	ok(t, s.PutAttendees(ctx, all)) // late: the transfer stays
	got, err := again().People.Attendees(ctx, order)
	ok(t, err)
	same(t, "attendees", got, []identity.Attending{all[0], moved})
	// Where nobody was named yet; of a customer whom only the ledger knows.
	unknown := attending(later, event, next(), 2, "Eve")
	ok(t, s.MoveAttendee(ctx, unknown))
	ok(t, s.PutAttendees(ctx, []identity.Attending{attending(next(), next(), ann, 0, "Elsewhere")}))
	page, err := s.AttendeesOf(ctx, event, 0, 0, 2)
	ok(t, err)
	same(t, "the first page", page, []identity.Attending{all[0], moved})
	page, err = s.AttendeesOf(ctx, event, order, 0, 2)
	ok(t, err)
	same(t, "from within an order", page, []identity.Attending{moved, unknown})
	ok(t, s.DropAttendees(ctx, order))
	if got, err := s.Attendees(ctx, order); err != nil || len(got) != 0 {
		t.Errorf("dropped: %+v, %v", got, err)
	}
	if got, err := s.Attendees(ctx, later); err != nil || len(got) != 1 {
		t.Errorf("another order's: %+v, %v", got, err)
	}
}

func documents(t *testing.T, p Ports, _ func() Ports) {
	ctx, s := t.Context(), p.People
	g := setUp(t, p.Catalog)
	past, coming := g.event("past", 0), g.event("coming", 50)
	ok(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{past, coming}, []string{"", ""}))
	ann := newCustomer(t, p, "ann@x.de")
	old, young := next(), next()
	for place := range int32(3) {
		ok(t, s.PutAttendees(ctx, []identity.Attending{attending(old, past.ID, ann, place, "Ann"), attending(young, coming.ID, ann, place, "Ann")}))
	}
	for _, step := range []struct {
		before time.Time
		max, n int
	}{{at(0), 10, 0}, {at(1), 2, 2}, {at(1), 2, 1}, {at(1), 2, 0}, {at(50), 10, 0}} {
		n, err := s.PruneDocuments(ctx, step.before, step.max)
		ok(t, err)
		if n != step.n {
			t.Errorf("before %s: %d places, want %d", step.before, n, step.n)
		}
	}
	for order, kept := range map[id.ID]bool{old: false, young: true} {
		all, err := s.Attendees(ctx, order)
		ok(t, err)
		for _, a := range all {
			if a.Name != "Ann" || (a.DocumentHash != "") != kept || (a.DocumentLast4 != "") != kept || (a.DocumentType != "") != kept {
				t.Errorf("%+v", a)
			}
		}
	}
}

func erase(t *testing.T, p Ports, again func() Ports) {
	ctx, s := t.Context(), p.People
	house, event := newOrganizer(t, p, "house"), next()
	fill := func(name string, role identity.Role) id.ID {
		o := opening(identity.Named{Issuer: "iss", Sub: name, Email: identity.Email(name + "@x.de")}, name, 0)
		customer, err := s.OpenSignIn(ctx, o)
		ok(t, err)
		ok(t, s.SetProfile(ctx, customer, name, "en"))
		ok(t, s.PutRole(ctx, membership(customer, house, role, 0), entry("role.set")))
		ok(t, s.PutInvitation(ctx, invitation(newOrganizer(t, p, "of-"+name), name+"@x.de", "to "+name, identity.Door, 0), 5, entry("invitation.make")))
		ok(t, s.PutAttendees(ctx, []identity.Attending{attending(next(), event, customer, 0, name)}))
		return customer
	}
	ann, bob := fill("ann", identity.Owner), fill("bob", identity.Operator)
	before, err := s.ExportCustomer(ctx, ann)
	ok(t, err)
	if before.Profile.Name != "ann" || len(before.Identities) != 2 || len(before.SignIns) != 1 || len(before.Roles) != 1 || len(before.Attendees) != 1 {
		t.Errorf("exported: %+v", before)
	}
	_, err = s.ExportCustomer(ctx, next())
	want(t, err, identity.ErrUnknown)
	bobBefore, err := s.ExportCustomer(ctx, bob)
	ok(t, err)
	want(t, s.EraseCustomer(ctx, ann, at(1), false), identity.ErrLastOwner)
	if now, err := s.ExportCustomer(ctx, ann); err != nil || !reflect.DeepEqual(now, before) {
		t.Errorf("what was refused did something: %+v, %v", now, err)
	}
	for _, hours := range []int{1, 2} { // again is harmless, and keeps the time
		ok(t, s.EraseCustomer(ctx, ann, at(hours), true))
	}
	after, err := again().People.ExportCustomer(ctx, ann)
	ok(t, err)
	same(t, "what is left of ann", after, identity.Personal{Profile: identity.Profile{Customer: ann, Created: before.Profile.Created, Erased: at(1)}})
	same(t, "bob", func() identity.Personal { p, _ := s.ExportCustomer(ctx, bob); return p }(), bobBefore)
	_, err = s.SignIn(ctx, hash("ann"))
	want(t, err, identity.ErrUnknown)
	_, err = s.AcceptInvitation(ctx, hash("to ann"), ann, at(1), entry("x"))
	want(t, err, identity.ErrUnknown)
	// Nothing comes back.
	want(t, s.SetProfile(ctx, ann, "Ann", ""), identity.ErrErased)
	want(t, s.PutAttendees(ctx, []identity.Attending{attending(next(), event, ann, 0, "Ann")}), identity.ErrErased)
	want(t, s.MoveAttendee(ctx, attending(next(), event, ann, 0, "Ann")), identity.ErrErased)
	want(t, s.PutRole(ctx, membership(ann, house, identity.Door, 0), entry("x")), identity.ErrUnknown)
	if again := newCustomer(t, p, "ann@x.de"); again == ann {
		t.Error("who comes back is the erased customer")
	}
	// One whom this database does not know: a restored backup is older.
	stranger := next()
	ok(t, s.EraseCustomer(ctx, stranger, at(3), true))
	list, err := s.Erasures(ctx)
	ok(t, err)
	same(t, "erasures", list, []identity.Erasure{{Customer: ann, At: at(1)}, {Customer: stranger, At: at(3)}})
}

// erasedAtOnce has a customer sign in in all ways while being erased: afterwards nothing leads to the erased customer.
func erasedAtOnce(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	handles := []identity.PeopleStore{p.People, again().People}
	for round := range 10 {
		address := fmt.Sprintf("ann%d@x.de", round)
		ann := newCustomer(t, p, address)
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				name := fmt.Sprintf("%d-%d", round, i)
				who := identity.Named{Issuer: "iss", Sub: name, Email: identity.Email(address)}
				var err error
				if i%2 == 0 {
					_, err = handles[i/3].PutCustomer(context.Background(), who, next())
				} else {
					_, err = handles[i/3].OpenSignIn(context.Background(), opening(who, name, 0))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if err := handles[round%2].EraseCustomer(context.Background(), ann, at(1), false); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		left, err := p.People.ExportCustomer(ctx, ann)
		ok(t, err)
		if len(left.Identities) != 0 || len(left.SignIns) != 0 || left.Profile.Erased.IsZero() {
			t.Fatalf("after erasing: %+v", left)
		}
	}
}
