package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"onsale/internal/ledger"
)

// aRoom has something in every field.
func aRoom() *ledger.Room {
	return &ledger.Room{
		Event: 9, Phase: ledger.RoomOpen, Arrival: true, Commitment: "c", Source: "s", Frozen: 1, ListHash: "l", Value: "v", Provable: true, K: "k", Drawn: 2,
		Lanes: []ledger.Lane{
			{Key: "general", HighWater: 100, N: 50, Joined: 60, Watermark: 40, Entered: 30, Credit: -3, Open: []ledger.Call{
				{Lane: "general", At: 5, Clock: 6, From: 7, Watermark: 40, Entered: 3},
			}},
			{Key: "presale"},
		},
		Clock: 11, Tick: 12, Rate: 13, Second: 14, Entered: 15, Before: 16, Inside: 17, Debt: -18, Decided: 19, Shown: 20,
		Knocks:  []ledger.Knock{{Lane: "presale", Number: 1, Position: 2, Late: true, Called: 3, Last: 4}, {Lane: "general", Number: 5, Position: 6, Called: 7, Last: 8}},
		Reports: []ledger.RoomReport{{Node: 1, At: 2, P99: 3, Holds: 4, Shed: 5}},
	}
}

func TestRoomIsReadAsWritten(t *testing.T) {
	for _, want := range []*ledger.Room{aRoom(), {Event: 1}} {
		text, err := EncodeRoom(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeRoom(text, want.Event)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// What is read again says what it said, and what is not a room is refused, never a panic.
func FuzzDecodeRoom(f *testing.F) {
	text, err := EncodeRoom(aRoom())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(`{"v":1,"figures":[],"lanes":null,"knocks":[[0,1,2,0,3,4]]}`)
	f.Add(`{"v":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := DecodeRoom(text, 9)
		if err != nil {
			return
		}
		again, err := EncodeRoom(r)
		if err != nil {
			t.Fatal(err)
		}
		same, err := DecodeRoom(again, 9)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if diff := cmp.Diff(r, same); diff != "" {
			t.Error(diff)
		}
	})
}
