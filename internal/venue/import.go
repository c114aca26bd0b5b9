package venue

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ImportOptions say how lenient Import is.
type ImportOptions struct {
	// RenameDuplicates gives seats which share an id new ones, always the same for the same file, instead of
	// refusing it. Ids of seats that were sold must not change afterwards: import once, then keep the plan.
	RenameDuplicates bool
}

// Import makes a plan of a file in our own format, a pretix seating plan or a seats.io chart; it recognises which by the
// content. It answers
//
//   - the plan and notes (what a person may want to know of it, never an error), or
//   - no plan, all problems of the file at once (up to a bound, the rest counted) and a *RefusedError which holds them.
//
// It never panics and bounds what it uses of memory and time, whatever the file holds. The plan is valid, and the same
// for the same bytes and options.
func Import(data []byte, options ImportOptions) (*Plan, []Problem, error) {
	r := &report{}
	p := importFile(r, data, options)
	if err := r.refusal(); err != nil {
		return nil, r.problems(), err
	}
	return p, r.problems(), nil
}

// The formats that Import knows.
const (
	formatUnknown = iota
	formatOwn
	formatPretix
	formatSeatsio
)

func importFile(r *report, data []byte, options ImportOptions) *Plan {
	first := map[string]byte{}
	data, ok := scan(r, data, func(name string, value byte) {
		switch name {
		case "format", "seats", "zones", "subChart", "subChartFloors":
			first[name] = value
		}
	})
	if !ok {
		return nil
	}
	d := &draft{}
	switch recognise(first) {
	case formatOwn:
		return decodeOwn(r, data)
	case formatPretix:
		ok = readPretix(r, data, d)
	case formatSeatsio:
		ok = readSeatsio(r, data, d)
	default:
		if !json.Valid(data) {
			unmarshal(r, data, &struct{}{}) // says where it is broken
		}
		if !r.failed() {
			r.errorf("", nil, "this is not a seating plan that can be imported: neither our own (format, seats), nor pretix (zones), nor seats.io (subChart)")
		}
		return nil
	}
	if !ok {
		return nil
	}
	return finish(r, d, options)
}

// recognise tells the format by the first bytes of the values of some outermost keys.
func recognise(first map[string]byte) int {
	switch {
	case first["subChart"] == '{' || first["subChartFloors"] == '[':
		return formatSeatsio
	case first["zones"] == '[':
		return formatPretix
	case first["format"] != 0 || first["seats"] == '[':
		return formatOwn
	}
	return formatUnknown
}

// finish checks what a foreign file said and makes the plan of it.
func finish(r *report, d *draft, options ImportOptions) *Plan {
	if !d.checkCounts(r) {
		return nil
	}
	d.uniqueKeys()
	d.checkDuplicates(r, options)
	if r.failed() {
		return nil
	}
	d.noteUnused(r)
	p := assemble(d)
	// What the readers let through is for Validate to find: one place holds the rules.
	for _, problem := range p.Validate() {
		r.errorf("", problem.Seats, "the plan that results breaks a rule: %s", problem)
	}
	return p
}

// checkCounts reports a draft that is too large; what is costly comes after it.
func (d *draft) checkCounts(r *report) bool {
	seats, areas := 0, 0
	for i := range d.sections {
		areas += len(d.sections[i].areas)
		for k := range d.sections[i].rows {
			seats += len(d.sections[i].rows[k].seats)
		}
	}
	ok := true
	for _, limit := range []struct {
		what       string
		count, max int
	}{
		{"seats", seats, SeatsMax}, {"sections", len(d.sections), SectionsMax},
		{"areas", areas, AreasMax}, {"drawn shapes", len(d.shapes), ShapesMax},
	} {
		if limit.count > limit.max {
			r.errorf("", nil, "the file has %d %s; at most %d are allowed: split it", limit.count, limit.what, limit.max)
			ok = false
		}
	}
	if seats == 0 && areas == 0 && !r.failed() {
		r.errorf("", nil, "the file has neither seats nor areas with a capacity, so there is nothing to sell")
		ok = false
	}
	return ok
}

// uniqueKeys gives sections which share a key a number: nobody is sold a section, so this needs no leave.
func (d *draft) uniqueKeys() {
	taken := map[string]bool{}
	next := map[string]int{}
	for i := range d.sections {
		taken[d.sections[i].key] = true
	}
	seen := map[string]bool{}
	for i := range d.sections {
		key := d.sections[i].key
		if seen[key] {
			d.sections[i].key = numbered(key, taken, next)
		}
		seen[d.sections[i].key] = true
	}
}

// numbered is the text with the first suffix ~2, ~3, … which makes it one that is not taken; it is taken then. next keeps
// where to go on looking.
func numbered(text string, taken map[string]bool, next map[string]int) string {
	for n := max(2, next[text]); ; n++ {
		if candidate := text + "~" + strconv.Itoa(n); !taken[candidate] {
			next[text] = n + 1
			taken[candidate] = true
			return candidate
		}
	}
}

func (d *draft) noteUnused(r *report) {
	used := make([]bool, len(d.categories))
	for i := range d.sections {
		for _, area := range d.sections[i].areas {
			used[area.Category] = true
		}
		for k := range d.sections[i].rows {
			for j := range d.sections[i].rows[k].seats {
				used[d.sections[i].rows[k].seats[j].Category] = true
			}
		}
	}
	for i, c := range d.categories {
		if !used[i] {
			r.notef("", nil, "category %s has no seat and no area", quoted(c.Name))
		}
	}
}

// text is a label in a foreign file: a string, or a number where somebody left out the quotes.
type text struct {
	value string
	wrong bool // something else stands there
}

func (t *text) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		if err := json.Unmarshal(data, &t.value); err != nil {
			return err
		}
		t.value = strings.TrimSpace(t.value)
	case 'n':
	case '{', '[', 't', 'f':
		t.wrong = true
	default:
		t.value = string(data)
	}
	return nil
}

// number is a number in a foreign file, fractional or not, perhaps in quotes.
type number struct {
	value float64 // NaN for what is no number
	set   bool
}

func (n *number) UnmarshalJSON(data []byte) error {
	if data[0] == 'n' {
		return nil
	}
	value, err := strconv.ParseFloat(strings.Trim(string(data), `" `), 64)
	if err != nil {
		value = math.NaN()
	}
	n.value, n.set = value, true
	return nil
}

// flag is a yes or no in a foreign file.
type flag bool

func (f *flag) UnmarshalJSON(data []byte) error {
	switch strings.ToLower(strings.Trim(string(data), `"`)) {
	case "true", "1", "yes":
		*f = true
	}
	return nil
}

// position is a place in a foreign file.
type position struct {
	X number `json:"x"`
	Y number `json:"y"`
}

func (p position) set() bool { return p.X.set && p.Y.set }

// plus is the place which is p away from an origin.
func (p position) plus(origin vector) vector {
	return vector{origin.x + p.X.value, origin.y + p.Y.value}
}

// vector is a place in float64: nested coordinates are added before they are rounded.
type vector struct{ x, y float64 }

// point is the vector in a plan; only for one without fault. Adding 0 turns -0 into 0.
func (v vector) point() Point { return Point{float32(v.x) + 0, float32(v.y) + 0} }

func (v vector) fault() string { return coordinateFault(v.x, v.y) }

// turned is the vector turned around a centre by degrees, clockwise since y grows downward.
func (v vector) turned(centre vector, degrees float64) vector {
	if degrees == 0 || math.IsNaN(degrees) || math.IsInf(degrees, 0) {
		return v
	}
	sin, cos := math.Sincos(math.Mod(degrees, 360) * math.Pi / 180)
	dx, dy := v.x-centre.x, v.y-centre.y
	return vector{centre.x + dx*cos - dy*sin, centre.y + dx*sin + dy*cos}
}

// outline turns vectors into points, and reports the first that is not a place.
func outline(r *report, path string, vectors []vector) []Point {
	if len(vectors) > PointsMax {
		r.errorf(path, nil, "%d points; at most %d are allowed: simplify the outline", len(vectors), PointsMax)
		return nil
	}
	points := make([]Point, len(vectors))
	for i, v := range vectors {
		if fault := v.fault(); fault != "" {
			r.errorf(path, nil, "%s", fault)
			return nil
		}
		points[i] = v.point()
	}
	return points
}

// rectangle is its four corners around a centre.
func rectangle(centre vector, width, height, degrees float64) []vector {
	corners := make([]vector, 0, 4)
	for _, c := range [4]vector{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}} {
		corners = append(corners, vector{centre.x + c.x*width/2, centre.y + c.y*height/2}.turned(centre, degrees))
	}
	return corners
}

// ellipse is a polygon of 24 corners.
func ellipse(centre vector, radiusX, radiusY, degrees float64) []vector {
	corners := make([]vector, 24)
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(len(corners)))
		corners[i] = vector{centre.x + radiusX*cos, centre.y + radiusY*sin}.turned(centre, degrees)
	}
	return corners
}

// stageWords are what a drawing is called that the seats look at.
var stageWords = []string{"stage", "bühne", "buehne", "scène", "scene", "escenario", "palco", "podium", "screen", "leinwand", "舞台", "主舞台"}

func isStage(name string) bool {
	name = strings.ToLower(name)
	for _, word := range stageWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// findFocal chooses what the seats look at where the file does not say: a drawing named as a stage, else the largest
// drawing without a seat in it (a pitch), else the middle of the upper edge of the seats. stages are those drawings'
// indexes among the shapes.
func (d *draft) findFocal(stages []int) Point {
	if len(stages) > 0 {
		return centreOf(d.shapes[stages[0]])
	}
	var seats []Point
	for i := range d.sections {
		for k := range d.sections[i].rows {
			for j := range d.sections[i].rows[k].seats {
				seats = append(seats, d.sections[i].rows[k].seats[j].point())
			}
		}
		for _, area := range d.sections[i].areas {
			seats = append(seats, area.Outline...)
		}
	}
	largest, size := -1, 0.0
	for i := range d.shapes {
		if i >= 100 {
			break // drawings beyond that are decoration, and each is held against every seat
		}
		if s := areaOf(d.shapes[i]); s > size && !holdsAny(d.shapes[i], seats) {
			largest, size = i, s
		}
	}
	if largest >= 0 {
		return centreOf(d.shapes[largest])
	}
	box := boxOf(seats)
	return Point{(box.Min.X + box.Max.X) / 2, box.Min.Y}
}

func shapeBox(s Shape) Rect {
	box := boxOf(s.Points)
	box.Min = Point{box.Min.X - s.Radius, box.Min.Y - s.Radius}
	box.Max = Point{box.Max.X + s.Radius, box.Max.Y + s.Radius}
	return box
}

func centreOf(s Shape) Point {
	box := shapeBox(s)
	return Point{(box.Min.X + box.Max.X) / 2, (box.Min.Y + box.Max.Y) / 2}
}

func areaOf(s Shape) float64 {
	box := shapeBox(s)
	return (float64(box.Max.X) - float64(box.Min.X)) * (float64(box.Max.Y) - float64(box.Min.Y))
}

func holdsAny(s Shape, points []Point) bool {
	box := shapeBox(s)
	for _, point := range points {
		if point.X > box.Min.X && point.X < box.Max.X && point.Y > box.Min.Y && point.Y < box.Max.Y {
			return true
		}
	}
	return false
}

// where is the path of a seat of the row.
func (r *draftRow) where(place int) string { return fmt.Sprintf("%s/%d", r.path, place) }
