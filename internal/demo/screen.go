package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A screen shows how the sale goes: a block that is drawn again and again on a terminal, plain lines elsewhere. Nothing is
// wider than 80 columns.
type screen struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex
	block int // lines of the block that is drawn now
	err   error
}

const (
	columns     = 80
	drawEvery   = 250 * time.Millisecond
	plainEvery  = 4 * time.Second
	codesEvery  = 4 // plain lines to one line of codes
	barColumns  = 60
	labelColumn = 8
)

func newScreen(out io.Writer, terminal bool) *screen { return &screen{out: out, terminal: terminal} }

// say prints a line, above the block where there is one.
func (c *screen) say(format string, args ...any) {
	fmt.Fprintf(c, format+"\n", args...)
}

// Write prints text above the block.
func (c *screen) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	n, err := c.out.Write(text)
	c.keep(err)
	return n, err
}

func (c *screen) keep(err error) {
	if c.err == nil {
		c.err = err
	}
}

// clear takes the block away; c.mu is held.
func (c *screen) clear() {
	if c.block > 0 {
		_, err := fmt.Fprintf(c.out, "\x1b[%dA\x1b[J", c.block)
		c.keep(err)
		c.block = 0
	}
}

// end leaves the block as it is: what is printed next stands below it.
func (c *screen) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.block = 0
}

func (c *screen) draw(lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	for i, l := range lines {
		lines[i] = clip(l)
	}
	_, err := io.WriteString(c.out, strings.Join(lines, "\n")+"\n")
	c.keep(err)
	c.block = len(lines)
}

func clip(line string) string {
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:columns-1]) + "…"
}

// watch shows the sale until ctx ends.
func (c *screen) watch(ctx context.Context, s *sale) {
	every := plainEvery
	if c.terminal {
		every = drawEvery
	}
	p := progress{sale: s}
	for n := 1; sleep(ctx, every); n++ {
		p.look(every)
		switch {
		case c.terminal:
			c.draw(p.block())
		default:
			c.say("%s", clip(p.line()))
			if codes := p.codes(); codes != "" && n%codesEvery == 0 {
				c.say("%s", clip("       "+codes))
			}
		}
	}
	if c.terminal {
		p.look(every)
		c.draw(p.block())
	}
}

// A progress turns figures into what is shown. On a terminal, rates are over the last second or so.
type progress struct {
	*sale
	at    moment
	seats houseState
	marks []mark
}

type mark struct {
	at    time.Duration
	holds int64
	p99   time.Duration
}

func (p *progress) look(every time.Duration) {
	p.at = p.figures.now()
	p.seats = p.house.state()
	p.marks = append(p.marks, mark{p.at.elapsed, p.at.holds, p.at.p99})
	if most := max(2, int(2*time.Second/every)); len(p.marks) > most {
		p.marks = p.marks[len(p.marks)-most:]
	}
}

// rate is holds made in a second, and the slowest 99th percentile, of what was just seen.
func (p *progress) rate() (holds float64, p99 time.Duration) {
	first, last := p.marks[0], p.marks[len(p.marks)-1]
	for _, m := range p.marks[min(1, len(p.marks)-1):] {
		p99 = max(p99, m.p99)
	}
	from, since := first.holds, first.at
	if len(p.marks) == 1 {
		from, since = 0, 0
	}
	if d := last.at - since; d > 0 {
		holds = float64(last.holds-from) / d.Seconds()
	}
	return holds, p99
}

// places counts seats and the places of areas together, as far as they are sold.
func (p *progress) sold() (sold, all int64) {
	return int64(p.seats.sold) + p.figures.placesSold.Load(), int64(len(p.house.plan.Seats) + p.house.places)
}

func (p *progress) block() []string {
	sold, all := p.sold()
	holds, p99 := p.rate()
	lines := []string{
		label("Sold") + p.bar() + fmt.Sprintf(" %6.1f %%", 100*float64(sold)/float64(all)),
		label("Seats") + fmt.Sprintf("%s sold · %s held · %s free · %s standing left",
			thousands(int64(p.seats.sold)), thousands(int64(p.seats.held)), thousands(int64(p.seats.free)), thousands(int64(p.seats.placesLeft))),
		label("Line") + p.lineText(),
		label("Buyers") + fmt.Sprintf("%s of %s · %.0f holds/s · p99 %s · %s", thousands(p.done.Load()), thousands(int64(p.Buyers)), holds, short(p99), clock(p.at.elapsed)),
		label("Codes") + p.codes(),
	}
	return lines
}

// lineText is how the waiting room stands.
func (p *progress) lineText() string {
	q := p.sale.line.latest.Load()
	if q == nil {
		return "closed"
	}
	called := int64(0)
	for i := range q.Lanes {
		called += q.Lanes[i].Watermark
	}
	return fmt.Sprintf("%s · %s joined · %s called · %s let in · %s inside · R %s", q.Phase, thousands(p.joinedLine.Load()), thousands(called),
		thousands(p.figures.count(entries)), thousands(int64(q.Inside)), thousands(int64(q.Rate)))
}

func label(text string) string { return fmt.Sprintf("%-*s", labelColumn, text) }

// bar shows seats: sold, held, free.
func (p *progress) bar() string {
	all := p.seats.sold + p.seats.held + p.seats.free
	part := func(n int) int { return n * barColumns / max(all, 1) }
	sold := part(p.seats.sold)
	held := part(p.seats.sold+p.seats.held) - sold
	return strings.Repeat("█", sold) + strings.Repeat("▒", held) + strings.Repeat("·", barColumns-sold-held)
}

func (p *progress) line() string {
	sold, all := p.sold()
	holds, p99 := p.rate()
	return fmt.Sprintf("%5s  line %s  in %s  sold %s (%s)  %.0f holds/s  p99 %s", clock(p.at.elapsed), thousands(int64(p.sale.line.length())),
		thousands(p.figures.count(entries)), thousands(sold), percent(float64(sold)/float64(all)), holds, short(p99))
}

// codes are the errors by code, most frequent first.
func (p *progress) codes() string {
	var parts []string
	for _, code := range byCount(p.at.errors) {
		parts = append(parts, code+" "+thousands(p.at.errors[code]))
	}
	return strings.Join(parts, " · ")
}

// percent cuts: what is not all is not 100 %.
func percent(share float64) string { return fmt.Sprintf("%d %%", int(100*share)) }

func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// short writes a duration in three digits or so.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// thousands writes 50000 as 50,000.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
