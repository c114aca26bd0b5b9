package demo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"onsale/internal/audit"
	"onsale/internal/payment/sandbox"
)

// shown are the sandbox's faults that a demo must have met; the counts are of its own books.
var shown = []sandbox.Fault{
	sandbox.FaultDeclined, sandbox.FaultDeclinedSoft, sandbox.FaultPending, sandbox.FaultPendingDeclined, sandbox.FaultPayLate,
	sandbox.FaultServerError, sandbox.FaultLostAnswer, sandbox.FaultWrongAmount, sandbox.FaultSecondPayment, sandbox.FaultCaptureRefused,
	sandbox.FaultWebhookRepeat, sandbox.FaultWebhookReorder, sandbox.FaultWebhookNever,
}

// missing are the behaviours that were never shown.
func (s *sale) missing() []string {
	var none []string
	for b, c := range counters {
		if c.must && s.figures.count(behaviour(b)) == 0 {
			none = append(none, strings.TrimSpace(c.name))
		}
	}
	for _, f := range shown {
		if s.faults[f] == 0 {
			none = append(none, "the provider's "+string(f))
		}
	}
	for _, c := range []struct {
		name  string
		count int64
	}{{"holds that ran out", s.stored.expired}, {"late payments rescued", s.stored.rescued}, {"payments given back", s.stored.refunds}} {
		if c.count == 0 {
			none = append(none, c.name)
		}
	}
	if s.lineClosed && s.house.full() {
		for _, b := range []behaviour{wishesMade, offersMade, offersTaken} {
			if s.figures.count(b) == 0 {
				none = append(none, strings.TrimSpace(counters[b].name))
			}
		}
	}
	if len(s.kills) < s.Kills {
		none = append(none, fmt.Sprintf("%d of the kills", s.Kills-len(s.kills)))
	}
	return none
}

// report prints all of it, and says by its error whether everything was as it must be.
func (s *sale) report() error {
	out := func(format string, args ...any) { s.screen.say(format, args...) }
	out("")
	s.reportSale(out)
	s.reportLine(out)
	s.reportCounts(out)
	s.reportCalls(out)
	s.reportErrors(out)
	s.reportKills(out)
	out("")
	broken := s.reportAudit()
	missing := s.missing()
	for _, m := range missing {
		out("never shown: %s", m)
	}
	if n := len(s.refusedOrders()); n > 0 {
		out("%d refunds stay REQUESTED: the bank refuses them, and the organizer knows.", n)
	}
	for _, b := range s.line.back {
		s.wrong("the line: %s", b)
	}
	for _, w := range s.wrongs {
		out("wrong: %s", w)
	}
	if more := s.wrongCount - len(s.wrongs); more > 0 {
		out("… and %d more", more)
	}
	if s.screen.err != nil {
		return s.screen.err
	}
	if broken != nil || len(missing) > 0 || s.wrongCount > 0 || !s.verdict.OK() {
		return errors.Join(ErrBroken, broken)
	}
	said := s.journal.all()
	out("journal: ok (%s holds and %s bookings that buyers were told of,", thousands(int64(len(said.holds))), thousands(int64(len(said.paid))))
	out("  %s numbers in line and %s entries,", thousands(int64(len(said.line.numbers))), thousands(int64(len(said.line.entries))))
	out("  %s refunds, %s tickets passed on, %s uses at the doors, %s sign-ins)", thousands(int64(len(said.later.refunds))),
		thousands(int64(len(said.later.passed))), thousands(int64(len(said.later.checkIns))), thousands(int64(len(said.later.people))))
	out("personal data: ok (none of %s names, addresses and documents is in", thousands(int64(s.secrets.count())))
	out("  the server's log or in a notice)")
	return nil
}

type printf func(format string, args ...any)

func (s *sale) reportSale(out printf) {
	var seats audit.SeatTotals
	var places audit.PlaceTotals
	var tickets int64
	for _, e := range s.verdict.Events {
		if e.Event != s.house.event.ID {
			continue // the hall for which attendees are named is not there to be sold out
		}
		seats.Total, seats.Sold = seats.Total+e.Seats.Total, seats.Sold+e.Seats.Sold
		places.Total, places.Sold = places.Total+e.Places.Total, places.Sold+e.Places.Sold
		tickets += e.Tickets.Valid
	}
	left := seats.Total - seats.Sold + places.Total - places.Sold
	end := "All buyers are gone"
	switch {
	case left == 0:
		end = "Sold out"
	case s.turnedAway > 0 && s.house.full():
		end = fmt.Sprintf("Closed with %s people still in line", thousands(int64(s.turnedAway)))
	case s.turnedAway > 0:
		end = fmt.Sprintf("Closed with %s buyers still outside", thousands(int64(s.turnedAway)))
	}
	out("%s after %s.", end, s.took.Round(100*time.Millisecond))
	out("Sold: %s of %s seats, %s of %s standing places.", thousands(seats.Sold), thousands(seats.Total), thousands(places.Sold), thousands(places.Total))
	out("%.0f tickets/s over all, %s holds in the busiest second.", float64(tickets)/s.took.Seconds(), thousands(s.figures.busiest()))
}

// reportLine says how people waited, and on what terms (F4).
func (s *sale) reportLine(out printf) {
	out("")
	var room audit.RoomTotals
	for _, e := range s.verdict.Events {
		if e.Event == s.house.event.ID && e.Room != nil {
			room = *e.Room
		}
	}
	out("Waiting room: %s numbers drawn, %s called, %s came in.", thousands(room.Drawn), thousands(room.Called), thousands(room.Entered))
	out("At most %s came in within a second (R is %s), and %s were inside (%s may be).", thousands(room.EnteredMax), thousands(int64(s.rate())),
		thousands(room.InsideMax), thousands(int64(s.rate()*activeSeconds)))
	out("%s polls went to one simulated CDN, which asked the server %s times.", thousands(s.line.polls.Load()), thousands(s.line.fetched.Load()))
	out("The server is a throw-away one: proof of work at difficulty 1.")
}

func (s *sale) reportCounts(out printf) {
	out("")
	type row struct {
		name  string
		count int64
	}
	var rows []row
	for b, c := range counters {
		rows = append(rows, row{c.name, s.figures.count(behaviour(b))})
	}
	rows = append(rows,
		row{"holds that ran out", s.stored.expired}, row{"late webhooks: money after the hold", s.faults[sandbox.FaultPayLate]},
		row{"  rescued: seats found again", s.stored.rescued}, row{"payments given back", s.stored.refunds},
		row{"webhooks repeated", s.faults[sandbox.FaultWebhookRepeat]}, row{"webhooks in the wrong order", s.faults[sandbox.FaultWebhookReorder]},
		row{"webhooks that never came", s.faults[sandbox.FaultWebhookNever]}, row{"captures refused", s.faults[sandbox.FaultCaptureRefused]})
	for _, r := range rows {
		out("%-40s %10s", r.name, thousands(r.count))
	}
}

func (s *sale) reportCalls(out printf) {
	out("")
	out("%-16s %10s %10s %10s %10s", "call", "answered", "p50", "p99", "most")
	f := s.figures
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.calls)) {
		h := f.calls[name]
		out("%-16s %10s %10s %10s %10s", name, thousands(h.total), short(h.quantile(0.5)), short(h.quantile(0.99)), short(h.quantile(1)))
	}
}

func (s *sale) reportErrors(out printf) {
	codes := s.figures.now().errors
	if len(codes) == 0 {
		return
	}
	out("")
	for _, code := range byCount(codes) {
		out("%-40s %10s", code, thousands(codes[code]))
	}
}

func (s *sale) reportKills(out printf) {
	if len(s.kills) == 0 {
		return
	}
	out("")
	database, slow := 0, 0
	var most time.Duration
	for _, k := range s.kills {
		if k.database {
			database++
		}
		if k.ready > readyWish {
			slow++
		}
		most = max(most, k.ready)
	}
	out("%d kills, %d of them of the database server; ready again in %.2f s at most.", len(s.kills), database, most.Seconds())
	if slow > 0 {
		out("SHORTFALL: %d restarts took more than %s.", slow, readyWish)
	}
}

// reportAudit prints the audit: whole where it is broken, in short where it is not.
func (s *sale) reportAudit() error {
	if !s.verdict.OK() {
		return s.verdict.Render(s.screen)
	}
	var examined int64
	for _, c := range s.verdict.Checks {
		examined += c.Examined
	}
	s.screen.say("audit: ok (%d checks of %s things; %s payments compared)", len(s.verdict.Checks), thousands(examined), thousands(providerCount(&s.verdict)))
	return nil
}

func providerCount(r *audit.Report) int64 {
	if r.Provider == nil {
		return 0
	}
	return r.Provider.Payments
}
