package venue

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Validate answers everything in which the plan breaks the rules of its format: the invariants of the comments in plan.go
// and the limits. Paths point into the plan's own JSON. An empty answer means that Layout, Encode and whoever sells may
// rely on all of them.
func (p *Plan) Validate() []Problem {
	r := &report{}
	if p.Format != FormatVersion {
		r.errorf("/format", nil, "format is %d; this program reads format %d", p.Format, FormatVersion)
	}
	checkLabel(r, "/name", "name of the plan", p.Name, true)
	checkLabel(r, "/venue", "venue", p.Venue, true)
	p.validateCounts(r)
	p.validateCategories(r)
	p.validateSections(r)
	p.validateRows(r)
	p.validateSeats(r)
	p.validateAreas(r)
	p.validateDrawing(r)
	if !r.failed() {
		// These read through the indexes that were found good above.
		p.validateRowOrder(r)
	}
	return r.problems()
}

func (p *Plan) validateCounts(r *report) {
	for _, limit := range []struct {
		path, what string
		count, max int
	}{
		{"/seats", "seats", len(p.Seats), SeatsMax},
		{"/rows", "rows", len(p.Rows), SeatsMax},
		{"/sections", "sections", len(p.Sections), SectionsMax},
		{"/categories", "categories", len(p.Categories), CategoriesMax},
		{"/areas", "areas", len(p.Areas), AreasMax},
		{"/shapes", "shapes", len(p.Shapes), ShapesMax},
	} {
		if limit.count > limit.max {
			r.errorf(limit.path, nil, "%d %s; at most %d are allowed: split the plan", limit.count, limit.what, limit.max)
		}
	}
	if len(p.Seats) == 0 && len(p.Areas) == 0 {
		r.errorf("", nil, "the plan has neither seats nor areas, so there is nothing to sell")
	}
}

func (p *Plan) validateCategories(r *report) {
	seen := make(map[string]int, len(p.Categories))
	for i, c := range p.Categories {
		path := fmt.Sprintf("/categories/%d", i)
		checkLabel(r, path+"/key", "key of the category", c.Key, false)
		checkLabel(r, path+"/name", "name of the category", c.Name, true)
		checkLabel(r, path+"/color", "color", c.Color, true)
		if first, twice := seen[c.Key]; twice {
			r.errorf(path+"/key", nil, "category key %s is used twice, first at /categories/%d", quoted(c.Key), first)
			continue
		}
		seen[c.Key] = i
	}
}

func (p *Plan) validateSections(r *report) {
	seen := make(map[string]int, len(p.Sections))
	row, seat := 0, 0
	for i := range p.Sections {
		s := &p.Sections[i]
		path := fmt.Sprintf("/sections/%d", i)
		checkLabel(r, path+"/key", "key of the section", s.Key, false)
		checkLabel(r, path+"/name", "name of the section", s.Name, true)
		checkLabel(r, path+"/floor", "floor", s.Floor, true)
		if first, twice := seen[s.Key]; twice {
			r.errorf(path+"/key", nil, "section key %s is used twice, first at /sections/%d", quoted(s.Key), first)
		} else {
			seen[s.Key] = i
		}
		if s.RowFirst != row || s.RowCount < 0 || s.RowCount > len(p.Rows)-row {
			r.errorf(path, nil, "rows %d+%d do not follow on the section before, which ends at row %d of %d", s.RowFirst, s.RowCount, row, len(p.Rows))
			return
		}
		if s.SeatFirst != seat || s.SeatCount < 0 || s.SeatCount > len(p.Seats)-seat {
			r.errorf(path, nil, "seats %d+%d do not follow on the section before, which ends at seat %d of %d", s.SeatFirst, s.SeatCount, seat, len(p.Seats))
			return
		}
		row, seat = row+s.RowCount, seat+s.SeatCount
		for k, beside := range s.Adjoining {
			if beside < 0 || beside >= len(p.Sections) || beside == i || slices.Contains(s.Adjoining[:k], beside) {
				r.errorf(fmt.Sprintf("%s/adjoining/%d", path, k), nil, "%d is not another section of the plan, or is listed twice", beside)
				break
			}
		}
		checkPoints(r, path+"/outline", s.Outline)
		if s.Focal != nil {
			checkPoint(r, path+"/focal", *s.Focal)
		}
	}
	if row != len(p.Rows) || seat != len(p.Seats) {
		r.errorf("/sections", nil, "the sections hold %d rows and %d seats, the plan %d and %d", row, seat, len(p.Rows), len(p.Seats))
	}
}

func (p *Plan) validateRows(r *report) {
	seat, section := 0, 0
	for i := range p.Rows {
		row := &p.Rows[i]
		path := fmt.Sprintf("/rows/%d", i)
		checkLabel(r, path+"/label", "label of the row", row.Label, true)
		for section < len(p.Sections) && i >= p.Sections[section].RowFirst+p.Sections[section].RowCount {
			section++
		}
		if row.Section != section || section >= len(p.Sections) {
			r.errorf(path+"/section", nil, "row %d says that it is of section %d, but lies in the rows of section %d", i, row.Section, section)
			return
		}
		if row.SeatFirst != seat || row.SeatCount < 1 || row.SeatCount > len(p.Seats)-seat {
			r.errorf(path, nil, "seats %d+%d do not follow on the row before, which ends at seat %d of %d", row.SeatFirst, row.SeatCount, seat, len(p.Seats))
			return
		}
		seat += row.SeatCount
		before := SeatIndex(row.SeatFirst)
		for k, b := range row.Breaks {
			if b <= before || int(b) >= row.SeatFirst+row.SeatCount {
				r.errorf(fmt.Sprintf("%s/breaks/%d", path, k), nil, "break %d is not inside the row's seats %d…%d, or not ascending", b, row.SeatFirst, row.SeatFirst+row.SeatCount-1)
				break
			}
			before = b
		}
		if s := &p.Sections[section]; i == s.RowFirst+s.RowCount-1 && seat != s.SeatFirst+s.SeatCount {
			r.errorf(path, nil, "the rows of section %d end at seat %d, the section at %d", section, seat, s.SeatFirst+s.SeatCount)
			return
		}
	}
	if seat != len(p.Seats) {
		r.errorf("/rows", nil, "the rows hold %d seats, the plan %d", seat, len(p.Seats))
	}
}

func (p *Plan) validateSeats(r *report) {
	seen := make(map[string]int, len(p.Seats))
	row := 0
	for i := range p.Seats {
		seat := &p.Seats[i]
		for row < len(p.Rows) && i >= p.Rows[row].SeatFirst+p.Rows[row].SeatCount {
			row++
		}
		bad := textFault(seat.ID) != "" || textFault(seat.Label) != "" || seat.ID == "" || int(seat.Row) != row ||
			int(seat.Category) < 0 || int(seat.Category) >= len(p.Categories) || pointFault(Point{seat.X, seat.Y}) != "" ||
			seat.Flags&^(Accessible|Companion|RestrictedView) != 0
		if bad {
			p.explainSeat(r, i, row)
		}
		if first, twice := seen[seat.ID]; twice {
			r.errorf(fmt.Sprintf("/seats/%d/id", i), []string{seat.ID}, "seat id %s is used twice, first at /seats/%d", quoted(seat.ID), first)
			continue
		}
		seen[seat.ID] = i
	}
}

// explainSeat says what is wrong with a seat that is known to be bad; the good ones need no path.
func (p *Plan) explainSeat(r *report, i, row int) {
	seat := &p.Seats[i]
	path := fmt.Sprintf("/seats/%d", i)
	id := []string{seat.ID}
	checkLabel(r, path+"/id", "seat id", seat.ID, false)
	checkLabel(r, path+"/label", "label of the seat", seat.Label, true)
	if int(seat.Row) != row {
		r.errorf(path+"/row", id, "seat %s says that it is of row %d, but lies in the seats of row %d", quoted(seat.ID), seat.Row, row)
	}
	if int(seat.Category) < 0 || int(seat.Category) >= len(p.Categories) {
		r.errorf(path+"/category", id, "seat %s is of category %d, but there are %d", quoted(seat.ID), seat.Category, len(p.Categories))
	}
	if fault := pointFault(Point{seat.X, seat.Y}); fault != "" {
		r.errorf(path, id, "position of seat %s: %s", quoted(seat.ID), fault)
	}
	if seat.Flags&^(Accessible|Companion|RestrictedView) != 0 {
		r.errorf(path+"/flags", id, "flags %d of seat %s are not known", seat.Flags, quoted(seat.ID))
	}
}

func (p *Plan) validateAreas(r *report) {
	seen := make(map[string]int, len(p.Areas))
	for i := range p.Areas {
		a := &p.Areas[i]
		path := fmt.Sprintf("/areas/%d", i)
		checkLabel(r, path+"/id", "area id", a.ID, false)
		checkLabel(r, path+"/name", "name of the area", a.Name, true)
		if first, twice := seen[a.ID]; twice {
			r.errorf(path+"/id", nil, "area id %s is used twice, first at /areas/%d", quoted(a.ID), first)
		} else {
			seen[a.ID] = i
		}
		if a.Section < 0 || a.Section >= len(p.Sections) {
			r.errorf(path+"/section", nil, "area %s is of section %d, but there are %d", quoted(a.ID), a.Section, len(p.Sections))
		}
		if a.Category < 0 || int(a.Category) >= len(p.Categories) {
			r.errorf(path+"/category", nil, "area %s is of category %d, but there are %d", quoted(a.ID), a.Category, len(p.Categories))
		}
		if a.Capacity < 1 || a.Capacity > CapacityMax {
			r.errorf(path+"/capacity", nil, "capacity of area %s is %d; it must be 1…%d", quoted(a.ID), a.Capacity, CapacityMax)
		}
		checkPoints(r, path+"/outline", a.Outline)
	}
}

func (p *Plan) validateDrawing(r *report) {
	for i := range p.Shapes {
		s := &p.Shapes[i]
		path := fmt.Sprintf("/shapes/%d", i)
		if s.Kind != ShapePolygon && s.Kind != ShapeCircle && s.Kind != ShapeText {
			r.errorf(path+"/kind", nil, "%s is not a kind of shape: polygon, circle or text", quoted(s.Kind))
		}
		checkLabel(r, path+"/text", "text", s.Text, true)
		checkLabel(r, path+"/color", "color", s.Color, true)
		checkPoints(r, path+"/points", s.Points)
		if fault := pointFault(Point{s.Radius, s.Radius}); fault != "" || s.Radius < 0 {
			r.errorf(path+"/radius", nil, "radius %v is not a length", s.Radius)
		}
	}
	checkPoint(r, "/focal", p.Focal)
	checkPoint(r, "/bounds/min", p.Bounds.Min)
	checkPoint(r, "/bounds/max", p.Bounds.Max)
	for i := range p.Seats {
		s := &p.Seats[i]
		if s.X < p.Bounds.Min.X || s.X > p.Bounds.Max.X || s.Y < p.Bounds.Min.Y || s.Y > p.Bounds.Max.Y {
			r.errorf("/bounds", []string{s.ID}, "the bounds do not hold seat %s", quoted(s.ID))
			return
		}
	}
}

// validateRowOrder checks that the rows of a section run from front to back. Rows as good as equally far may come in
// either order: what wrote the file may have measured in another precision.
func (p *Plan) validateRowOrder(r *report) {
	for i := range p.Sections {
		s := &p.Sections[i]
		before := 0.0
		for row := s.RowFirst; row < s.RowFirst+s.RowCount; row++ {
			d := p.rowDistance(row)
			if d < before-1e-3*(1+before) {
				r.errorf(fmt.Sprintf("/rows/%d", row), nil, "row %s of section %s is nearer to the focal point than the row before it; order rows front to back",
					quoted(p.Rows[row].Label), quoted(s.Key))
				break
			}
			before = d
		}
	}
}

// checkLabel reports a label which must not stand in a plan.
func checkLabel(r *report, path, what, text string, mayBeEmpty bool) {
	if text == "" && !mayBeEmpty {
		r.errorf(path, nil, "the %s is empty", what)
	}
	if fault := textFault(text); fault != "" {
		r.errorf(path, nil, "%s %s %s", what, quoted(text), fault)
	}
}

// textFault says what is wrong with a label, "" when nothing is.
func textFault(text string) string {
	plain := len(text) <= LabelMax && text == strings.TrimSpace(text)
	for i := 0; i < len(text) && plain; i++ {
		plain = text[i] >= 0x20 && text[i] < 0x7f
	}
	if plain {
		return ""
	}
	if !utf8.ValidString(text) {
		return "is not valid UTF-8"
	}
	if n := utf8.RuneCountInString(text); n > LabelMax {
		return fmt.Sprintf("has %d characters; at most %d are allowed", n, LabelMax)
	}
	if text != strings.TrimSpace(text) {
		return "begins or ends with a blank; remove it"
	}
	for _, c := range text {
		// Directional overrides would let a label show as another one than it is.
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' || (c >= '\u202a' && c <= '\u202e') || (c >= '\u2066' && c <= '\u2069') {
			return fmt.Sprintf("holds the control character U+%04X; remove it", c)
		}
	}
	return ""
}

func checkPoint(r *report, path string, point Point) {
	if fault := pointFault(point); fault != "" {
		r.errorf(path, nil, "%s", fault)
	}
}

func checkPoints(r *report, path string, points []Point) {
	if len(points) > PointsMax {
		r.errorf(path, nil, "%d points; at most %d are allowed", len(points), PointsMax)
		return
	}
	for i, point := range points {
		if fault := pointFault(point); fault != "" {
			r.errorf(fmt.Sprintf("%s/%d", path, i), nil, "%s", fault)
			return
		}
	}
}

// pointFault says what is wrong with a point, "" when nothing is.
func pointFault(point Point) string { return coordinateFault(float64(point.X), float64(point.Y)) }

func coordinateFault(x, y float64) string {
	for _, v := range [2]float64{x, y} {
		if math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) > CoordinateMax {
			return fmt.Sprintf("coordinate %v is out of range; it must lie within ±%d", v, CoordinateMax)
		}
	}
	return ""
}
