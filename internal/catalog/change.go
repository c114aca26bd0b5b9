package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// changeTriesMax is how often a change is decided again after somebody else was faster.
const changeTriesMax = 5

// Change does a verb to an event and answers the event after it, once the ledger has it. Doing it twice is harmless.
// Faults: event_unknown; conflict.
func (s *Service) Change(ctx context.Context, event id.ID, verb Verb) (Event, error) {
	for range changeTriesMax {
		current, err := s.o.Store.Event(ctx, event)
		if err != nil {
			return Event{}, notFound(err, fault.EventUnknown)
		}
		next, err := current.after(verb, s.now())
		if err != nil {
			return Event{}, err
		}
		if !equal(next, current) {
			show, err := s.o.Store.Show(ctx, current.Show)
			if err != nil {
				return Event{}, err
			}
			next.Version++
			next.Updated = s.now()
			err = s.o.Store.PutEvents(ctx, nil, []Event{next}, []string{SearchText(&next, &show)})
			if errors.Is(err, ErrConflict) {
				continue
			}
			if err != nil {
				return Event{}, err
			}
		}
		s.events.Put(event, &next)
		return next, s.send(ctx, &next)
	}
	return Event{}, fault.New(fault.Conflict, "others keep changing this event: try again")
}

// An Import is what an event file says: a show, and its events without ids, versions and organizer. Their State is
// Draft or OnSale.
type Import struct {
	Show   Show
	Events []Event
}

// Imported says what became of one event of an import.
type Imported struct {
	Event  Event
	Action string // "created", "updated", "unchanged"
}

// Import makes or changes a show and its events, all or nothing, known again by their keys: importing the same twice
// changes nothing. An event that is no draft any more keeps its state, and a sale that has begun is not put behind a
// later opening (pause it instead); plan and currency of an event stay what they were at first. Events that are there and
// not in the import stay as they are. What is wrong is a *RefusedError with all of it. Faults: conflict.
func (s *Service) Import(ctx context.Context, organizer id.ID, in Import) ([]Imported, error) {
	for range changeTriesMax {
		done, err := s.importOnce(ctx, organizer, in)
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var failed error
		for i := range done {
			s.events.Put(done[i].Event.ID, &done[i].Event)
			// What the ledger did not take now, Heal sends again.
			failed = errors.Join(failed, s.send(ctx, &done[i].Event))
		}
		return done, failed
	}
	return nil, fault.New(fault.Conflict, "others keep changing these events: try again")
}

func (s *Service) importOnce(ctx context.Context, organizer id.ID, in Import) ([]Imported, error) {
	show, renamed, err := s.importShow(ctx, organizer, in.Show)
	if err != nil {
		return nil, err
	}
	events, err := s.o.Store.EventsOf(ctx, show.ID)
	if err != nil {
		return nil, err
	}
	existing := make(map[string]Event, len(events))
	for _, e := range events {
		existing[e.Key] = e
	}
	var r Report
	show.Validate(&r, "show.")
	if n := len(in.Events); n == 0 || n > EventsPerImportMax {
		r.Add(0, "performances", "has %d performances; 1 to %d are possible", n, EventsPerImportMax)
		return nil, r.Err()
	}
	done := make([]Imported, len(in.Events))
	seen := map[string]bool{}
	for i, e := range in.Events {
		path := fmt.Sprintf("performances[%d].", i)
		if seen[e.Key] {
			r.Add(0, path+"key", "%.80q is there twice: give each performance its own", e.Key)
		}
		seen[e.Key] = true
		e.Organizer, e.Show = organizer, show.ID
		old, known := existing[e.Key]
		e.Room.Paused, e.Room.Closed = old.Room.Paused, old.Room.Closed // a file does not know of them
		if done[i], err = s.merge(&r, path, e, old, known); err != nil {
			return nil, err
		}
		if renamed && done[i].Action == "unchanged" { // it is found by its show's title, too
			done[i].Action = "updated"
			done[i].Event.Version++
			done[i].Event.Updated = s.now()
		}
		if err := s.againstPlan(ctx, &r, path, &done[i].Event); err != nil {
			return nil, err
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return done, s.putImported(ctx, show, done)
}

// importShow is the show as it is to be stored, and whether its title or performers change.
func (s *Service) importShow(ctx context.Context, organizer id.ID, show Show) (Show, bool, error) {
	old, err := s.o.Store.ShowByKey(ctx, organizer, show.Key)
	show.Organizer, show.Updated = organizer, s.now()
	switch {
	case errors.Is(err, ErrNotFound):
		show.ID, err = s.o.NewID(0)
		return show, false, err
	case err != nil:
		return show, false, err
	}
	show.ID = old.ID
	return show, show.Title != old.Title || !slices.Equal(show.Performers, old.Performers), nil
}

// merge is what becomes of an imported event, given the one that is there.
func (s *Service) merge(r *Report, path string, e, old Event, known bool) (Imported, error) {
	e.Format = FormatVersion
	e.Room = e.Room.Filled()
	if !known {
		number, err := s.o.NewID(0)
		e.ID, e.Version, e.Updated = number, 1, s.now()
		e.Validate(r, path)
		return Imported{Event: e, Action: "created"}, err
	}
	e.ID, e.Version, e.Updated = old.ID, old.Version, old.Updated
	if old.State != Draft {
		e.State = old.State
		if opened(&old, s.now()) && e.SaleOpens.After(old.SaleOpens) {
			e.SaleOpens = old.SaleOpens
			e.Room.JoinsOpen = notAfter(e.Room.JoinsOpen, e.SaleOpens)
		}
	}
	e.Validate(r, path)
	if e.PlanHash != old.PlanHash {
		r.Add(0, path+"plan", "an event keeps its plan (%.12s…): give the performance another key to make a new event", old.PlanHash)
	}
	if e.Currency != old.Currency {
		r.Add(0, path+"currency", "an event keeps its currency (%s): give the performance another key to make a new event", old.Currency)
	}
	if equal(e, old) {
		return Imported{Event: old, Action: "unchanged"}, nil
	}
	e.Version++
	e.Updated = s.now()
	return Imported{Event: e, Action: "updated"}, nil
}

// notAfter is an instant, or the one that it must not be behind.
func notAfter(at, latest time.Time) time.Time {
	if at.After(latest) {
		return latest
	}
	return at
}

// opened says that an event's sale has begun: by its window, or before it by hand, which its file does not know of.
func opened(e *Event, now time.Time) bool {
	return !e.SaleOpens.IsZero() && !e.SaleOpens.After(now)
}

// againstPlan adds what the event's plan does not have.
func (s *Service) againstPlan(ctx context.Context, r *Report, path string, e *Event) error {
	plan, err := s.Plan(ctx, e.PlanHash)
	if fault.CodeOf(err) == fault.NotFound {
		if e.PlanHash == "" {
			r.Add(0, path+"plan", "no plan is said: name the plan's file in the event's file, or send the plan to the API first and give its plan_hash")
			return nil
		}
		r.Add(0, path+"plan", "there is no plan %.80q: name the plan's file in the event's file, or send the plan to the API first (POST …/plans)", e.PlanHash)
		return nil
	}
	if err != nil {
		return err
	}
	var refused *RefusedError
	if _, err := e.LedgerEvent(plan); errors.As(err, &refused) {
		for _, p := range refused.Problems {
			r.Add(0, path+p.Key, "%s", p.Message)
		}
	}
	return nil
}

func (s *Service) putImported(ctx context.Context, show Show, done []Imported) error {
	var events []Event
	var search []string
	for i := range done {
		if done[i].Action != "unchanged" {
			events = append(events, done[i].Event)
			search = append(search, SearchText(&done[i].Event, &show))
		}
	}
	if err := s.o.Store.PutEvents(ctx, &show, events, search); err != nil {
		return err
	}
	s.shows.Put(show.ID, &show)
	return nil
}

// equal compares what people edit, and the state, as it is stored.
func equal(a, b Event) bool {
	a.Version, b.Version = 0, 0
	a.Updated, b.Updated = time.Time{}, time.Time{}
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// send tells the ledger the current version of an event.
func (s *Service) send(ctx context.Context, e *Event) error {
	plan, err := s.Plan(ctx, e.PlanHash)
	if err != nil {
		return err
	}
	event, err := e.LedgerEvent(plan)
	if err != nil {
		return err
	}
	command := ledger.SetEvent{Event: event}
	if e.Version == 1 {
		if command.Layout, err = LedgerLayout(plan, e.PlanHash); err != nil {
			return err
		}
	}
	result, err := s.o.Ledger.Do(ctx, command) // a refusal is result.Fault and err both
	if command.Layout == nil && wantsLayout(result.Fault) {
		// The ledger has never heard of the event: its first version was lost on the way.
		if command.Layout, err = LedgerLayout(plan, e.PlanHash); err != nil {
			return err
		}
		result, err = s.o.Ledger.Do(ctx, command)
	}
	if result.Fault != nil && result.Fault.Code == fault.Conflict && s.overtaken(ctx, e) {
		return nil // the version after this one came first, and was sent by who made it
	}
	if result.Fault != nil {
		return fmt.Errorf("the ledger refuses version %d of event %s: %w", e.Version, e.ID.Text(id.Event), result.Fault)
	}
	if err != nil {
		return fmt.Errorf("the ledger was not told of event %s: %w", e.ID.Text(id.Event), err)
	}
	return s.o.Store.MarkSent(ctx, e.ID, e.Version)
}

// overtaken says whether the store has a newer version of an event.
func (s *Service) overtaken(ctx context.Context, e *Event) bool {
	current, err := s.o.Store.Event(ctx, e.ID)
	return err == nil && current.Version > e.Version
}

func wantsLayout(f *fault.Error) bool {
	return f != nil && f.Code == fault.Invalid && f.Field == "layout"
}
