// Package audit recomputes from what a shard has stored whether its promises were kept: I1–I7 and I9–I12, and whether
// the rows agree with each other at all.
//
// The one idea: it is written from the invariants, not from the code that keeps them, and shares no query and no parser
// with the ledger's adapters. So a fault there cannot hide itself here. It reads one snapshot of the shard (one read
// transaction), while the server sells on, in two walks: event by event (claims on seats and places, history, limits, uses of
// tickets) and order by order (tickets, money, notices). What is still under way is reported as in flight, not as a fault.
//
// Start reading at Run, then claims.go for I1–I4, tickets.go for I3 and I7, money.go for I6, across.go for what ties orders
// to each other, door.go for uses of tickets, room.go for the waiting room (I10, I11),
// waitlist.go for who was served first.
package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// Options say what is audited.
type Options struct {
	// Event is the one event to look at. Defaults to 0: all. With one, what sums over events (limits by show) and payments
	// of unknown orders are left out.
	Event id.ID
	// Provider lists the payment provider's books. Defaults to nil: they are not compared. Where it has a Name (as every
	// payment.Provider), only payments of that name are compared with it.
	Provider payment.Lister
	// Joins is the log of who has which number in waiting rooms. Defaults to nil: it is not compared.
	Joins Joins
	// Now is the instant at which holds are live or not. Defaults to 0: the database's clock.
	Now ledger.Time
}

// The names of the checks, in the order of the report.
const (
	CheckI1         = "I1"
	CheckI2         = "I2"
	CheckI3         = "I3"
	CheckI4         = "I4"
	CheckI5         = "I5"
	CheckI6         = "I6"
	CheckI7         = "I7"
	CheckI9         = "I9"
	CheckI10        = "I10"
	CheckI11        = "I11"
	CheckI12        = "I12"
	CheckDraw       = "draw"
	CheckRoom       = "room"
	CheckWaitlist   = "waitlist"
	CheckMoney      = "money"
	CheckTickets    = "tickets"
	CheckExchange   = "exchange"
	CheckDoor       = "door"
	CheckHistory    = "history"
	CheckReferences = "references"
	CheckLimits     = "limits"
	CheckOutbox     = "outbox"
)

// about is what each check says, and what it counts as examined.
var about = []struct{ name, says string }{
	{CheckI1, "a seat has one live claim (seats)"},
	{CheckI2, "an area is not oversold (areas)"},
	{CheckI3, "all of a hold or nothing (holds, orders)"},
	{CheckI4, "no ticket from an expired hold (sales)"},
	{CheckI5, "a key has one effect (keys)"},
	{CheckI6, "money agrees with tickets (orders)"},
	{CheckI7, "paid means a ticket a place (orders)"},
	{CheckI9, "limits and quotas are kept (counts)"},
	{CheckI10, "nobody jumps the line (calls, entries)"},
	{CheckI11, "no hold gets past the room (holds)"},
	{CheckI12, "every change has its notice (orders)"},
	{CheckDraw, "places are as the draw says (entries)"},
	{CheckRoom, "rooms agree with who came in (rows)"},
	{CheckWaitlist, "the list is served in its order (wishes)"},
	{CheckMoney, "amounts add up (holds, payments)"},
	{CheckTickets, "what became of a ticket agrees (tickets)"},
	{CheckExchange, "an exchange takes what it marked (tickets)"},
	{CheckDoor, "a ticket lets in once (tickets)"},
	{CheckHistory, "claims have their history (claims)"},
	{CheckReferences, "what is named is there (rows)"},
	{CheckLimits, "counters equal a recount (counters)"},
	{CheckOutbox, "notices are well-formed (notices)"},
}

// listMax is how many violations of a check, and orders in flight, a report lists. All are counted.
const listMax = 25

// audit is one run.
type audit struct {
	snap   *snapshot
	opts   Options
	now    ledger.Time
	began  ledger.Time // nothing changed after this is held against the provider's list, which was read before
	report *Report
	checks map[string]*Check
	events map[id.ID]*eventTotals
	shows  map[limitKey]*showCount
	books  *books
	across *across
	told   told
	layout cachedLayout

	lineups map[id.ID]*lineup // by event
	wishes  map[id.ID]*lineup // by wish
}

// Run reads the source and reports. An error means that it could not be read; what is wrong in it is in the report.
func Run(ctx context.Context, src *Source, o Options) (_ Report, err error) {
	started := time.Now()
	a := newAudit(src.dialect, o)
	if a.began, err = src.clock(ctx, o.Now); err != nil {
		return Report{}, err
	}
	// The provider first: what its list has was asked for by an order that the snapshot has too.
	if a.books, err = readBooks(ctx, o.Provider); err != nil {
		return Report{}, fmt.Errorf("audit: the provider's list: %w", err)
	}
	if a.snap, err = src.snapshot(ctx); err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, a.snap.close()) }()
	if a.now, err = src.clock(ctx, o.Now); err != nil {
		return Report{}, err
	}
	if err := a.walk(); err != nil {
		return Report{}, err
	}
	a.report.Seconds = time.Since(started).Seconds()
	return *a.report, nil
}

func newAudit(d dialect, o Options) *audit {
	a := &audit{
		opts: o, report: newReport(d.name, o), checks: map[string]*Check{}, events: map[id.ID]*eventTotals{}, shows: map[limitKey]*showCount{},
		lineups: map[id.ID]*lineup{}, wishes: map[id.ID]*lineup{},
	}
	for i := range a.report.Checks {
		a.checks[a.report.Checks[i].Name] = &a.report.Checks[i]
	}
	return a
}

// walk reads all tables of the snapshot and finishes the report.
func (a *audit) walk() error {
	for _, walk := range []func(){a.readAcross, a.walkEvents, a.walkOrders, a.walkKeys, a.walkOrphans} {
		if walk(); a.snap.err != nil {
			return fmt.Errorf("audit: %w", a.snap.err)
		}
	}
	a.report.finish(a.now, a.events)
	return nil
}

// bad writes down a violation. Subject is what it is about, in text form.
func (a *audit) bad(check string, event id.ID, subject, format string, args ...any) {
	c := a.checks[check]
	c.Violations++
	if len(c.List) < listMax {
		v := Violation{Subject: subject, What: fmt.Sprintf(format, args...)}
		if event != 0 {
			v.Event = event.Text(id.Event)
		}
		c.List = append(c.List, v)
	}
}

// saw counts what a check has examined.
func (a *audit) saw(check string, n int) { a.checks[check].Examined += int64(n) }

func seatText(seat int32) string { return fmt.Sprintf("seat %d", seat) }

func areaText(area int32) string { return fmt.Sprintf("area %d", area) }

func holdText(hold id.ID) string { return hold.Text(id.Hold) }

func orderText(order id.ID) string { return order.Text(id.Order) }
