package draw

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// testKey is the i-th of endless keys.
func testKey(i int) [KeyBytes]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte("test key "), uint64(i)))
}

// sizes are all small N, and those around squares, products of neighbours and the border between the two ways.
func sizes() (all []int64) {
	for n := int64(0); n <= 300; n++ {
		all = append(all, n)
	}
	for _, a := range []int64{20, 63, 64, 65, 66, 80, 100, 141} {
		all = append(all, a*a-1, a*a, a*a+1, a*(a+1)-1, a*(a+1), a*(a+1)+1)
	}
	return append(all, RankedMax-1, RankedMax, RankedMax+1)
}

func TestOrderIsABijectionAndTheFormula(t *testing.T) {
	for _, n := range sizes() {
		key := testKey(int(n))
		o := NewOrder(key, n)
		seen := make([]bool, n)
		step := max(1, n/40) // of those that are computed without tables, too
		for number := range n {
			p := o.Position(number)
			if p < 0 || p >= n || seen[p] {
				t.Fatalf("N = %d: position %d of number %d is outside, or had twice", n, p, number)
			}
			seen[p] = true
			if back := o.Number(p); back != number {
				t.Fatalf("N = %d: number %d has position %d, which has number %d", n, number, p, back)
			}
			if number%step == 0 {
				if got := Position(key, n, number); got != p {
					t.Fatalf("N = %d: number %d is at %d by the formula, at %d by the tables", n, number, got, p)
				}
			}
		}
		for _, outside := range []int64{-1, n, n + 1, math.MaxInt64, math.MinInt64} {
			if o.Position(outside) != outside || o.Number(outside) != outside || Position(key, n, outside) != outside {
				t.Errorf("N = %d: number %d is moved", n, outside)
			}
		}
	}
}

func TestOrderOfAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64Range(1, 10_000), rapid.Int64Range(10_000, 50_000_000)).Draw(t, "n")
		key := testKey(rapid.Int().Draw(t, "key"))
		o := NewOrder(key, n)
		seen := map[int64]int64{}
		for _, number := range rapid.SliceOfNDistinct(rapid.Int64Range(0, n-1), 1, 8, rapid.ID[int64]).Draw(t, "numbers") {
			p := o.Position(number)
			if other, twice := seen[p]; twice || p < 0 || p >= n {
				t.Fatalf("number %d is at %d, where %d is", number, p, other)
			}
			seen[p] = number
			if got := Position(key, n, number); got != p {
				t.Fatalf("number %d: %d by the formula, %d by the tables", number, got, p)
			}
			if got := o.Number(p); got != number {
				t.Fatalf("position %d has number %d, not %d", p, got, number)
			}
		}
	})
}

func TestHalves(t *testing.T) {
	check := func(n int64) {
		a, b := halves(n)
		if a == 0 || a*a < uint64(n) || (a-1)*(a-1) >= uint64(n) || a*b < uint64(n) || a*(b-1) >= uint64(n) {
			t.Fatalf("N = %d: %d × %d", n, a, b)
		}
	}
	for n := int64(1); n < 20_000; n++ {
		check(n)
	}
	for root := int64(1) << 10; root <= 1<<20; root = root*3/2 + 1 {
		for d := int64(-2); d <= 2; d++ {
			check(root*root + d)
		}
	}
	check(NMax)
	check(NMax - 1)
}

// The largest N works with numbers of 32 bits: no step overflows.
func TestGreatestN(t *testing.T) {
	if testing.Short() {
		t.Skip("the tables of 2^40 take seconds to make: not in the short form")
	}
	key := testKey(0)
	o := NewOrder(key, NMax)
	for _, number := range []int64{0, 1, NMax / 3, NMax - 1} {
		p := o.Position(number)
		if got := Position(key, NMax, number); got != p || o.Number(p) != number {
			t.Errorf("number %d: %d by the tables, %d by the formula", number, p, got)
		}
	}
	for name, f := range map[string]func(){"NewOrder": func() { NewOrder(key, NMax+1) }, "Position": func() { Position(key, NMax+1, 0) }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s takes an N that its numbers cannot hold", name)
				}
			}()
			f()
		}()
	}
}

// Every order of small N comes up, each about as often as the others. A draw that only rotates has N orders.
func TestEveryPermutationIsReachable(t *testing.T) {
	const each = 200 // times that every order should come
	for n := 1; n <= 5; n++ {
		orders := 1
		for i := 2; i <= n; i++ {
			orders *= i
		}
		drawn, rotated := map[string]int{}, map[string]int{}
		for i := range orders * each {
			o := NewOrder(testKey(i), int64(n))
			var positions []int64
			for number := range n {
				positions = append(positions, o.Position(int64(number)))
			}
			drawn[fmt.Sprint(positions)]++
			for number := range n {
				positions[number] = (int64(number) + int64(testKey(i)[0])) % int64(n)
			}
			rotated[fmt.Sprint(positions)]++
		}
		if n < 2 {
			continue
		}
		counts := make([]int, 0, orders)
		for _, count := range drawn {
			counts = append(counts, count)
		}
		if x := chiSquare(counts, each); len(drawn) != orders || x > likely(orders-1) {
			t.Errorf("N = %d: %d of %d orders, chi-square %.1f", n, len(drawn), orders, x)
		}
		if n > 2 && len(rotated) == orders {
			t.Errorf("N = %d: the test takes rotating for drawing", n)
		}
	}
}

// chiSquare sums the squares of how far counts are from what is expected, over what is expected.
func chiSquare(counts []int, expected float64) (x float64) {
	for _, c := range counts {
		d := float64(c) - expected
		x += d * d / expected
	}
	return x
}

// likely is a chi-square that is passed once in about a million times where all is well (Wilson and Hilferty's approximation,
// 4.75 standard deviations). Keys are fixed, so the tests answer the same every time.
func likely(freedom int) float64 {
	f := float64(freedom)
	return f * math.Pow(1-2/(9*f)+4.75*math.Sqrt(2/(9*f)), 3)
}

// A shuffle is a drawn order, or one that tests must refuse.
type shuffle func(key [KeyBytes]byte, n int64) func(number int64) int64

func drawnBy(key [KeyBytes]byte, n int64) func(int64) int64 { return NewOrder(key, n).Position }

var notDrawn = map[string]shuffle{
	"identity": func([KeyBytes]byte, int64) func(int64) int64 { return func(i int64) int64 { return i } },
	"rotated": func(key [KeyBytes]byte, n int64) func(int64) int64 {
		by := int64(binary.BigEndian.Uint64(key[:]) >> 1)
		return func(i int64) int64 { return (i + by%n) % n }
	},
	"reversed or not": func(key [KeyBytes]byte, n int64) func(int64) int64 {
		return func(i int64) int64 { return i + int64(key[0]&1)*(n-1-2*i) }
	},
	"one round only": func(key [KeyBytes]byte, n int64) func(int64) int64 { // one half never moves
		a, b := halves(n)
		h := newHasher(key)
		return func(i int64) int64 {
			l, r := uint64(i)/b, uint64(i)%b
			return int64(((l+h.f(0, r)%a)%a)*b+r) % n
		}
	},
}

// evenly is how unevenly some numbers of a line fall into 64 equal parts of it over many draws: the greatest share of
// what is likely.
func evenly(s shuffle, n int64, draws int) (worst float64) {
	const parts = 64
	numbers := []int64{0, 1, n / 3, n / 2, n - 2, n - 1}
	counts := make([][]int, len(numbers))
	for i := range counts {
		counts[i] = make([]int, parts)
	}
	for d := range draws {
		position := s(testKey(d), n)
		for i, number := range numbers {
			counts[i][position(number)*parts/n]++
		}
	}
	for _, c := range counts {
		worst = max(worst, chiSquare(c, float64(draws)/parts)/likely(parts-1))
	}
	return worst
}

func TestPositionsAreEven(t *testing.T) {
	const draws = 1500
	for _, n := range []int64{64, 1024, 5056, 10_048} { // multiples of 64, so that the parts are equal
		if worst := evenly(drawnBy, n, draws); worst > 1 {
			t.Errorf("N = %d: numbers do not fall evenly: %.2f times what is likely", n, worst)
		}
		for _, name := range []string{"identity", "reversed or not"} {
			if worst := evenly(notDrawn[name], n, draws); worst <= 1 {
				t.Errorf("N = %d: the test takes %s for a draw: %.2f", n, name, worst)
			}
		}
	}
}

// apart is how far the distances of neighbours after a draw are from what a fair one gives: the sizes of
// |π(i+1) - π(i)| in 32 classes that are equally likely, as a share of what is likely.
func apart(position func(int64) int64, n int64) float64 {
	const classes = 32
	// Of two places at random the distance is ≤ d with probability 1 - (1-d/n)², so these are the classes' borders.
	borders := make([]float64, classes-1)
	for i := range borders {
		borders[i] = float64(n) * (1 - math.Sqrt(1-float64(i+1)/classes))
	}
	counts := make([]int, classes)
	for i := range n - 1 {
		d := math.Abs(float64(position(i+1)-position(i))) - 0.5 // a distance is whole
		counts[sort.SearchFloat64s(borders, d)]++
	}
	return chiSquare(counts, float64(n-1)/classes) / likely(classes-1)
}

func TestNeighboursDoNotStayNeighbours(t *testing.T) {
	for _, n := range []int64{1000, RankedMax, RankedMax + 1, 100_000} {
		if x := apart(NewOrder(testKey(7), n).Position, n); x > 1 {
			t.Errorf("N = %d: the distances of neighbours are %.2f times as uneven as is likely", n, x)
		}
		for name, s := range notDrawn {
			if x := apart(s(testKey(7), n), n); x <= 1 {
				t.Errorf("N = %d: the test takes %s for a draw: %.2f", n, name, x)
			}
		}
	}
}

// At two sizes that are far apart a position costs the same.
func BenchmarkPosition(b *testing.B) {
	for _, n := range []int64{4096, 10_000, 2_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o := NewOrder(testKey(1), n)
			var sum, number int64
			for b.Loop() {
				sum += o.Position(number)
				if number += 1597; number >= n {
					number -= n
				}
			}
			if sum == -1 {
				b.Fatal("never")
			}
		})
	}
}

func BenchmarkNewOrder(b *testing.B) {
	for b.Loop() {
		NewOrder(testKey(1), 2_000_000)
	}
}
