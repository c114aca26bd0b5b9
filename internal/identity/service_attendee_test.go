package identity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
)

const (
	residentOld = "110105491231002"
	resident    = "11010519491231002X"
)

var (
	ann = identity.Attendee{Name: "Ann", DocumentType: identity.Passport, DocumentNumber: "e1234567"}
	li  = identity.Attendee{Name: "李安", DocumentType: identity.CNResidentID, DocumentNumber: resident}
)

func TestE8CheckAttendees(t *testing.T) {
	h := newHouse(t)
	s := h.still()
	for name, c := range map[string]struct {
		count    int
		document bool
		all      []identity.Attendee
		field    string // "": good
	}{
		"nobody named":     {2, false, nil, ""},
		"nobody, needed":   {2, true, nil, "attendees"},
		"all":              {2, true, []identity.Attendee{ann, li}, ""},
		"too few":          {2, false, []identity.Attendee{ann}, "attendees"},
		"too many":         {1, false, []identity.Attendee{ann, li}, "attendees"},
		"no document":      {2, true, []identity.Attendee{ann, {Name: "Bob"}}, "attendees[1].document_number"},
		"none needed":      {2, false, []identity.Attendee{ann, {Name: "Bob"}}, ""},
		"no name":          {2, false, []identity.Attendee{ann, {}}, "attendees[1].name"},
		"one person twice": {2, true, []identity.Attendee{li, {Name: "Li An", DocumentType: identity.CNResidentID, DocumentNumber: residentOld}}, "attendees[1].document_number"},
		"same, not needed": {2, false, []identity.Attendee{{Name: "A"}, {Name: "B"}}, ""},
		"over the limit":   {identity.AttendeesMax + 1, false, make([]identity.Attendee, identity.AttendeesMax+1), "attendees"},
	} {
		got, err := s.CheckAttendees(t.Context(), c.count, c.document, c.all)
		if c.field == "" {
			if err != nil || len(got) != len(c.all) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		} else if fault.CodeOf(err) != fault.Invalid || fault.Of(err).Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type verifier func(identity.Attendee) error

func (v verifier) VerifyDocument(_ context.Context, a identity.Attendee) error { return v(a) }

func TestE8AnOutsideServiceMayBeAsked(t *testing.T) {
	h := newHouse(t)
	var asked []identity.Attendee
	answer := error(nil)
	s := h.still(func(o *identity.ServiceOptions) {
		o.Documents = verifier(func(a identity.Attendee) error {
			asked = append(asked, a)
			if a.DocumentType == identity.CNResidentID {
				return answer
			}
			return nil
		})
	})
	check := func() error {
		asked = nil
		_, err := s.CheckAttendees(t.Context(), 3, false, []identity.Attendee{ann, {Name: "Bob"}, li})
		return err
	}
	if err := check(); err != nil || len(asked) != 2 || asked[0].DocumentNumber != "E1234567" {
		t.Errorf("asked about %+v, %v", asked, err)
	}
	answer = identity.ErrDocumentRefused
	if err := check(); fault.CodeOf(err) != fault.Invalid || fault.Of(err).Field != "attendees[2].document_number" {
		t.Error(err)
	}
	answer = errors.New("no answer about 李安 " + resident)
	if err := check(); fault.CodeOf(err) != fault.Busy || strings.Contains(err.Error(), resident) || strings.Contains(err.Error(), "李安") {
		t.Error(err)
	}
}

func TestE8DocumentHashes(t *testing.T) {
	h := newHouse(t)
	a, b := h.still(), h.still()
	one, two := h.ids.MustNext(0), h.ids.MustNext(0)
	hash := a.DocumentHash(one, identity.CNResidentID, resident)
	if len(hash) != 43 || strings.Contains(hash, resident[:6]) {
		t.Errorf("%q", hash)
	}
	if b.DocumentHash(one, identity.CNResidentID, resident) != hash {
		t.Error("another node has another hash")
	}
	for what, other := range map[string]string{
		"event": a.DocumentHash(two, identity.CNResidentID, resident), "kind": a.DocumentHash(one, identity.Passport, resident),
		"number": a.DocumentHash(one, identity.CNResidentID, resident[:17]), "pepper": newHouse(t).still().DocumentHash(one, identity.CNResidentID, resident),
	} {
		if other == hash {
			t.Errorf("another %s has the same hash", what)
		}
	}
	checked, err := a.CheckAttendees(t.Context(), 2, false, []identity.Attendee{{Name: "Bob"}, {Name: "Li", DocumentType: identity.CNResidentID, DocumentNumber: residentOld}})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.DocumentHashes(one, checked); len(got) != 2 || got[0] != "" || got[1] != hash {
		t.Errorf("%q, want none and that of the same person's new number", got)
	}
}

func (h *house) attendees(s *identity.Service, all ...identity.Attendee) []identity.Attendee {
	h.t.Helper()
	checked, err := s.CheckAttendees(h.t.Context(), len(all), false, all)
	if err != nil {
		h.t.Fatal(err)
	}
	return checked
}

func TestE8DocumentsGoAfterTheEvent(t *testing.T) {
	h := newHouse(t)
	s := h.still()
	ctx := t.Context()
	customer, order, event := h.customer(s, "ann@example.com"), h.ids.MustNext(0), h.event()
	all := h.attendees(s, ann, li)
	for range 2 {
		if err := s.PutAttendees(ctx, order, event, customer, all); err != nil {
			t.Fatal(err)
		}
	}
	bob := h.attendees(s, identity.Attendee{Name: "Bob", DocumentType: identity.Passport, DocumentNumber: "X7654321"})[0]
	receiver := h.customer(s, "bob@example.com")
	if err := s.MoveAttendee(ctx, identity.Place{Order: order, Event: event, Customer: receiver, Place: 1}, bob); err != nil {
		t.Fatal(err)
	}
	stored := func() []identity.Attending {
		got, err := s.Attendees(ctx, order)
		if err != nil || len(got) != 2 {
			t.Fatalf("%+v, %v", got, err)
		}
		return got
	}
	if got := stored(); got[0].Name != "Ann" || got[0].DocumentLast4 != "4567" || got[0].DocumentHash != s.DocumentHash(event, identity.Passport, "E1234567") ||
		got[1].Name != "Bob" || got[1].Customer != receiver {
		t.Errorf("%+v", got)
	}
	if page, err := s.AttendeesOf(ctx, event, 0, 0, 10); err != nil || len(page) != 2 {
		t.Errorf("%+v, %v", page, err)
	}
	h.clock.at.Store(eventStarts.Add(31*24*time.Hour - time.Second).UnixMilli())
	if err := s.Prune(ctx); err != nil || stored()[0].DocumentHash == "" {
		t.Errorf("gone too early: %v", err)
	}
	h.clock.forward(2 * time.Second)
	if err := s.Prune(ctx); err != nil {
		t.Fatal(err)
	}
	if got := stored(); got[0].DocumentHash != "" || got[0].DocumentLast4 != "" || got[0].DocumentType != "" || got[0].Name != "Ann" {
		t.Errorf("%+v", got)
	}
	if err := s.DropAttendees(ctx, order); err != nil {
		t.Fatal(err)
	}
}

var eventStarts = time.Date(2027, 6, 1, 20, 0, 0, 0, time.UTC)

func (h *house) event() id.ID {
	h.t.Helper()
	c := h.db.Catalog()
	organizer := h.organizer("house")
	plan := catalog.Plan{Hash: "feed", Organizer: organizer, Name: "Hall", SeatCount: 1, Body: []byte{1}, Created: h.clock.now()}
	show := catalog.Show{ID: h.ids.MustNext(0), Organizer: organizer, Key: "aurora", Title: "Aurora"}
	e := catalog.Event{ID: h.ids.MustNext(0), Organizer: organizer, Show: show.ID, Key: "one", Version: 1, PlanHash: "feed", Starts: eventStarts}
	if err := errors.Join(c.PutPlan(h.t.Context(), plan), c.PutEvents(h.t.Context(), &show, []catalog.Event{e}, []string{""})); err != nil {
		h.t.Fatal(err)
	}
	return e.ID
}

func TestF2EraseAndEraseAgain(t *testing.T) {
	h := newHouse(t)
	s := h.node()
	ctx := t.Context()
	in := h.signIn(s, "ann@example.com")
	customer := in.SignIn.Customer
	if err := s.SetProfile(ctx, customer, "Ann", "en"); err != nil {
		t.Fatal(err)
	}
	order := h.ids.MustNext(0)
	if err := s.PutAttendees(ctx, order, h.ids.MustNext(0), customer, h.attendees(s, ann)); err != nil {
		t.Fatal(err)
	}
	p, err := s.Export(ctx, customer)
	if err != nil || p.Profile.Name != "Ann" || len(p.Attendees) != 1 || len(p.SignIns) != 1 || len(p.Identities) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := s.SignedIn(ctx, in.Token); err != nil {
		t.Fatal(err)
	}
	if err := s.Erase(ctx, identity.Actor{Customer: customer}, customer); err != nil {
		t.Fatal(err)
	}
	_, err = s.SignedIn(ctx, in.Token) // at once, on this node
	wantFault(t, err, fault.TokenInvalid)
	wantFault(t, s.SetProfile(ctx, customer, "Ann", ""), fault.NotFound)
	wantFault(t, s.PutAttendees(ctx, order, h.ids.MustNext(0), customer, h.attendees(s, ann)), fault.NotFound)
	list, err := s.Erasures(ctx)
	if err != nil || len(list) != 1 || list[0].Customer != customer {
		t.Fatalf("%+v, %v", list, err)
	}

	// A backup from before, restored.
	restored := newHouse(t)
	r := restored.node()
	if got, err := restored.store.PutCustomer(ctx, identity.Named{Issuer: identity.EmailIssuer, Sub: "ann@example.com"}, customer); err != nil || got != customer {
		t.Fatal(got, err)
	}
	house := restored.organizer("house")
	if err := r.SetRole(ctx, identity.Actor{}, customer, house, identity.Owner); err != nil { // as it was then
		t.Fatal(err)
	}
	for range 2 {
		if n, err := r.EraseAgain(ctx, list); err != nil || n != 1 {
			t.Fatalf("%d, %v", n, err)
		}
	}
	_, err = r.CustomerOf(ctx, "ann@example.com")
	wantFault(t, err, fault.NotFound)
	if p, err := r.Export(ctx, customer); err != nil || len(p.Identities) != 0 || len(p.Roles) != 0 || !p.Profile.Erased.Equal(list[0].At) {
		t.Errorf("%+v, %v", p, err)
	}
}
