package catalog

import (
	"time"

	"onsale/internal/fault"
	"onsale/internal/ledger"
)

// State is how an event stands.
type State string

// The states of an event. Scheduled and Stopped are only shown, never stored: an event whose state is on_sale is
// scheduled before its window and ended behind it, and stopped is the ledger's word.
const (
	Draft     State = "draft"     // not shown to customers
	Scheduled State = "scheduled" // on sale when its window opens
	OnSale    State = "on_sale"
	Paused    State = "paused"    // no new holds; live ones may pay
	Ended     State = "ended"     // the same, for good
	Cancelled State = "cancelled" // nothing new; all orders are to be refunded
	Stopped   State = "stopped"   // an invariant was found broken: nothing is sold until somebody has looked
)

// A Verb is what an organizer does to an event's sale.
type Verb string

// The verbs.
const (
	VerbOpen   Verb = "open"   // draft, scheduled → on sale, at once
	VerbPause  Verb = "pause"  // scheduled, on sale → paused
	VerbResume Verb = "resume" // paused → scheduled, on sale
	VerbClose  Verb = "close"  // scheduled, on sale, paused → ended
	VerbCancel Verb = "cancel" // anything → cancelled
)

// StateAt is the state as people see it: the stored one, the window and the ledger's word together. state is the
// ledger's; known says whether the ledger was heard.
func (e *Event) StateAt(now time.Time, state ledger.EventState, known bool) State {
	switch {
	case known && state == ledger.Stopped && e.State != Cancelled:
		return Stopped
	case e.State == OnSale && now.Before(e.SaleOpens):
		return Scheduled
	case (e.State == OnSale || e.State == Paused) && !now.Before(e.SaleCloses):
		return Ended
	}
	return e.State
}

// after is the event as it is after a verb, its version not raised yet. A verb that has nothing to do answers an equal
// event; one that is not possible answers conflict.
func (e *Event) after(verb Verb, now time.Time) (Event, error) {
	next := *e
	shown := e.StateAt(now, 0, false)
	switch verb {
	case VerbOpen:
		switch {
		case shown == OnSale:
		case shown != Draft && shown != Scheduled:
			return next, e.notPossible(verb, shown)
		case !e.SaleCloses.After(now):
			return next, fault.New(fault.Conflict, "the sale's window closed at %s: import the event with a later one",
				e.SaleCloses.In(e.Venue.Location()).Format(time.RFC3339))
		default:
			next.State = OnSale
			if e.SaleOpens.IsZero() || e.SaleOpens.After(now) {
				next.SaleOpens = now
				next.Room.JoinsOpen = notAfter(next.Room.JoinsOpen, now)
			}
		}
	case VerbPause:
		if shown != OnSale && shown != Scheduled && shown != Paused {
			return next, e.notPossible(verb, shown)
		}
		next.State = Paused
	case VerbResume:
		if shown != OnSale && shown != Scheduled && shown != Paused {
			return next, e.notPossible(verb, shown)
		}
		next.State = OnSale
	case VerbClose:
		if shown == Draft || shown == Cancelled {
			return next, e.notPossible(verb, shown)
		}
		next.State = Ended
	case VerbCancel:
		next.State = Cancelled
	default:
		return next, fault.New(fault.Invalid, "unknown verb %q: use open, pause, resume, close or cancel", verb)
	}
	return next, nil
}

func (e *Event) notPossible(verb Verb, shown State) error {
	return fault.New(fault.Conflict, "an event that is %s cannot be changed by %s", shown, verb)
}

// ledgerState is the state as the ledger knows it.
func (s State) ledgerState() (ledger.EventState, bool) {
	switch s {
	case Draft:
		return ledger.Draft, true
	case OnSale:
		return ledger.OnSale, true
	case Paused:
		return ledger.Paused, true
	case Ended:
		return ledger.Ended, true
	case Cancelled:
		return ledger.Cancelled, true
	}
	return 0, false
}
