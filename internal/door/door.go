// Package door lets people in: it reads the codes of tickets, sends them to the right gate, and keeps each use as a fact.
//
// The one idea: whether a ticket was used is decided by the ledger, once (CheckIn). A door without a network decides by
// itself, from a list that it loaded before and the signature in the code, and what it decided is a fact afterwards: Sync
// writes it down, and tells of each use that should not have been. Nothing that was written down is ever overwritten (E6).
//
// Start reading at Service.CheckIn, then List and Sync (offline.go).
package door

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"onsale/internal/cache"
	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ticket"
	"onsale/internal/venue"
)

// Limits of what a device may say.
const (
	GateBytesMax   = 64
	DeviceBytesMax = 64
	ReasonRunesMax = 200
)

// A Shard is where the tickets of one shard live: a ledger.Batcher.
type Shard interface {
	Do(ctx context.Context, c ledger.Command) (ledger.Result, error)
	Ledger() ledger.Reader
}

// Events are what the door asks the catalog: a catalog.Service.
type Events interface {
	Event(ctx context.Context, event id.ID) (*catalog.Event, error)
	Plan(ctx context.Context, hash string) (*venue.Plan, error)
}

// Options say how a Service works. Shard, Events and Keys are required.
type Options struct {
	Shard  Shard
	Events Events
	// Keys are those that may have signed tickets.
	Keys func() ticket.PublicKeys
	// Test says that tickets paid in a sandbox are let in, and others are not (E1).
	Test bool
	// CountsFor is how old the figures of Counts may be. Defaults to 5 s.
	CountsFor time.Duration
}

// A Service is the door of every event. Its methods may be called from many goroutines and on many nodes at once.
type Service struct {
	o      Options
	counts *cache.Cache[id.ID, *Counts]
}

// New makes a service.
func New(o Options) *Service {
	if o.CountsFor == 0 {
		o.CountsFor = 5 * time.Second
	}
	return &Service{o: o, counts: cache.New[id.ID, *Counts](cache.Options{CountMax: countsKept, FreshFor: o.CountsFor})}
}

// A Scan is a code held before a door.
type Scan struct {
	Event  id.ID
	Code   string // what the QR code says; or
	Ticket id.ID  // the ticket's number, typed in
	Gate   string // the key of a gate; "" where the event has none, or any will do
	Device string
	By     id.ID // who works there
}

// An Entry is a use of a ticket, or the first one where it is refused, with what the door's people want to see.
type Entry struct {
	Use    ledger.CheckedIn
	Ticket ledger.Ticket
	Place  Place
	Repeat bool // the same device said so before
}

// A Place is where a ticket's holder belongs.
type Place struct {
	Section string // the key
	Seat    string // its label, "" for a place in an area
	Area    string // its key, "" for a seat
	Gates   []string
}

// CheckIn lets the holder of a ticket in, once.
//
// Faults: invalid (the code is not one of ours, forged, or of a test sale); wrong_event; wrong_gate (with the right ones);
// those of ledger.CheckIn, ticket_used with the first use in Entry.
func (s *Service) CheckIn(ctx context.Context, scan Scan) (Entry, error) {
	if err := checkNames(scan.Gate, scan.Device); err != nil {
		return Entry{}, err
	}
	number, err := s.number(scan)
	if err != nil {
		return Entry{}, err
	}
	t, err := s.o.Shard.Ledger().Ticket(ctx, number)
	if errors.Is(err, ledger.ErrNotFound) {
		return Entry{}, fault.New(fault.TicketUnknown, "")
	}
	if err != nil {
		return Entry{}, err
	}
	if t.Event != scan.Event {
		return Entry{}, fault.New(fault.WrongEvent, "")
	}
	hall, err := s.hall(ctx, scan.Event)
	if err != nil {
		return Entry{}, err
	}
	entry := Entry{Ticket: t, Place: hall.place(&t)}
	if scan.Gate != "" {
		if err := hall.allows(scan.Gate, entry.Place); err != nil {
			return entry, err
		}
	}
	r, err := s.o.Shard.Do(ctx, ledger.CheckIn{Ticket: number, Event: scan.Event, Gate: scan.Gate, Device: scan.Device, By: scan.By})
	return entry.with(r), err // a refusal has the first use with it
}

// with fills in what the ledger answered.
func (e Entry) with(r ledger.Result) Entry {
	if r.CheckIn != nil {
		e.Use = *r.CheckIn
	}
	if r.Ticket != nil {
		e.Ticket = *r.Ticket
	}
	e.Repeat = r.Repeat
	return e
}

// number is the ticket that a scan is of. A code must be signed; a number is only typed in by people who look at a ticket.
func (s *Service) number(scan Scan) (id.ID, error) {
	bad := func(detail string) error {
		return &fault.Error{Code: fault.Invalid, Field: "code", Detail: detail}
	}
	if scan.Code == "" {
		if scan.Ticket == 0 {
			return 0, bad("scan a code, or type a ticket's number")
		}
		return scan.Ticket, nil
	}
	t, err := ticket.Verify(strings.TrimSpace(scan.Code), s.o.Keys())
	switch {
	case errors.Is(err, ticket.ErrFormat), errors.Is(err, ticket.ErrVersion):
		return 0, bad("this is not the code of a ticket of ours")
	case err != nil:
		return 0, bad("this code was not made by us: its signature is wrong")
	case t.Test && !s.o.Test:
		return 0, bad("this ticket was paid in a sandbox: it is no right of entry")
	case s.o.Test && !t.Test:
		return 0, bad("this is the door of a test sale, and the ticket is a real one")
	case id.ID(t.EventID) != scan.Event:
		return 0, fault.New(fault.WrongEvent, "")
	}
	return id.ID(t.ID), nil
}

func checkNames(gate, device string) error {
	for _, n := range []struct {
		field, text string
		most        int
	}{{"gate", gate, GateBytesMax}, {"device", device, DeviceBytesMax}} {
		if len(n.text) > n.most || strings.ContainsFunc(n.text, func(c rune) bool { return c < ' ' || c > '~' }) {
			return &fault.Error{Code: fault.Invalid, Field: n.field, Detail: "printable ASCII characters, at most 64"}
		}
	}
	return nil
}

// Undo takes a check-in back; it stays written down, as undone. Faults: those of ledger.UndoCheckIn; invalid (no reason).
func (s *Service) Undo(ctx context.Context, event, number, by id.ID, reason string) (Entry, error) {
	bad := catalog.CheckText(reason, ReasonRunesMax)
	if reason == "" {
		bad = "is missing: say why"
	}
	if bad != "" {
		return Entry{}, &fault.Error{Code: fault.Invalid, Field: "reason", Detail: "the reason " + bad}
	}
	r, err := s.o.Shard.Do(ctx, ledger.UndoCheckIn{Ticket: number, Event: event, By: by, Reason: reason})
	if err != nil {
		return Entry{}, err
	}
	hall, err := s.hall(ctx, event)
	if err != nil {
		return Entry{}, err
	}
	s.counts.Forget(event)
	e := Entry{}.with(r)
	e.Place = hall.place(&e.Ticket)
	return e, nil
}

// A hall is an event's places and gates.
type hall struct {
	event *catalog.Event
	plan  *venue.Plan
}

func (s *Service) hall(ctx context.Context, event id.ID) (hall, error) {
	e, err := s.o.Events.Event(ctx, event)
	if err != nil {
		return hall{}, err
	}
	plan, err := s.o.Events.Plan(ctx, e.PlanHash)
	return hall{e, plan}, err
}

func (h hall) place(t *ledger.Ticket) Place {
	var p Place
	section := -1
	switch {
	case t.Seat >= 0 && int(t.Seat) < len(h.plan.Seats):
		p.Seat = h.plan.Seats[t.Seat].ID
		section = h.plan.SectionOf(t.Seat)
	case t.Area >= 0 && int(t.Area) < len(h.plan.Areas):
		p.Area = h.plan.Areas[t.Area].ID
		section = h.plan.Areas[t.Area].Section
	}
	if section >= 0 {
		p.Section = h.plan.Sections[section].Key
	}
	for _, g := range h.event.Gates {
		if admits(g, p.Section) {
			p.Gates = append(p.Gates, g.Key)
		}
	}
	return p
}

// admits says whether a gate leads to a section; one without sections leads to all.
func admits(g catalog.Gate, section string) bool {
	return len(g.Sections) == 0 || slices.Contains(g.Sections, section)
}

// allows refuses a gate that does not lead to a place.
func (h hall) allows(gate string, p Place) error {
	if !slices.ContainsFunc(h.event.Gates, func(g catalog.Gate) bool { return g.Key == gate }) {
		return &fault.Error{Code: fault.Invalid, Field: "gate", Detail: "this event has no such gate"}
	}
	if slices.Contains(p.Gates, gate) {
		return nil
	}
	if len(p.Gates) == 0 {
		return fault.New(fault.WrongGate, "no gate leads there: ask the box office")
	}
	return fault.New(fault.WrongGate, "the right gate is %s", strings.Join(p.Gates, " or "))
}
