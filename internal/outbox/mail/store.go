package mail

import (
	"context"
	"errors"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// ErrUnknown is answered by Facts and Stores that have no such thing.
var ErrUnknown = errors.New("mail: there is no such thing")

// A Job is a mail to be: to whom, and what about, as ids (E10).
type Job struct {
	Key      string // at most one job ever has it, as long as ended ones are kept
	Kind     Kind
	Customer id.ID // who gets it
	Order    id.ID
	Event    id.ID
	Refund   id.ID
	Ticket   id.ID
	Word     string // KindAlert: which one; KindOffered: the hold
	Version  int64  // of the run, for news of an event
	Bulk     bool   // many of them are made at once: they go last, and slowly

	Created time.Time
	Due     time.Time
	Tries   int
	Last    string // what went wrong last: a mail server's status, or a word of ours; no addresses (E10)
	Fence   int64  // of the claim
}

// A Told is what customers of an event were last told of it, and how many changes they were told of.
type Told struct {
	Event   Event
	Changes int
}

// A Run brings news of an event to all who have tickets for it.
type Run struct {
	Event   id.ID
	Kind    Kind  // KindEventChanged or KindEventCancelled
	Version int64 // of the event: a run is known by these three
	Was     Event
	Now     Event
	Changes int
	Cursor  id.ID // orders up to this one have their jobs
	Made    int   // jobs
	Done    bool
	Fence   int64
}

// A Store keeps jobs, runs and what was told. Each method is atomic and durable when it returns; all may be called at once,
// from many nodes. The control database is one.
type Store interface {
	// PutJobs keeps jobs; one whose key is there already is left as it is.
	PutJobs(ctx context.Context, jobs []Job) error
	// ClaimJobs takes jobs that are due, the longest due first, at most max, bulk ones or the others: they are not due again
	// for a time, and each gets a new fence.
	ClaimJobs(ctx context.Context, bulk bool, hold time.Duration, max int) ([]Job, error)
	// EndJob says that a claimed job is done; DelayJob that it is to be tried again after a time; KillJob that it never will
	// be. Where the claim has gone to another, nothing happens.
	EndJob(ctx context.Context, j Job) error
	DelayJob(ctx context.Context, j Job, after time.Duration, last string) error
	KillJob(ctx context.Context, j Job, last string) error
	// DeadJobs are those that were killed, newest first, at most max; ReviveJobs makes them due again and says how many.
	DeadJobs(ctx context.Context, max int) ([]Job, error)
	ReviveJobs(ctx context.Context, keys []string) (int, error)
	// CountJobs says how many are waiting, bulk ones among them, and dead.
	CountJobs(ctx context.Context) (waiting, bulk, dead int, err error)
	// PruneJobs deletes jobs that ended before `ended` or died before `died`, and runs that were done then, at most max rows.
	PruneJobs(ctx context.Context, ended, died time.Time, max int) (int, error)

	// Told is what was told of an event. ErrUnknown.
	Told(ctx context.Context, event id.ID) (Told, error)
	// PutTold keeps what is told of an event of which nothing was told yet.
	PutTold(ctx context.Context, e Event) error
	// PutRun begins a run: it becomes what was told, with run.Changes. A run of cancellation ends those of changes. Where
	// the changes told of are no longer run.Changes − 1 (another was faster, or it is a repeat), nothing happens.
	PutRun(ctx context.Context, run Run) error
	// Run is one run. ErrUnknown.
	Run(ctx context.Context, event id.ID, kind Kind, version int64) (Run, error)
	// ClaimRun takes the oldest run that is not done and not claimed for a time. ok is false where there is none.
	ClaimRun(ctx context.Context, hold time.Duration) (run Run, ok bool, err error)
	// AdvanceRun keeps jobs and how far the run has come (Cursor, Made, Done) in one step, and lets go of the claim. Where
	// that has gone to another, nothing happens.
	AdvanceRun(ctx context.Context, run Run, jobs []Job) error
}

// A Person is who mails go to.
type Person struct {
	Customer id.ID
	Name     string
	Email    string // "" for none
	Locale   string
}

// Facts is where mails get what they say from. Methods answer ErrUnknown where there is no such thing.
type Facts interface {
	Order(ctx context.Context, order id.ID) (ledger.Order, error)
	Payments(ctx context.Context, order id.ID) ([]ledger.Payment, error)
	Refund(ctx context.Context, refund id.ID) (ledger.Refund, error)
	RefundsOf(ctx context.Context, order id.ID) ([]ledger.Refund, error)
	// Ticket is one ticket of the ledger.
	Ticket(ctx context.Context, ticket id.ID) (ledger.Ticket, error)
	// Hold is one hold of the ledger.
	Hold(ctx context.Context, hold id.ID) (ledger.Hold, error)
	// Tickets are how people see tickets, in the order given: places of the plan, attendees, and codes where codes is true.
	Tickets(ctx context.Context, all []ledger.Ticket, codes bool) ([]Ticket, error)
	// OrdersOfEvent are an event's orders with all their tickets, by id, after the given, at most max.
	OrdersOfEvent(ctx context.Context, event, after id.ID, max int) ([]ledger.Order, error)
	Event(ctx context.Context, event id.ID) (Event, error)
	// Person is a customer; an erased one has no address.
	Person(ctx context.Context, customer id.ID) (Person, error)
	// Owners are the customers who own an organizer, and its name.
	Owners(ctx context.Context, organizer id.ID) ([]id.ID, string, error)
}
