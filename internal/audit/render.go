package audit

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const width = 80

// Render writes the report as text, at most 80 columns wide. It ends with "audit: ok" or "audit: broken (…)".
func (r *Report) Render(w io.Writer) error {
	p := printer{w: bufio.NewWriter(w)}
	what := "all events"
	if r.Event != "" {
		what = r.Event
	}
	p.line("Audit of %s in %s at %s, %.1f s", what, r.Ledger, r.At.UTC().Format(time.RFC3339), r.Seconds)
	p.line("")
	p.line("%-12s%-44s%13s%11s", "check", "what it says (what it counts)", "examined", "broken")
	for i := range r.Checks {
		c := &r.Checks[i]
		broken := "ok"
		if c.Violations > 0 {
			broken = thousands(c.Violations)
		}
		p.line("%-12s%-44s%13s%11s", c.Name, c.Says, thousands(c.Examined), broken)
	}
	for i := range r.Events {
		p.event(&r.Events[i])
	}
	if r.Provider != nil {
		p.line("")
		p.wrap(fmt.Sprintf("provider: %s payments compared, %s captured and %s refunded in minor units",
			thousands(r.Provider.Payments), thousands(r.Provider.Captured), thousands(r.Provider.Refunded)), "  ")
	}
	if r.InFlight.Count > 0 {
		p.line("")
		p.line("in flight: %s orders", thousands(r.InFlight.Count))
		for _, o := range r.InFlight.Orders {
			p.wrap(fmt.Sprintf("  %s: %s", o.Order, o.Why), "    ")
		}
		p.more(r.InFlight.Count, len(r.InFlight.Orders))
	}
	p.broken(r)
	return p.w.Flush()
}

func (p *printer) broken(r *Report) {
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Violations == 0 {
			continue
		}
		p.line("")
		p.line("%s is broken %s times:", c.Name, thousands(c.Violations))
		for _, v := range c.List {
			subject := v.Subject
			if v.Event != "" && v.Event != subject {
				subject = v.Event + " " + subject
			}
			p.wrap("  "+subject+": "+v.What, "    ")
		}
		p.more(c.Violations, len(c.List))
	}
	p.line("")
	p.line("What each check means: docs/RULES.md.")
	if r.Good {
		p.line("audit: ok")
	} else {
		p.wrap(fmt.Sprintf("audit: broken (%s)", strings.Join(r.Broken(), ", ")), "  ")
	}
}

// A printer writes lines.
type printer struct{ w *bufio.Writer }

func (p *printer) line(format string, args ...any) {
	_, _ = fmt.Fprintf(p.w, format, args...) // an error stays in the writer for Flush
	_ = p.w.WriteByte('\n')
}

// wrap breaks a text between words.
func (p *printer) wrap(text, indent string) {
	line, empty := "", true
	for i, word := range strings.Fields(text) {
		if i == 0 {
			line, empty = text[:len(text)-len(strings.TrimLeft(text, " "))]+word, false
			continue
		}
		if len(line)+1+len(word) > width {
			p.line("%s", line)
			line = indent + word
			continue
		}
		line += " " + word
	}
	if !empty {
		p.line("%s", line)
	}
}

func (p *printer) more(all int64, listed int) {
	if left := all - int64(listed); left > 0 {
		p.line("  … and %s more", thousands(left))
	}
}

func (p *printer) event(e *EventTotals) {
	p.line("")
	p.line("%s (%s)", e.Event, e.State)
	if s := e.Seats; s.Total > 0 {
		p.wrap(fmt.Sprintf("  seats: %s, of them %s available, %s held, %s sold, %s blocked, %s returned", thousands(s.Total),
			thousands(s.Available), thousands(s.Held), thousands(s.Sold), thousands(s.Blocked), thousands(s.Returned)), "    ")
	}
	if a := e.Places; a.Total > 0 {
		p.wrap(fmt.Sprintf("  places: %s, of them %s held, %s sold", thousands(a.Total), thousands(a.Held), thousands(a.Sold)), "    ")
	}
	p.wrap(fmt.Sprintf("  holds: %s live, %s of them run out", thousands(e.HoldsLive), thousands(e.HoldsUnswept)), "    ")
	if m := e.Room; m != nil {
		p.wrap(fmt.Sprintf("  waiting room: %s, %s; %s drawn, %s called, %s came in (%s in a second at most), %s inside (%s at most), %s codes used", m.Mode, m.Phase,
			thousands(m.Drawn), thousands(m.Called), thousands(m.Entered), thousands(m.EnteredMax), thousands(m.Inside), thousands(m.InsideMax),
			thousands(m.CodeUses)), "    ")
	}
	o := e.Orders
	p.wrap(fmt.Sprintf("  orders: %s PAID, %s PENDING, %s FAILED, %s EXPIRED, %s REFUNDED",
		thousands(o.Paid), thousands(o.Pending), thousands(o.Failed), thousands(o.Expired), thousands(o.Refunded)), "    ")
	t := e.Tickets
	p.wrap(fmt.Sprintf("  tickets: %s valid, %s used, %s void; %s uses in conflict",
		thousands(t.Valid), thousands(t.Used), thousands(t.Void), thousands(e.Conflicts)), "    ")
	p.wrap(fmt.Sprintf("  refunds: %s requested, %s refused", thousands(e.Refunds.Requested), thousands(e.Refunds.Refused)), "    ")
	p.wrap(fmt.Sprintf("  money: %s captured, %s refunded, %s kept, in minor units of %s",
		thousands(e.Captured), thousands(e.Refunded), thousands(e.Kept), e.Currency), "    ")
}

// thousands writes 50000 as 50,000.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(text) - 3; i > start; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
