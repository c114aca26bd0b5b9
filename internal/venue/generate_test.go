package venue

import (
	"fmt"
	"testing"
	"time"
)

func TestGenerateSizes(t *testing.T) {
	sizes := []int{2, 3, 5, 17, 18, 50, 100, 333, 800, 801, 1000, 2000, 2001, 9999, 20_001, 50_000, 200_000}
	for n := 19; n < 3000; n += 61 {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := Generate(GenerateOptions{Seats: n})
			if len(p.Seats) != n {
				t.Fatalf("%d seats, want %d", len(p.Seats), n)
			}
			for _, problem := range p.Validate() {
				t.Error(problem)
			}
			if c := len(p.Categories); c < 4 || c > 6 {
				t.Errorf("%d categories, want 4 to 6", c)
			}
			if len(p.Areas) == 0 {
				t.Error("no standing area")
			}
			if p.Bounds.Min.X < 0 || p.Bounds.Min.Y < 0 {
				t.Errorf("it reaches to %v", p.Bounds.Min)
			}
		})
	}
	for _, n := range []int{-1, 0, 1} {
		if p := Generate(GenerateOptions{Seats: n}); len(p.Seats) != 2 {
			t.Errorf("%d seats for %d, want 2", len(p.Seats), n)
		}
	}
}

// TestGenerateIsBelievable checks what the arena is to have.
func TestGenerateIsBelievable(t *testing.T) {
	for _, n := range []int{200, 2000, 50_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := Generate(GenerateOptions{Seats: n})
			l := p.Layout()
			lengths, breaks := map[int]bool{}, 0
			for _, row := range p.Rows {
				lengths[row.SeatCount] = true
				breaks += len(row.Breaks)
			}
			if len(lengths) < 4 || breaks == 0 {
				t.Errorf("%d different lengths of rows, %d aisles", len(lengths), breaks)
			}
			if l.Accessible.Count() == 0 || l.Companion.Count() != l.Accessible.Count() {
				t.Errorf("%d accessible places, %d companions", l.Accessible.Count(), l.Companion.Count())
			}
			for i := range p.Seats {
				s := SeatIndex(i)
				if !l.Accessible.Has(s) {
					continue
				}
				before := l.Joined.Has(s) && l.Companion.Has(s-1)
				after := i+1 < n && l.Joined.Has(s+1) && l.Companion.Has(s+1)
				if !before && !after {
					t.Fatalf("accessible seat %s has no companion beside it", p.Seats[i].ID)
				}
			}
			for c := range len(p.Categories) - 2 {
				best, next := meanQuality(l, c), meanQuality(l, c+1)
				if best >= next {
					t.Errorf("category %d has mean quality %.0f, the next one %.0f", c, best, next)
				}
			}
			if l.Categories[len(p.Categories)-1].Count() != 0 {
				t.Error("seats in the category of the standing areas")
			}
			exportsToTheSame(t, p)
		})
	}
}

func meanQuality(l *Layout, category int) float64 {
	sum := 0.0
	for i, q := range l.Quality {
		if l.Categories[category].Has(SeatIndex(i)) {
			sum += float64(q)
		}
	}
	return sum / float64(l.Categories[category].Count())
}

func TestGenerateOptions(t *testing.T) {
	options := GenerateOptions{Seats: 3000, Seed: 7}
	p := Generate(options)
	if Generate(options).Hash() != p.Hash() {
		t.Error("the same options give two plans")
	}
	options.Seed++
	if Generate(options).Hash() == p.Hash() {
		t.Error("another seed gives the same plan")
	}
	options.NoStanding, options.Name = true, "Nobody stands"
	if p := Generate(options); len(p.Areas) != 0 || p.Name != "Nobody stands" || len(p.Validate()) > 0 {
		t.Errorf("%d areas, name %q", len(p.Areas), p.Name)
	}
}

// TestGenerateIsFast holds the promise of 5 s for the largest plan, with its check, its bytes and its layout.
func TestGenerateIsFast(t *testing.T) {
	for _, n := range []int{50_000, SeatsMax} {
		start := time.Now()
		p := Generate(GenerateOptions{Seats: n})
		generated := time.Since(start)
		data, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		p.Layout()
		whole := time.Since(start)
		t.Logf("%d seats: generated in %v; with encoding (%d bytes) and layout %v", n, generated, len(data), whole)
		if whole > 5*time.Second {
			t.Errorf("%d seats take %v", n, whole)
		}
	}
}
