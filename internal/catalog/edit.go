package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// What organizers edit one by one. Each change names the version that it was made from, so that of two people who edit the
// same thing at once the second one is told, and nothing is lost.

// Organizer is one by its id. Fault: not_found.
func (s *Service) Organizer(ctx context.Context, number id.ID) (Organizer, error) {
	all, err := s.o.Store.Organizers(ctx)
	if err != nil {
		return Organizer{}, err
	}
	if i := slices.IndexFunc(all, func(o Organizer) bool { return o.ID == number }); i >= 0 {
		return all[i], nil
	}
	return Organizer{}, fault.New(fault.NotFound, "")
}

// ShowsMax is how many shows a page has at most.
const ShowsMax = 200

// Shows are an organizer's, by id after the given one, at most max.
func (s *Service) Shows(ctx context.Context, organizer, after id.ID, max int) ([]Show, error) {
	return s.o.Store.Shows(ctx, organizer, after, min(max, ShowsMax))
}

// EventsOf are all events of a show, by start, drafts too.
func (s *Service) EventsOf(ctx context.Context, show id.ID) ([]Event, error) {
	return s.o.Store.EventsOf(ctx, show)
}

// Current is an event as the store has it now, not from memory: what is to be edited.
func (s *Service) Current(ctx context.Context, event id.ID) (Event, error) {
	e, err := s.o.Store.Event(ctx, event)
	return e, notFound(err, fault.EventUnknown)
}

// NewShow makes a show. What is wrong is a *RefusedError. Fault: conflict (the organizer has a show with this key).
func (s *Service) NewShow(ctx context.Context, organizer id.ID, show Show) (Show, error) {
	show.Organizer, show.Updated = organizer, s.now()
	var r Report
	show.Validate(&r, "")
	if err := r.Err(); err != nil {
		return Show{}, err
	}
	if old, err := s.o.Store.ShowByKey(ctx, organizer, show.Key); err == nil {
		return Show{}, fault.New(fault.Conflict, "there is a show with this key already: %s", old.ID.Text(id.Show))
	} else if !errors.Is(err, ErrNotFound) {
		return Show{}, err
	}
	var err error
	if show.ID, err = s.o.NewID(0); err != nil {
		return Show{}, err
	}
	if err := s.o.Store.PutEvents(ctx, &show, nil, nil); err != nil {
		return Show{}, changed(err)
	}
	return show, nil
}

// EditShow changes what edit does to a copy, but for id, organizer and key. Events that have the show's title or performers
// get the new ones. updated is the show's Updated that the change was made from (zero: whatever it is). Faults: not_found;
// conflict (it has changed since).
func (s *Service) EditShow(ctx context.Context, show id.ID, updated time.Time, edit func(*Show)) (Show, error) {
	old, err := s.o.Store.Show(ctx, show)
	if err != nil {
		return Show{}, notFound(err, fault.NotFound)
	}
	if !updated.IsZero() && !updated.Equal(old.Updated) {
		return Show{}, fault.New(fault.Conflict, "the show has changed since: read it again")
	}
	next := old
	edit(&next)
	next.ID, next.Organizer, next.Key = old.ID, old.Organizer, old.Key
	next.Updated = s.now()
	if !next.Updated.After(old.Updated) { // two changes within a millisecond are two versions
		next.Updated = old.Updated.Add(time.Millisecond)
	}
	var r Report
	next.Validate(&r, "")
	if err := r.Err(); err != nil {
		return Show{}, err
	}
	events, texts, err := s.renamed(ctx, &old, &next)
	if err != nil {
		return Show{}, err
	}
	if err := s.o.Store.PutEvents(ctx, &next, events, texts); err != nil {
		return Show{}, changed(err)
	}
	s.shows.Put(show, &next)
	var failed error
	for i := range events {
		s.events.Put(events[i].ID, &events[i])
		failed = errors.Join(failed, s.send(ctx, &events[i])) // what fails Heal sends again
	}
	return next, failed
}

// renamed are a show's events as they are once it has its new title and performers: found by these, and shown with them
// where they had no others.
func (s *Service) renamed(ctx context.Context, old, next *Show) (events []Event, texts []string, err error) {
	if next.Title == old.Title && slices.Equal(next.Performers, old.Performers) {
		return nil, nil, nil
	}
	if events, err = s.o.Store.EventsOf(ctx, old.ID); err != nil {
		return nil, nil, err
	}
	for i := range events {
		e := &events[i]
		if e.Title == old.Title {
			e.Title = next.Title
		}
		if slices.Equal(e.Performers, old.Performers) {
			e.Performers = next.Performers
		}
		e.Version++
		e.Updated = s.now()
		texts = append(texts, SearchText(e, next))
	}
	return events, texts, nil
}

// NewEvent makes an event of a show; its State is Draft or OnSale. What is wrong is a *RefusedError. Faults: not_found (the
// show); conflict (the show has an event with this key).
func (s *Service) NewEvent(ctx context.Context, show id.ID, e Event) (Event, error) {
	w, err := s.o.Store.Show(ctx, show)
	if err != nil {
		return Event{}, notFound(err, fault.NotFound)
	}
	events, err := s.o.Store.EventsOf(ctx, show)
	if err != nil {
		return Event{}, err
	}
	for _, other := range events {
		if other.Key == e.Key {
			return Event{}, fault.New(fault.Conflict, "the show has an event with this key already: %s", other.ID.Text(id.Event))
		}
	}
	e.Organizer, e.Show = w.Organizer, show
	if e.Title == "" {
		e.Title = w.Title
	}
	if e.Performers == nil {
		e.Performers = w.Performers
	}
	return s.put(ctx, &w, e, Event{}, false)
}

// EditEvent changes what edit does to a copy, but for id, show, organizer and key; and its plan and currency stay what they
// were at first. A draft may become OnSale, other states change by verbs. version is the event's that the change was made
// from (0: whatever it is). What is wrong is a *RefusedError. Faults: event_unknown; conflict (it has changed since).
func (s *Service) EditEvent(ctx context.Context, event id.ID, version int64, edit func(*Event)) (Event, error) {
	for range changeTriesMax {
		old, err := s.o.Store.Event(ctx, event)
		if err != nil {
			return Event{}, notFound(err, fault.EventUnknown)
		}
		if version != 0 && version != old.Version {
			return Event{}, fault.New(fault.Conflict, "the event has changed since: it is at version %d; read it again", old.Version)
		}
		w, err := s.o.Store.Show(ctx, old.Show)
		if err != nil {
			return Event{}, err
		}
		next := old
		edit(&next)
		next.Key, next.Show, next.Organizer = old.Key, old.Show, old.Organizer
		done, err := s.put(ctx, &w, next, old, true)
		if version == 0 && fault.CodeOf(err) == fault.Conflict {
			continue
		}
		return done, err
	}
	return Event{}, fault.New(fault.Conflict, "others keep changing this event: try again")
}

// put stores what becomes of an event, given the one that is there, and tells the ledger.
func (s *Service) put(ctx context.Context, w *Show, e, old Event, known bool) (Event, error) {
	var r Report
	done, err := s.merge(&r, "", e, old, known)
	if err != nil {
		return Event{}, err
	}
	if err := s.againstPlan(ctx, &r, "", &done.Event); err != nil {
		return Event{}, err
	}
	if err := r.Err(); err != nil {
		return Event{}, err
	}
	if done.Action == "unchanged" {
		return done.Event, nil
	}
	err = s.o.Store.PutEvents(ctx, nil, []Event{done.Event}, []string{SearchText(&done.Event, w)})
	if err != nil {
		return Event{}, changed(err)
	}
	s.events.Put(done.Event.ID, &done.Event)
	return done.Event, s.send(ctx, &done.Event)
}

// changed is the fault of a change that another one overtook.
func changed(err error) error {
	if errors.Is(err, ErrConflict) {
		return fault.New(fault.Conflict, "somebody else was faster: read it again")
	}
	return err
}
