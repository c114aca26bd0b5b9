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
// given back where the provider finally refused the money.
var follows = map[[2]string]bool{
	{"", wordLive}: true, {"", wordSold}: true,
	{wordLive, wordReleased}: true, {wordLive, wordExpired}: true, {wordLive, wordSold}: true,
	{wordSold, wordReleased}: true,
}

// chain checks the history of one claim, and with it its hold, nil where that is not there (any more).
func (h *hall) chain(claimID id.ID, v *holdRow, rows iter.Seq[historyRow]) {
	h.a.saw(CheckHistory, 1)
	if claimID == 0 {
		h.blocks(rows)
		return
	}
	name := holdText(claimID)
	text := claimText(v)
	var first, last historyRow
	n := 0
	from := len(h.starts)
	for r := range rows {
		if n == 0 {
			first = r
			h.begin(&r, v, text, name)
		}
		if r.was != last.becomes || !follows[[2]string{r.was, r.becomes}] {
			h.bad(CheckHistory, name, "%q becomes %q after %q", r.was, r.becomes, last.becomes)
		}
		if r.at < last.at {
			h.bad(CheckHistory, name, "it becomes %q before it became %q", r.becomes, last.becomes)
		}
		h.sameSeats(&r, v, text, name)
		if r.becomes == wordReleased || r.becomes == wordExpired {
			for i := from; i < len(h.starts); i++ {
				h.starts[i].ended, h.starts[i].end = true, r.at
			}
		}
		if r.becomes == wordSold {
			h.sale(&r, v, name)
		}
		last = r
		n++
	}
	h.known1(h.known || v != nil, name)
	h.agree(v, name, n, &first, &last)
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

// agree compares the end of the chain with the hold's state.
func (h *hall) agree(v *holdRow, name string, n int, first, last *historyRow) {
	ended := last.becomes == wordReleased || last.becomes == wordExpired
	switch {
	case v == nil:
		// Ended holds are deleted after a day, their history is not.
		if !ended || first.at >= h.a.now-ledger.Time(ledger.KeepAnswers) {
			h.bad(CheckHistory, name, "it is %q, and its hold is not there", last.becomes)
		}
	case n == 0:
		h.bad(CheckHistory, name, "it has no history")
	case v.state >= ledger.HoldLive && v.state <= ledger.HoldSold && last.becomes != v.state.String():
		h.bad(CheckHistory, name, "it is %s, its history ends with %q", v.state, last.becomes)
	}
}

// blocks checks the rows of organizers, which are of no claim.
func (h *hall) blocks(rows iter.Seq[historyRow]) {
	for r := range rows {
		block := r.was == "available" && r.becomes == "blocked"
		unblock := r.was == "blocked" && r.becomes == "available"
		if _, err := parsePairs(r.seats); err != nil || (!block && !unblock) {
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
