package venue

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestCanonicalForm pins the bytes: plans are named by their hash, so no program may ever write them differently.
func TestCanonicalForm(t *testing.T) {
	p := &Plan{
		Format: 1, Name: "<Tiny & small>", Categories: []Category{{Key: "a", Name: "Ä"}},
		Sections: []Section{{Key: "s", Name: "S", RowCount: 1, SeatCount: 2}},
		Rows:     []Row{{Label: "1", SeatCount: 2, Breaks: []SeatIndex{1}}},
		Seats:    []Seat{{ID: "1-1", Label: "1", X: 0.1, Y: 2e6}, {ID: "1-2", Label: "2", X: 1, Y: 2e6, Flags: Accessible}},
		Bounds:   Rect{Max: Point{1, 2e6}},
	}
	const want = `{"format":1,"name":"<Tiny & small>","focal":{"x":0,"y":0},"bounds":{"min":{"x":0,"y":0},"max":{"x":1,"y":2000000}},` +
		`"categories":[{"key":"a","name":"Ä"}],"sections":[{"key":"s","name":"S","row_first":0,"row_count":1,"seat_first":0,"seat_count":2}],` +
		`"rows":[{"section":0,"label":"1","seat_first":0,"seat_count":2,"breaks":[1]}],` +
		`"seats":[{"id":"1-1","label":"1","row":0,"category":0,"x":0.1,"y":2000000},{"id":"1-2","label":"2","row":0,"category":0,"x":1,"y":2000000,"flags":1}]}` + "\n"
	got, err := p.Encode()
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if hash := p.Hash(); hash != "e15e271c9fd0382668f6cf178953984990011f03d68455ee9caef595cc810b96" {
		t.Errorf("hash is %s", hash)
	}
	if problems := p.Validate(); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestEncodeDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPlan(t)
		data, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		again, err := back.Encode()
		if err != nil || !bytes.Equal(data, again) || back.Hash() != p.Hash() || len(p.Hash()) != 64 {
			t.Fatalf("%v\n%s\n%s", err, data, again)
		}
		if len(p.Seats) == 0 {
			return
		}
		seat := rapid.IntRange(0, len(p.Seats)-1).Draw(t, "seat")
		back.Seats[seat].Flags ^= Companion
		if back.Hash() == p.Hash() {
			t.Fatal("a changed flag leaves the hash as it was")
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	p := twoSections()
	p.Seats[1].ID = p.Seats[0].ID
	p.Rows[2].Breaks = []SeatIndex{0}
	data, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(data)
	var refused *RefusedError
	if back != nil || !errors.As(err, &refused) || len(refused.Problems) != 2 {
		t.Errorf("%v %v", back, err)
	}
}

func TestEncodeNoNumber(t *testing.T) {
	p := twoSections()
	p.Seats[0].X = float32(math.NaN())
	if _, err := p.Encode(); err == nil {
		t.Error("a coordinate which is not a number was encoded")
	}
	if hash := p.Hash(); hash != "" {
		t.Errorf("and has the hash %s", hash)
	}
}

func BenchmarkEncode(b *testing.B) {
	p := Generate(GenerateOptions{Seats: SeatsMax})
	for b.Loop() {
		if _, err := p.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data, err := Generate(GenerateOptions{Seats: SeatsMax}).Encode()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
