package venue

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Measures of a generated venue, in plan units (a seat is 20 wide).
const (
	seatPitch    = 20.0
	rowPitch     = 34.0
	aisleWidth   = 50.0 // between the middles of the seats on its two sides
	gangwayRows  = 3    // rows left out between two tiers
	tierRowsMax  = 24
	sectionWidth = 32 * seatPitch
	hallSeatsMax = 800 // up to so many seats it is a hall with its seats on one side, beyond it an arena
)

// GenerateOptions say what to generate. The same options give the same plan.
type GenerateOptions struct {
	Seats      int    // exactly so many seats; raised to 2 and lowered to SeatsMax
	Seed       uint64 // varies aisles, entrances and row lengths
	Name       string // must be a label as Validate takes it. Defaults to "Arena of N seats", "Hall of N seats" for a small one
	NoStanding bool   // leave out the standing areas, which come on top of the seats
}

// Generate makes a believable venue with exactly that many seats: tiers of sections around a stage, curved rows of
// differing length, radial aisles and entrances, standing areas on the floor, accessible places with companions in the
// back rows (where the ways in are), restricted view beside the stage, and categories by quality. The plan is valid if
// the name is.
func Generate(options GenerateOptions) *Plan {
	g := &generator{
		seatCount: min(max(options.Seats, 2), SeatsMax),
		random:    rand.New(rand.NewPCG(options.Seed, 0x6f6e73616c65)),
	}
	kind := "Arena"
	g.span, g.rowsPerRoot = 1.5*math.Pi, 8.6
	if g.hall = g.seatCount <= hallSeatsMax; g.hall {
		kind = "Hall"
		g.span, g.rowsPerRoot = 1.75, 3.2
	}
	if options.Name == "" {
		options.Name = fmt.Sprintf("%s of %d seats", kind, g.seatCount)
	}
	g.bowl()
	d := &draft{name: options.Name, venue: kind, categories: g.categories(), focal: g.focal()}
	d.shapes = g.stage()
	if !options.NoStanding {
		d.sections = append(d.sections, g.floor())
	}
	for _, block := range g.blocks {
		d.sections = append(d.sections, block.section(g))
	}
	p := assemble(d)
	g.price(p)
	p.moveIntoSight()
	return p
}

// moveIntoSight moves a plan so that it lies right of and below 0, 0, a seat's width away from them.
func (p *Plan) moveIntoSight() {
	dx := math.Ceil(seatPitch - float64(p.Bounds.Min.X))
	dy := math.Ceil(seatPitch - float64(p.Bounds.Min.Y))
	move := func(points ...*Point) {
		for _, point := range points {
			*point = Point{tenth(float64(point.X) + dx), tenth(float64(point.Y) + dy)}
		}
	}
	for i := range p.Seats {
		at := Point{p.Seats[i].X, p.Seats[i].Y}
		move(&at)
		p.Seats[i].X, p.Seats[i].Y = at.X, at.Y
	}
	outlines := make([][]Point, 0, len(p.Sections)+len(p.Areas)+len(p.Shapes))
	for i := range p.Sections {
		outlines = append(outlines, p.Sections[i].Outline)
	}
	for i := range p.Areas {
		outlines = append(outlines, p.Areas[i].Outline)
	}
	for i := range p.Shapes {
		outlines = append(outlines, p.Shapes[i].Points)
	}
	for _, points := range outlines {
		for i := range points {
			move(&points[i])
		}
	}
	move(&p.Focal)
	p.findBounds()
}

// A generator holds what is decided so far. Angles are 0 in the middle, opposite the stage, and grow to the left of who
// looks at it; a place at radius r and angle a is (r sin a, r cos a).
type generator struct {
	seatCount   int
	random      *rand.Rand
	hall        bool
	span        float64 // the angle which the seats take up
	rowsPerRoot float64 // seats ≈ rowsPerRoot × rows²
	inner       float64 // radius of the first row
	blocks      []*block
}

// A block is a section: the rows of one tier between two angles.
type block struct {
	tier, number int
	from, to     float64 // angles
	aisle        float64 // angle of its aisle
	entrance     int     // the row at which its entrance begins, -1 for none
	outer        bool    // beside the stage
	rows         []arc
}

// An arc is a row: seats to the left and to the right of the aisle.
type arc struct {
	radius      float64
	gap         float64 // half of the aisle's width
	left, right int
}

func (a arc) count() int { return a.left + a.right }

// bowl lays out blocks with exactly seatCount seats: as many rows as it needs, then the surplus off the last tier's back rows.
func (g *generator) bowl() {
	rowCount := max(1, int(math.Sqrt(float64(g.seatCount)/g.rowsPerRoot)))
	for ; ; rowCount++ {
		g.blocks = nil
		g.inner = max(10*seatPitch, 0.7*rowPitch*float64(rowCount))
		tierCount := (rowCount + tierRowsMax - 1) / tierRowsMax
		row := 0
		for tier := range tierCount {
			last := rowCount * (tier + 1) / tierCount
			g.tier(tier, row, last)
			row = last
		}
		if surplus := g.count() - g.seatCount; surplus >= 0 {
			g.trim(surplus)
			return
		}
	}
}

func (g *generator) count() int {
	count := 0
	for _, b := range g.blocks {
		for _, row := range b.rows {
			count += row.count()
		}
	}
	return count
}

// tier adds the sections of one tier, which has the rows [first, last).
func (g *generator) tier(tier, first, last int) {
	radius := func(row int) float64 { return g.inner + rowPitch*float64(row+tier*gangwayRows) }
	middle := (radius(first) + radius(last-1)) / 2
	count := max(1, int(math.Round(g.span*middle/sectionWidth)))
	width := g.span / float64(count)
	for i := range count {
		b := &block{tier: tier, number: i + 1, from: -g.span/2 + width*float64(i), outer: !g.hall && (i == 0 || i == count-1)}
		b.to = b.from + width
		b.aisle = (b.from+b.to)/2 + width*0.12*(g.random.Float64()-0.5)
		b.entrance = -1
		if last-first >= 14 && g.random.IntN(3) > 0 {
			b.entrance = 4 + g.random.IntN(3)
		}
		taper := g.random.Float64() * 0.25 // how many seats shorter each row nearer to the stage is
		for row := first; row < last; row++ {
			b.rows = append(b.rows, b.arc(radius(row), row-first, taper*float64(last-1-row)))
		}
		g.blocks = append(g.blocks, b)
	}
}

// arc is the row at this radius; short is how many seats it lacks at either end.
func (b *block) arc(radius float64, row int, short float64) arc {
	a := arc{radius: radius, gap: seatPitch / 2}
	if radius*(b.to-b.from) > 16*seatPitch {
		a.gap = aisleWidth / 2
		if b.entrance >= 0 && row >= b.entrance && row < b.entrance+4 {
			a.gap *= 2
		}
	}
	fit := func(angle float64) int {
		length := radius*angle - aisleWidth/2 - a.gap - short*seatPitch/2
		return max(1, 1+int(length/seatPitch))
	}
	a.left, a.right = fit(b.aisle-b.from), fit(b.to-b.aisle)
	return a
}

// trim takes the surplus seats away, one from each section in turn, from the ends of the back rows of the last tier and
// on towards the front where that is not enough.
func (g *generator) trim(surplus int) {
	for tier := g.blocks[len(g.blocks)-1].tier; surplus > 0; tier-- {
		var blocks []*block
		for _, b := range g.blocks {
			if b.tier == max(tier, 0) {
				blocks = append(blocks, b)
			}
		}
		for taken := true; taken && surplus > 0; {
			taken = false
			for _, b := range blocks {
				if surplus > 0 && b.dropSeat() {
					surplus--
					taken = true
				}
			}
		}
	}
}

// dropSeat takes one seat away at an end of the last row, and the row when it was its last; false when none is left.
func (b *block) dropSeat() bool {
	if len(b.rows) == 0 {
		return false
	}
	last := &b.rows[len(b.rows)-1]
	if last.left > last.right {
		last.left--
	} else {
		last.right--
	}
	if last.count() == 0 {
		b.rows = b.rows[:len(b.rows)-1]
	}
	return true
}

// section makes the block's seats.
func (b *block) section(g *generator) draftSection {
	s := draftSection{key: strconv.Itoa(100*(b.tier+1) + b.number)}
	s.name = "Section " + s.key
	if g.hall {
		s.key = string(rune('A' + b.number - 1))
		s.name = "Block " + s.key
	} else {
		s.floor = "Tier " + strconv.Itoa(b.tier+1)
	}
	if len(b.rows) > 0 {
		s.outline = sector(b.rows[0].radius-rowPitch/2, b.rows[len(b.rows)-1].radius+rowPitch/2, b.from, b.to)
	}
	for i, a := range b.rows {
		row := draftRow{label: rowLetters(i), seats: make([]draftSeat, 0, a.count())}
		for k := range a.count() {
			along := a.gap + seatPitch*float64(k-a.left)
			if k < a.left {
				along = -a.gap - seatPitch*float64(a.left-1-k)
			}
			angle := b.aisle + along/a.radius
			seat := draftSeat{place: k}
			seat.Label = strconv.Itoa(k + 1)
			seat.ID = s.key + "-" + row.label + "-" + seat.Label
			at := polar(a.radius, angle)
			seat.X, seat.Y = at.X, at.Y
			if b.outer && math.Abs(angle) > g.span/2*0.95 {
				seat.Flags |= RestrictedView
			}
			row.seats = append(row.seats, seat)
		}
		if i == b.accessibleRow() {
			reserveAccessible(row.seats, a.left)
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// accessibleRow is the row furthest back that has room for accessible places; -1 for none.
func (b *block) accessibleRow() int {
	for i := len(b.rows) - 1; i >= 0; i-- {
		if b.rows[i].left >= 3 || b.rows[i].right >= 3 {
			return i
		}
	}
	return -1
}

// reserveAccessible makes accessible places with a companion beside them at both ends of the row and at its aisle, where
// there is room for ordinary seats between them.
func reserveAccessible(seats []draftSeat, aisle int) {
	pair := func(place, companion int) {
		seats[place].Flags |= Accessible
		seats[companion].Flags |= Companion
	}
	n := len(seats)
	if aisle >= 3 {
		pair(0, 1)
	}
	if n-aisle >= 3 {
		pair(n-1, n-2)
	}
	if aisle >= 8 {
		pair(aisle-1, aisle-2)
	}
	if n-aisle >= 8 {
		pair(aisle, aisle+1)
	}
}

// rowLetters is A…Z, AA, AB… for 0, 1, …
func rowLetters(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return rowLetters(i/26-1) + string(rune('A'+i%26))
}

// polar is the point at a radius and an angle, to a tenth of a unit: finer digits would only make the plan larger.
func polar(radius, angle float64) Point {
	return Point{tenth(radius * math.Sin(angle)), tenth(radius * math.Cos(angle))}
}

func tenth(v float64) float32 { return float32(math.Round(v*10)/10) + 0 }

// sector is the outline of what lies between two radii and two angles.
func sector(inner, outer, from, to float64) []Point {
	const steps = 4
	var outline []Point
	for i := range steps + 1 {
		outline = append(outline, polar(outer, from+(to-from)*float64(i)/steps))
	}
	for i := range steps + 1 {
		outline = append(outline, polar(inner, to+(from-to)*float64(i)/steps))
	}
	return outline
}

// focal is the middle of the stage's front edge.
func (g *generator) focal() Point {
	if g.hall {
		return Point{}
	}
	return polar(g.inner*0.45, math.Pi)
}

func (g *generator) stage() []Shape {
	front, deep, wide := float64(g.focal().Y), g.inner*0.4, g.inner*0.45
	return []Shape{{Kind: ShapePolygon, Text: "STAGE", Color: "#444444", Points: []Point{
		{tenth(-wide), tenth(front - deep)}, {tenth(wide), tenth(front - deep)},
		{tenth(wide), tenth(front)}, {tenth(-wide), tenth(front)},
	}}}
}

// floor is the section of the standing areas, between the stage and the first row.
func (g *generator) floor() draftSection {
	s := draftSection{key: "FLOOR", name: "Floor"}
	box := func(id, name string, capacity int, x1, y1, x2, y2 float64) {
		scale := g.inner
		s.areas = append(s.areas, Area{ID: id, Name: name, Capacity: max(2, capacity), Outline: []Point{
			{tenth(x1 * scale), tenth(y1 * scale)}, {tenth(x2 * scale), tenth(y1 * scale)},
			{tenth(x2 * scale), tenth(y2 * scale)}, {tenth(x1 * scale), tenth(y2 * scale)},
		}})
	}
	if g.hall {
		box("FLOOR", "Standing", g.seatCount/10, -0.35, 0.15, 0.35, 0.8)
		return s
	}
	box("FLOOR-FRONT", "Front standing", g.seatCount/50, -0.5, -0.4, 0.5, -0.1)
	box("FLOOR-LEFT", "Standing left", g.seatCount/40, -0.6, -0.05, -0.02, 0.65)
	box("FLOOR-RIGHT", "Standing right", g.seatCount/40, 0.02, -0.05, 0.6, 0.65)
	return s
}

// categories are three to five for seats, best first, and the last one for standing.
func (g *generator) categories() []Category {
	all := []Category{
		{Key: "PREMIUM", Name: "Premium", Color: "#b8860b"},
		{Key: "CAT1", Name: "Category 1", Color: "#c0392b"},
		{Key: "CAT2", Name: "Category 2", Color: "#2471a3"},
		{Key: "CAT3", Name: "Category 3", Color: "#1e8449"},
		{Key: "CAT4", Name: "Category 4", Color: "#7d3c98"},
	}
	standing := Category{Key: "STANDING", Name: "Standing", Color: "#7f8c8d"}
	count := 3
	if g.seatCount > 2_000 {
		count++
	}
	if g.seatCount > 20_000 {
		count++
	}
	return append(all[:count:count], standing)
}

// price gives each row its category by how its seats rank in the plan, and the areas the last one.
func (g *generator) price(p *Plan) {
	seatCategories := len(p.Categories) - 1
	mean := make([]float64, len(p.Rows))
	order := make([]int, len(p.Rows))
	for row := range p.Rows {
		order[row], mean[row] = row, p.rowDistance(row)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
	seen := 0
	for _, row := range order {
		r := &p.Rows[row]
		// The best tenth is the first category, the others share the rest.
		share := float64(seen) / float64(len(p.Seats))
		category := 0
		if share > 0.1 {
			category = 1 + int((share-0.1)/0.9*float64(seatCategories-1))
		}
		for i := r.SeatFirst; i < r.SeatFirst+r.SeatCount; i++ {
			p.Seats[i].Category = int16(min(category, seatCategories-1))
		}
		seen += r.SeatCount
	}
	for i := range p.Areas {
		p.Areas[i].Category = int16(seatCategories)
	}
}
