package audit

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The words of the history.
const (
	wordLive     = "live"
	wordSold     = "sold"
	wordReleased = "released"
	wordExpired  = "expired"
)

// follows says which transitions of a claim there are (STATES): made live by a hold or sold by a rescue, ended, sold, and
// given back, all at once or some places at a time.
var follows = map[[2]string]bool{
	{"", wordLive}: true, {"", wordSold}: true,
	{wordLive, wordReleased}: true, {wordLive, wordExpired}: true, {wordLive, wordSold}: true,
	{wordSold, wordReleased}: true,
}

// A chain is the history of one claim while it is read.
type chain struct {
	name  string
	hold  *holdRow // nil where it is not there (any more)
	text  string   // how the history writes the hold's seats
	n     int      // rows
	first historyRow
	state string // what the claim became last
	at    ledger.Time
	from  int // where its starts begin
	back  int // places given back since it was sold
}

// chain checks the history of one claim, and with it its hold, nil where that is not there (any more).
func (h *hall) chain(claimID id.ID, v *holdRow, rows iter.Seq[historyRow]) {
	h.a.saw(CheckHistory, 1)
	if claimID == 0 {
		h.blocks(rows)
		return
	}
	c := &chain{name: holdText(claimID), hold: v, text: claimText(v), from: len(h.starts)}
	for r := range rows {
		if c.n == 0 {
			c.first = r
			h.begin(&r, v, c.text, c.name)
		}
		if r.was != c.state || !follows[[2]string{r.was, r.becomes}] {
			h.bad(CheckHistory, c.name, "%q becomes %q after %q", r.was, r.becomes, c.state)
		}
		if r.at < c.at {
			h.bad(CheckHistory, c.name, "it becomes %q before it became %q", r.becomes, c.state)
		}
		c.state, c.at = r.becomes, r.at
		c.n++
		switch {
		case r.was == wordSold && r.becomes == wordReleased:
			h.givenBack(c, &r)
		case r.becomes == wordReleased || r.becomes == wordExpired:
			for i := c.from; i < len(h.starts); i++ {
				h.starts[i].ended, h.starts[i].end = true, r.at
			}
			h.sameSeats(&r, v, c.text, c.name)
		default:
			h.sameSeats(&r, v, c.text, c.name)
		}
		if r.becomes == wordSold {
			h.sale(&r, v, c.name)
		}
	}
	h.known1(h.known || v != nil, c.name)
	h.agree(c)
	if v != nil {
		h.admitted(v, c.first.becomes == wordSold)
	}
}

// givenBack ends the claim on some of its seats or places, each once. As long as not all of them are given back, the claim
// is sold.
func (h *hall) givenBack(c *chain, r *historyRow) {
	seats, err := parsePairs(r.seats)
	if err != nil {
		h.bad(CheckHistory, c.name, "its seats: %v", err)
		return
	}
	for _, p := range seats {
		s := h.startOf(c, p)
		if s == nil || s.ended {
			h.bad(CheckHistory, c.name, "it gives back seat %d of epoch %d, which it does not have", p.a, p.b)
			continue
		}
		s.ended, s.end = true, r.at
	}
	c.back += len(seats) + r.places
	all := c.first.places + len(h.starts) - c.from
	switch {
	case c.hold != nil && (c.hold.area >= 0) != (len(seats) == 0), len(seats)+r.places == 0:
		h.bad(CheckHistory, c.name, "it gives back %d seats and %d places", len(seats), r.places)
	case c.back > all:
		h.bad(CheckHistory, c.name, "it gives back %d places of %d", c.back, all)
	case c.back < all:
		c.state = wordSold
	}
}

func (h *hall) startOf(c *chain, p pair) *start {
	for i := c.from; i < len(h.starts); i++ {
		if s := &h.starts[i]; int64(s.seat) == p.a && s.epoch == p.b {
			return s
		}
	}
	return nil
}

// claimText is how the history writes the seats of a hold. Nearly every row says just this, and need not be parsed.
func claimText(v *holdRow) string {
	if v == nil || v.area >= 0 {
		return "[]"
	}
	b := []byte{'['}
	for i, l := range v.lines {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, '['), int64(l.seat), 10)
		b = append(strconv.AppendInt(append(b, ','), l.epoch, 10), ']')
	}
	return string(append(b, ']'))
}

// begin notes where on the seats' epochs a claim starts.
func (h *hall) begin(r *historyRow, v *holdRow, text, name string) {
	if v != nil && v.area < 0 && r.seats == text {
		for _, l := range v.lines {
			h.starts = append(h.starts, start{seat: l.seat, epoch: l.epoch, at: r.at, claim: r.claim})
		}
		return
	}
	seats, err := parsePairs(r.seats)
	if err != nil {
		h.bad(CheckHistory, name, "its seats: %v", err)
		return
	}
	for _, p := range seats {
		h.starts = append(h.starts, start{seat: int32(p.a), epoch: p.b, at: r.at, claim: r.claim})
	}
}

// sameSeats compares a row with the lines of its hold.
func (h *hall) sameSeats(r *historyRow, v *holdRow, text, name string) {
	switch {
	case v == nil:
		return
	case v.area >= 0 && r.places != len(v.lines):
		h.bad(CheckHistory, name, "it is of %d places, its %q row of %d", len(v.lines), r.becomes, r.places)
	case r.seats == text:
		return
	}
	seats, err := parsePairs(r.seats)
	switch {
	case err != nil:
		h.bad(CheckHistory, name, "its seats: %v", err)
	case v.area >= 0 && len(seats) > 0, v.area < 0 && !slices.EqualFunc(seats, v.lines, func(p pair, l line) bool {
		return p.a == int64(l.seat) && p.b == l.epoch
	}):
		h.bad(CheckHistory, name, "its seats are not those of its %q row", r.becomes)
	}
}

// sale checks that a claim was live when it was sold (I4).
func (h *hall) sale(r *historyRow, v *holdRow, name string) {
	h.a.saw(CheckI4, 1)
	if v == nil {
		h.bad(CheckHistory, name, "it was sold, and its hold is not there")
		return
	}
	if r.was == wordLive && r.at >= v.expires {
		h.bad(CheckI4, name, "it ran out at %d and was sold at %d", v.expires, r.at)
	}
	o := h.orders[v.order]
	if o != nil && o.rescued != (r.was == "") {
		h.bad(CheckI4, name, "its order says rescued %v, but its claim became sold from %q", o.rescued, r.was)
	}
}

// agree compares the end of the chain with the hold's state, and what was given back with its lines.
func (h *hall) agree(c *chain) {
	v := c.hold
	ended := c.state == wordReleased || c.state == wordExpired
	switch {
	case v == nil:
		// Ended holds are deleted after a day, their history is not.
		if !ended || c.first.at >= h.a.now-ledger.Time(ledger.KeepAnswers) {
			h.bad(CheckHistory, c.name, "it is %q, and its hold is not there", c.state)
		}
		return
	case c.n == 0:
		h.bad(CheckHistory, c.name, "it has no history")
		return
	case v.state >= ledger.HoldLive && v.state <= ledger.HoldSold && c.state != v.state.String():
		h.bad(CheckHistory, c.name, "it is %s, its history ends with %q", v.state, c.state)
		return
	}
	gone := 0
	for _, l := range v.lines {
		if !l.gone {
			continue
		}
		gone++
		if v.area >= 0 {
			continue
		}
		if s := h.startOf(c, pair{int64(l.seat), l.epoch}); s == nil || !s.ended {
			h.bad(CheckHistory, c.name, "it has given back %s, and its history does not say so", seatText(l.seat))
		}
	}
	if gone != c.back {
		h.bad(CheckHistory, c.name, "it has given back %d places, its history says %d", gone, c.back)
	}
}

// blocks checks the rows that are of no claim: what organizers keep back, and what nobody on the waitlist wanted.
func (h *hall) blocks(rows iter.Seq[historyRow]) {
	for r := range rows {
		block := r.was == "available" && r.becomes == "blocked"
		unblock := r.was == "blocked" && r.becomes == "available"
		unwanted := r.was == "returned" && r.becomes == "available"
		if _, err := parsePairs(r.seats); err != nil || (!block && !unblock && !unwanted) {
			h.bad(CheckHistory, "blocks", "row %d: %q becomes %q", r.id, r.was, r.becomes)
		}
	}
}

// timeline checks each seat's claims against each other: epochs strictly increase, and one claim ends before the next
// begins (I1 over all time).
func (h *hall) timeline() {
	slices.SortFunc(h.starts, func(a, b start) int {
		return cmp.Or(cmp.Compare(a.seat, b.seat), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.at, b.at), cmp.Compare(a.claim, b.claim))
	})
	for i := range h.starts {
		s := &h.starts[i]
		if s.epoch <= 0 {
			h.bad(CheckHistory, seatText(s.seat), "%s claims it under epoch %d", holdText(s.claim), s.epoch)
		}
		if i == 0 || h.starts[i-1].seat != s.seat {
			continue
		}
		p := &h.starts[i-1]
		switch {
		case p.epoch == s.epoch:
			h.bad(CheckHistory, seatText(s.seat), "%s and %s claim it under epoch %d", holdText(p.claim), holdText(s.claim), s.epoch)
		case !p.ended:
			h.bad(CheckHistory, seatText(s.seat), "%s took it, and the claim of %s has no end", holdText(s.claim), holdText(p.claim))
		case p.end > s.at:
			h.bad(CheckHistory, seatText(s.seat), "%s took it before the claim of %s ended", holdText(s.claim), holdText(p.claim))
		}
	}
}
