package venue

import (
	"fmt"
	"testing"
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
		})
	}
}
