package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	random "math/rand/v2"
)

// The size of a picture, in pixels.
const (
	Width  = 300
	Height = 100

	letterHeight = 54.0
	stroke       = 4.6 // of letters, and of the lines through them
	linesThrough = 2
	shades       = 64
)

// draw makes the picture: letters that lean, differ in size and touch each other, bent by two waves, with lines of their
// own width through them, so that neither color nor width nor gaps tell the letters from the lines or from each other; and
// on that grain, against which no single pixel says what it belongs to.
func draw(letters string, r *random.Rand) []byte {
	var all []segment
	x := 0.0
	step := float64(Width-2*22) / float64(len(letters))
	for i := range len(letters) {
		x = 22 + step*(float64(i)+0.5) + spread(r, 3)
		all = append(all, place(strokesOf(letters[i]), r, point{x, Height/2 + spread(r, 6)})...)
	}
	for range linesThrough {
		y0, y1 := 18+60*r.Float64(), 18+60*r.Float64()
		line := []point{{-5, y0}, {Width * (0.2 + 0.2*r.Float64()), Height * r.Float64()}, {Width * (0.6 + 0.2*r.Float64()), Height * r.Float64()}, {Width + 5, y1}}
		for range 3 {
			line = cutCorners(line)
		}
		all = append(all, segmentsOf(line)...)
	}
	waves := wavesOf(r)
	img := image.NewPaletted(image.Rect(0, 0, Width, Height), palette(r))
	ink := newInk(all, stroke*(0.85+0.2*r.Float64()))
	for x := range Width {
		down := waves.a * math.Sin(waves.b*float64(x)+waves.c)
		for y := range Height {
			aside := waves.d * math.Sin(waves.e*float64(y)+waves.f)
			dark := ink.at(point{float64(x) + aside, float64(y) + down})
			shade := int(math.Round(dark*(shades-14) + r.Float64()*13))
			if r.IntN(40) == 0 {
				shade = r.IntN(shades)
			}
			img.Pix[y*img.Stride+x] = uint8(max(0, min(shades-1, shade)))
		}
	}
	var out bytes.Buffer
	_ = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, img) // a buffer takes everything
	return out.Bytes()
}

// spread is a number between -most and most.
func spread(r *random.Rand, most float64) float64 { return most * (2*r.Float64() - 1) }

// place leans, stretches and moves a glyph.
func place(glyph []segment, r *random.Rand, to point) []segment {
	angle, lean := spread(r, 0.26), spread(r, 0.2)
	high, wide := letterHeight*(0.85+0.25*r.Float64()), letterHeight*(0.85+0.2*r.Float64())
	sin, cos := math.Sincos(angle)
	move := func(p point) point {
		x, y := (p.x+lean*p.y)*wide, p.y*high
		return point{to.x + x*cos - y*sin, to.y + x*sin + y*cos}
	}
	all := make([]segment, len(glyph))
	for i, s := range glyph {
		all[i] = segment{move(s.a), move(s.b)}
	}
	return all
}

// waves bend the whole picture.
type waves struct{ a, b, c, d, e, f float64 }

func wavesOf(r *random.Rand) waves {
	return waves{
		a: 2 + 2*r.Float64(), b: 0.03 + 0.03*r.Float64(), c: 2 * math.Pi * r.Float64(),
		d: 2 + 2*r.Float64(), e: 0.05 + 0.03*r.Float64(), f: 2 * math.Pi * r.Float64(),
	}
}

// An ink is strokes by the columns that they can reach.
type ink struct {
	width   float64
	columns [(Width + 2*margin) / columnWidth][]segment
}

const (
	margin      = 16 // that waves and strokes may go beyond the picture
	columnWidth = 8
)

func newInk(all []segment, width float64) *ink {
	k := &ink{width: width}
	reach := width/2 + 1
	for _, s := range all {
		from, to := math.Min(s.a.x, s.b.x)-reach, math.Max(s.a.x, s.b.x)+reach
		for c := column(from); c <= column(to); c++ {
			k.columns[c] = append(k.columns[c], s)
		}
	}
	return k
}

func column(x float64) int {
	return max(0, min((Width+2*margin)/columnWidth-1, int(x+margin)/columnWidth))
}

// at is how dark a point is, 0–1: full within half a stroke's width, with a soft edge.
func (k *ink) at(p point) float64 {
	reach := k.width/2 + 1
	least := reach * reach
	for _, s := range k.columns[column(p.x)] {
		least = math.Min(least, s.distance(p))
	}
	return math.Max(0, math.Min(1, k.width/2+0.5-math.Sqrt(least)))
}

// palette goes from a light color to a dark one, or the other way, with at least the contrast that letters need (WCAG asks
// 4.5 of text; this is about 7).
func palette(r *random.Rand) color.Palette {
	light := [3]float64{225 + 30*r.Float64(), 225 + 30*r.Float64(), 225 + 30*r.Float64()}
	dark := [3]float64{70 * r.Float64(), 70 * r.Float64(), 90 * r.Float64()}
	if r.IntN(4) == 0 {
		light, dark = dark, light
	}
	p := make(color.Palette, shades)
	for i := range p {
		t := float64(i) / (shades - 1)
		mix := func(c int) uint8 { return uint8(light[c] + t*(dark[c]-light[c])) }
		p[i] = color.RGBA{mix(0), mix(1), mix(2), 255}
	}
	return p
}
