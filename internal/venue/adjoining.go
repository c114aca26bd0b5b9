package venue

import (
	"cmp"
	"math"
	"slices"
)

// Bounds on the work of finding adjoining sections: only so many candidates (the nearest by centre) are measured outline
// to outline, and an outline is measured by so many of its points.
const (
	candidatesMax = 2 * AdjoiningMax
	hullPointsMax = 32
)

// A footprint is what a section covers of the floor.
type footprint struct {
	section int
	floor   string
	hull    []Point
	centre  Point
	size    float64 // its diagonal
}

// findAdjoining fills Adjoining of every section: sections on the same floor whose outlines are no further apart than
// half of the larger one's diagonal, nearest first.
func (p *Plan) findAdjoining() {
	prints := p.footprints()
	for i := range p.Sections {
		p.Sections[i].Adjoining = nil
	}
	type candidate struct {
		print       *footprint
		gap, centre float64
	}
	for i := range prints {
		own := &prints[i]
		var near []candidate
		for k := range prints {
			if k != i && prints[k].floor == own.floor {
				near = append(near, candidate{print: &prints[k], centre: separation(own.centre, prints[k].centre)})
			}
		}
		byCentre := func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.centre, b.centre), cmp.Compare(a.print.section, b.print.section))
		}
		slices.SortFunc(near, byCentre)
		near = near[:min(len(near), candidatesMax)]
		for k := range near {
			near[k].gap = hullGap(own.hull, near[k].print.hull)
		}
		slices.SortFunc(near, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.gap, b.gap), byCentre(a, b)) })
		for _, c := range near {
			if len(p.Sections[own.section].Adjoining) < AdjoiningMax && c.gap <= max(own.size, c.print.size)/2 {
				p.Sections[own.section].Adjoining = append(p.Sections[own.section].Adjoining, c.print.section)
			}
		}
	}
}

// footprints measures every section that covers anything.
func (p *Plan) footprints() []footprint {
	points := make([][]Point, len(p.Sections))
	for i, s := range p.Sections {
		points[i] = slices.Clone(s.Outline)
		for k := s.SeatFirst; k < s.SeatFirst+s.SeatCount && len(s.Outline) == 0; k++ {
			points[i] = append(points[i], Point{p.Seats[k].X, p.Seats[k].Y})
		}
	}
	for _, a := range p.Areas {
		if len(p.Sections[a.Section].Outline) == 0 {
			points[a.Section] = append(points[a.Section], a.Outline...)
		}
	}
	var prints []footprint
	for i := range points {
		if len(points[i]) == 0 {
			continue
		}
		hull := hullOf(points[i])
		box := boxOf(hull)
		prints = append(prints, footprint{
			section: i, floor: p.Sections[i].Floor, hull: hull,
			centre: Point{(box.Min.X + box.Max.X) / 2, (box.Min.Y + box.Max.Y) / 2},
			size:   separation(box.Min, box.Max),
		})
	}
	return prints
}

// hullOf is the convex hull of the points (by Andrew's monotone chain), thinned to hullPointsMax points.
func hullOf(points []Point) []Point {
	sorted := slices.Clone(points)
	slices.SortFunc(sorted, func(a, b Point) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y)) })
	sorted = slices.Compact(sorted)
	if len(sorted) < 3 {
		return sorted
	}
	half := func(points []Point) []Point {
		var chain []Point
		for _, c := range points {
			for len(chain) >= 2 && cross(chain[len(chain)-2], chain[len(chain)-1], c) <= 0 {
				chain = chain[:len(chain)-1]
			}
			chain = append(chain, c)
		}
		return chain[:len(chain)-1]
	}
	hull := half(sorted)
	slices.Reverse(sorted)
	hull = append(hull, half(sorted)...)
	if len(hull) <= hullPointsMax {
		return hull
	}
	thin := make([]Point, hullPointsMax)
	for i := range thin {
		thin[i] = hull[i*len(hull)/hullPointsMax]
	}
	return thin
}

// cross is twice the area of the triangle a b c: positive when it turns to the left.
func cross(a, b, c Point) float64 {
	ux, uy := float64(b.X)-float64(a.X), float64(b.Y)-float64(a.Y)
	vx, vy := float64(c.X)-float64(a.X), float64(c.Y)-float64(a.Y)
	return float64(ux*vy) - float64(uy*vx)
}

// hullGap is the distance between two convex outlines, 0 where they meet.
func hullGap(a, b []Point) float64 {
	if insideHull(a[0], b) || insideHull(b[0], a) {
		return 0
	}
	gap := math.Inf(1)
	for i := range a {
		for k := range b {
			a1, a2, b1, b2 := a[i], a[(i+1)%len(a)], b[k], b[(k+1)%len(b)]
			if crosses(a1, a2, b1, b2) {
				return 0
			}
			gap = min(gap, toSegment(a1, b1, b2), toSegment(b1, a1, a2))
		}
	}
	return gap
}

func insideHull(point Point, hull []Point) bool {
	if len(hull) < 3 {
		return false
	}
	for i := range hull {
		if cross(hull[i], hull[(i+1)%len(hull)], point) < 0 {
			return false
		}
	}
	return true
}

func crosses(a1, a2, b1, b2 Point) bool {
	return cross(a1, a2, b1)*cross(a1, a2, b2) < 0 && cross(b1, b2, a1)*cross(b1, b2, a2) < 0
}

// toSegment is the distance of a point from the segment from a to b.
func toSegment(point, a, b Point) float64 {
	ux, uy := float64(b.X)-float64(a.X), float64(b.Y)-float64(a.Y)
	vx, vy := float64(point.X)-float64(a.X), float64(point.Y)-float64(a.Y)
	length := float64(ux*ux) + float64(uy*uy)
	t := 0.0
	if length > 0 {
		t = min(1, max(0, (float64(ux*vx)+float64(uy*vy))/length))
	}
	return math.Hypot(vx-float64(t*ux), vy-float64(t*uy))
}

// boxOf is the smallest rectangle that holds the points; the zero Rect for none.
func boxOf(points []Point) Rect {
	if len(points) == 0 {
		return Rect{}
	}
	box := Rect{points[0], points[0]}
	for _, point := range points[1:] {
		box = box.with(point)
	}
	return box
}

// with is the rectangle grown to hold the point.
func (r Rect) with(point Point) Rect {
	return Rect{
		Min: Point{min(r.Min.X, point.X), min(r.Min.Y, point.Y)},
		Max: Point{max(r.Max.X, point.X), max(r.Max.Y, point.Y)},
	}
}

// findBounds sets Bounds so that everything drawn lies in it.
func (p *Plan) findBounds() {
	box := Rect{p.Focal, p.Focal}
	add := func(points []Point) {
		for _, point := range points {
			box = box.with(point)
		}
	}
	for i := range p.Seats {
		box = box.with(Point{p.Seats[i].X, p.Seats[i].Y})
	}
	for _, s := range p.Sections {
		add(s.Outline)
	}
	for _, a := range p.Areas {
		add(a.Outline)
	}
	for _, s := range p.Shapes {
		for _, point := range s.Points {
			add([]Point{{point.X - s.Radius, point.Y - s.Radius}, {point.X + s.Radius, point.Y + s.Radius}})
		}
	}
	p.Bounds = box
}
