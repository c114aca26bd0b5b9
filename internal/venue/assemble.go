package venue

import (
	"cmp"
	"math"
	"slices"
)

// A gap between two successive seats is an aisle when it is wider than breakFactor usual pitches of the row.
const breakFactor = 1.5

// A split row is put together when its parts are no further apart than joinFactor pitches.
const joinFactor = 8

// A draft is a plan on its way in: sections with their rows as somebody listed them, nothing numbered yet.
type draft struct {
	name, venue string
	categories  []Category
	sections    []draftSection
	shapes      []Shape
	focal       Point
}

type draftSection struct {
	key, name, floor string
	focal            *Point // its own, nil for the plan's
	outline          []Point
	rows             []draftRow
	areas            []Area // Section is filled in by assemble
}

type draftRow struct {
	label string
	path  string // of the list of its seats in the file; "" for a generated one
	ring  bool   // a table: the order of its seats is that around it
	tries int    // how often another part was held against it, see joinSplitRows
	seats []draftSeat
}

type draftSeat struct {
	Seat
	place int // its index in the file's list of seats
}

// assemble makes the plan of a draft: puts split rows together, orders seats along their row and rows front to back, finds
// breaks, bounds and adjoining sections, and numbers everything.
func assemble(d *draft) *Plan {
	p := &Plan{Format: FormatVersion, Name: d.name, Venue: d.venue, Categories: d.categories, Shapes: d.shapes, Focal: d.focal}
	seatCount := 0
	for i := range d.sections {
		for k := range d.sections[i].rows {
			seatCount += len(d.sections[i].rows[k].seats)
		}
	}
	p.Seats = make([]Seat, 0, seatCount)
	for i := range d.sections {
		p.appendSection(&d.sections[i])
	}
	p.findBounds()
	p.findAdjoining()
	return p
}

func (p *Plan) appendSection(d *draftSection) {
	section := Section{
		Key: d.key, Name: d.name, Floor: d.floor, Focal: d.focal, Outline: d.outline,
		RowFirst: len(p.Rows), SeatFirst: len(p.Seats),
	}
	for i := range d.rows {
		d.rows[i].order()
	}
	rows := joinSplitRows(d.rows)
	rows = slices.DeleteFunc(rows, func(row draftRow) bool { return len(row.seats) == 0 })
	focal := p.Focal
	if d.focal != nil {
		focal = *d.focal
	}
	distance := make(map[*draftRow]float64, len(rows))
	order := make([]*draftRow, len(rows))
	for i := range rows {
		order[i] = &rows[i]
		distance[order[i]] = meanDistance(rows[i].seats, focal)
	}
	slices.SortStableFunc(order, func(a, b *draftRow) int { return cmp.Compare(distance[a], distance[b]) })
	usual := usualPitch(rows)
	for _, row := range order {
		p.appendRow(row, len(p.Sections), usual)
	}
	section.RowCount, section.SeatCount = len(p.Rows)-section.RowFirst, len(p.Seats)-section.SeatFirst
	for _, area := range d.areas {
		area.Section = len(p.Sections)
		p.Areas = append(p.Areas, area)
	}
	p.Sections = append(p.Sections, section)
}

// appendRow numbers the row's seats and finds its breaks. usual is the pitch of the section's rows, for rows which are too
// short to tell their own.
func (p *Plan) appendRow(d *draftRow, section int, usual float64) {
	row := Row{Section: section, Label: d.label, SeatFirst: len(p.Seats), SeatCount: len(d.seats)}
	pitch := d.pitch()
	if len(d.seats) <= 3 && usual > 0 {
		pitch = min(pitch, usual)
	}
	for i := range d.seats {
		seat := d.seats[i].Seat
		seat.Row = int32(len(p.Rows))
		if i > 0 && !d.ring && pitch > 0 && between(&d.seats[i-1], &d.seats[i]) > pitch*breakFactor*(1+1e-4) {
			row.Breaks = append(row.Breaks, SeatIndex(len(p.Seats)))
		}
		p.Seats = append(p.Seats, seat)
	}
	p.Rows = append(p.Rows, row)
}

func (s *draftSeat) point() Point { return Point{s.X, s.Y} }

func between(a, b *draftSeat) float64 { return separation(a.point(), b.point()) }

func meanDistance(seats []draftSeat, focal Point) float64 {
	sum := 0.0
	for i := range seats {
		sum += separation(seats[i].point(), focal)
	}
	return sum / float64(max(1, len(seats)))
}

// pitch is the usual distance of two successive seats of the row: the lower quartile, since aisles only widen gaps. 0 where
// there is none to measure.
func (r *draftRow) pitch() float64 {
	gaps := make([]float64, 0, len(r.seats))
	for i := 1; i < len(r.seats); i++ {
		if gap := between(&r.seats[i-1], &r.seats[i]); gap > 0 {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[(len(gaps)-1)/4]
}

// usualPitch is the median of the pitches of rows long enough to tell; 0 for none.
func usualPitch(rows []draftRow) float64 {
	var pitches []float64
	for i := range rows {
		if pitch := rows[i].pitch(); len(rows[i].seats) > 3 && !rows[i].ring && pitch > 0 {
			pitches = append(pitches, pitch)
		}
	}
	if len(pitches) == 0 {
		return 0
	}
	slices.Sort(pitches)
	return pitches[(len(pitches)-1)/2]
}

// order puts the seats into the order in which they stand. Files list them so nearly always, in which case nothing
// changes; where another order makes a clearly shorter walk (odd numbers first, say) that one is it. A walk
// along a curved row is never shortened by sorting, so curves and horseshoes keep the file's order.
func (r *draftRow) order() {
	if len(r.seats) < 3 {
		return
	}
	sorted := slices.Clone(r.seats)
	if r.ring {
		sortAround(sorted)
	} else {
		sortAlong(sorted)
	}
	if walk(sorted, r.ring) < 0.95*walk(r.seats, r.ring) {
		r.seats = sorted
	}
}

func walk(seats []draftSeat, closed bool) float64 {
	length := 0.0
	for i := 1; i < len(seats); i++ {
		length += between(&seats[i-1], &seats[i])
	}
	if closed {
		length += between(&seats[len(seats)-1], &seats[0])
	}
	return length
}

// sortAlong sorts seats along the line from the row's one end to its other, beginning near the seat listed first.
func sortAlong(seats []draftSeat) {
	far := func(from *draftSeat) *draftSeat {
		best := from
		for i := range seats {
			if between(from, &seats[i]) > between(from, best) {
				best = &seats[i]
			}
		}
		return best
	}
	first := seats[0]
	end := *far(far(&first))
	start := *far(&end)
	if between(&first, &end) < between(&first, &start) {
		start, end = end, start
	}
	dx, dy := float64(end.X)-float64(start.X), float64(end.Y)-float64(start.Y)
	along := func(s *draftSeat) float64 { return float64(float64(s.X)*dx) + float64(float64(s.Y)*dy) }
	slices.SortStableFunc(seats, func(a, b draftSeat) int { return cmp.Compare(along(&a), along(&b)) })
}

// sortAround sorts seats by their angle around their common centre, beginning with the one listed first.
func sortAround(seats []draftSeat) {
	var x, y float64
	for i := range seats {
		x, y = x+float64(seats[i].X)/float64(len(seats)), y+float64(seats[i].Y)/float64(len(seats))
	}
	angle := func(s *draftSeat) float64 { return math.Atan2(float64(s.Y)-y, float64(s.X)-x) }
	start := angle(&seats[0])
	turn := func(s *draftSeat) float64 {
		a := angle(s) - start
		if a < 0 {
			a += 2 * math.Pi
		}
		return a
	}
	slices.SortStableFunc(seats, func(a, b draftSeat) int { return cmp.Compare(turn(&a), turn(&b)) })
}

// Bounds on the search for the parts of split rows; real files are far below them, hostile ones are left as they are.
const (
	rowsOfLabelMax = 64
	joinTriesMax   = 32
)

// joinSplitRows puts rows together which a file lists in parts: the same label, no seat label twice, and one part
// going on in a straight line where the other ends. The order of the rows is that of their first parts.
func joinSplitRows(rows []draftRow) []draftRow {
	byLabel := make(map[string][]int, len(rows))
	joined := make([]draftRow, 0, len(rows))
	for _, row := range rows {
		candidates := byLabel[row.label]
		if row.label == "" || row.ring {
			candidates = nil
		}
		if slices.ContainsFunc(candidates, func(i int) bool { return joined[i].take(&row) }) {
			continue
		}
		if !row.ring && len(candidates) < rowsOfLabelMax {
			byLabel[row.label] = append(byLabel[row.label], len(joined))
		}
		joined = append(joined, row)
	}
	return joined
}

// take appends or prepends the other part when it continues the row.
func (r *draftRow) take(other *draftRow) bool {
	reversed := slices.Clone(other.seats)
	slices.Reverse(reversed)
	for _, part := range [2][]draftSeat{other.seats, reversed} {
		after, before := continues(r.seats, part), continues(part, r.seats)
		if !after && !before {
			continue
		}
		if r.tries++; r.tries > joinTriesMax || sharesLabel(r.seats, part) {
			return false
		}
		if after {
			r.seats = append(slices.Clip(r.seats), part...)
		} else {
			r.seats = append(slices.Clone(part), r.seats...)
		}
		return true
	}
	return false
}

func sharesLabel(a, b []draftSeat) bool {
	labels := make(map[string]bool, len(a))
	for i := range a {
		labels[a[i].Label] = true
	}
	return slices.ContainsFunc(b, func(s draftSeat) bool { return labels[s.Label] })
}

// continues says whether b goes on in a straight line where a ends, not far away.
func continues(a, b []draftSeat) bool {
	if len(a) < 2 || len(b) < 2 {
		return false // a single seat has no direction
	}
	end, start := &a[len(a)-1], &b[0]
	gap := between(end, start)
	pitch := max(between(&a[len(a)-2], end), between(start, &b[1]))
	return gap > pitch/2 && gap <= pitch*joinFactor &&
		straight(&a[len(a)-2], end, start) && straight(end, start, &b[1])
}

// straight says whether the way a b c turns by less than some 15 degrees.
func straight(a, b, c *draftSeat) bool {
	ux, uy := float64(b.X)-float64(a.X), float64(b.Y)-float64(a.Y)
	vx, vy := float64(c.X)-float64(b.X), float64(c.Y)-float64(b.Y)
	return float64(ux*vx)+float64(uy*vy) >= 0.966*math.Hypot(ux, uy)*math.Hypot(vx, vy)
}
