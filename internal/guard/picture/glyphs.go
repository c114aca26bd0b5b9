package picture

import (
	"math"
	"strings"
)

// alphabet has no two letters that a bent picture makes alike: no B and 8, S and 5, Z and 2, G and 6, I and 1, O, Q and 0, U and V.
const alphabet = "ACDEFHJKLMNPRTUWXY379"

// glyphs are letters as strokes: points of a grid 4 wide and 6 high, two digits each, y downwards. A stroke that begins
// with ~ is a curve: its corners are cut.
var glyphs = map[byte]string{
	'A': "062046,1434",
	'C': "~4130100105163645",
	'D': "0006,~003041453606",
	'E': "40000646,0333",
	'F': "400006,0333",
	'H': "0006,4046,0343",
	'J': "1040,~303536160605",
	'K': "0006,4003,1246",
	'L': "000646",
	'M': "0600234046",
	'N': "06004640",
	'P': "0006,~003041423303",
	'R': "0006,~003041423303,1346",
	'T': "0040,2026",
	'U': "~000406364440",
	'W': "0016233640",
	'X': "0046,4006",
	'Y': "002340,2326",
	'3': "~0010304142332313,~13334445361605",
	'7': "004016",
	'9': "~4130100103144342,4146",
}

type point struct{ x, y float64 }

// A segment is a piece of a stroke.
type segment struct{ a, b point }

// strokesOf is a glyph as segments, in a box 1 high around (0, 0).
func strokesOf(c byte) (all []segment) {
	for _, stroke := range strings.Split(glyphs[c], ",") {
		bent := strings.HasPrefix(stroke, "~")
		stroke = strings.TrimPrefix(stroke, "~")
		var line []point
		for i := 0; i+1 < len(stroke); i += 2 {
			line = append(line, point{float64(stroke[i]-'0')/6 - 1.0/3, float64(stroke[i+1]-'0')/6 - 0.5})
		}
		if bent {
			line = cutCorners(cutCorners(line))
		}
		all = append(all, segmentsOf(line)...)
	}
	return all
}

func segmentsOf(line []point) (all []segment) {
	for i := 1; i < len(line); i++ {
		all = append(all, segment{line[i-1], line[i]})
	}
	return all
}

// cutCorners makes a line rounder (Chaikin's way); its ends stay.
func cutCorners(line []point) []point {
	if len(line) < 3 {
		return line
	}
	round := []point{line[0]}
	for i := 1; i < len(line); i++ {
		a, b := line[i-1], line[i]
		round = append(round, between(a, b, 0.25), between(a, b, 0.75))
	}
	return append(round, line[len(line)-1])
}

func between(a, b point, t float64) point { return point{a.x + t*(b.x-a.x), a.y + t*(b.y-a.y)} }

// distance is how far a point is from a segment, squared.
func (s segment) distance(p point) float64 {
	dx, dy := s.b.x-s.a.x, s.b.y-s.a.y
	t := 0.0
	if l := dx*dx + dy*dy; l > 0 {
		t = math.Max(0, math.Min(1, ((p.x-s.a.x)*dx+(p.y-s.a.y)*dy)/l))
	}
	ex, ey := s.a.x+t*dx-p.x, s.a.y+t*dy-p.y
	return ex*ex + ey*ey
}
