package catalog_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/ledger"
)

func withRoom(room string) func(string) string {
	return func(text string) string { return strings.Replace(text, "limits:", room+"\nlimits:", 1) }
}

func TestTheLedgerIsToldOfTheRoom(t *testing.T) {
	w := newWorld(t)
	opens := ledger.TimeOf(time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC))

	t.Run("none", func(t *testing.T) {
		l := w.books.event(w.mustImport(t, nil)[0].Event.ID)
		if l.Room.Mode != ledger.RoomOff || l.Waitlist {
			t.Errorf("an event without a room has %+v", l.Room)
		}
		if want := (ledger.HoldingRule{UnpaidMax: 3, Rest: 600_000, SeatRest: 60_000}); l.Holding != want {
			t.Errorf("holding %+v, want %+v", l.Holding, want)
		}
	})
	t.Run("with its defaults", func(t *testing.T) {
		e := w.mustImport(t, withRoom("room: {}\nwaitlist: true"))[0].Event
		r := w.books.event(e.ID).Room
		if r.Mode != ledger.RoomOn || r.Opens != opens-3_600_000 || r.Arrival || r.Rate != 200 || r.ActiveMax != 5_000 || r.Turn != 120_000 ||
			r.Stay != 600_000 || r.DrawWait != 60_000 || r.Source != "" || len(r.Lanes) != 1 || r.Lanes[0] != (ledger.LaneRule{Key: "general", Weight: 1}) {
			t.Errorf("%+v", r)
		}
		if !w.books.event(e.ID).Waitlist || e.OfferLasts() != 15*time.Minute {
			t.Error("no waitlist of 15 minutes")
		}
	})
	t.Run("with everything", func(t *testing.T) {
		r := w.books.event(w.mustImport(t, withRoom(`room: {mode: auto, joins_open_before: 30m, rate: auto, rate_max: 900, rate_min: 20, active_max: 70,
  turn: 10s, stay: 5m, draw_source: "beacon: quicknet 7", draw_wait: 5s, lanes: [{key: pre, weight: 3, access: codes}, {key: all}]}`))[0].Event.ID).Room
		if r.Mode != ledger.RoomAuto || r.Opens != opens-1_800_000 || !r.RateAuto || r.Rate != 900 || r.RateMin != 20 || r.ActiveMax != 70 ||
			r.Turn != 10_000 || r.Stay != 300_000 || r.DrawWait != 5_000 || r.Source != "beacon: quicknet 7" || len(r.Lanes) != 2 || r.Lanes[0].Weight != 3 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("off again", func(t *testing.T) {
		if r := w.books.event(w.mustImport(t, withRoom("room: {mode: off, rate: 7}"))[0].Event.ID).Room; r.Mode != ledger.RoomOff {
			t.Errorf("%+v", r)
		}
	})
}

// A file knows nothing of what was done to a room since, and undoes none of it.
func TestAnImportDoesNotWakeAPausedRoom(t *testing.T) {
	w := newWorld(t)
	e := w.mustImport(t, withRoom("room: {}"))[0].Event
	if _, err := w.EditEvent(t.Context(), e.ID, 0, func(e *catalog.Event) { e.Room.Paused = true }); err != nil {
		t.Fatal(err)
	}
	if !w.books.event(e.ID).Room.Paused {
		t.Fatal("the ledger did not hear of the pause")
	}
	if done := w.mustImport(t, withRoom("room: {rate: 300}")); !done[0].Event.Room.Paused || done[0].Event.Room.Rate != 300 {
		t.Errorf("after the import: %+v", done[0].Event.Room)
	}
}

// Opening at once, before people could have joined, opens the line as well; and importing the file again is no error.
func TestOpeningBeforeTheLineDid(t *testing.T) {
	w := newWorld(t)
	e := w.mustImport(t, withRoom("room: {joins_open_before: 30m}"))[0].Event
	opened, err := w.Change(t.Context(), e.ID, catalog.VerbOpen)
	if err != nil {
		t.Fatal(err)
	}
	now := ledger.TimeOf(w.now)
	if l := w.books.event(e.ID); l.SaleOpens != now || l.Room.Opens > now || opened.JoinsOpenAt().After(opened.SaleOpens) {
		t.Errorf("the sale opens at %d, the line at %d; it is %d", l.SaleOpens, l.Room.Opens, now)
	}
	w.now = w.now.Add(time.Minute)
	w.mustImport(t, withRoom("room: {joins_open_before: 30m, rate: 9}"))
	if l := w.books.event(e.ID); l.SaleOpens != now || l.Room.Opens > now || l.Room.Rate != 9 {
		t.Errorf("after the import the sale opens at %d, the line at %d", l.SaleOpens, l.Room.Opens)
	}
}

func TestRoomsThatCannotBe(t *testing.T) {
	w := newWorld(t)
	e := w.mustImport(t, nil)[0].Event
	for _, c := range []struct {
		name string
		edit func(e *catalog.Event)
		want string
	}{
		{"mode", func(e *catalog.Event) { e.Room.Mode = "sometimes" }, `room.mode: "sometimes" must be off, auto or on`},
		{"joins after the sale opens", func(e *catalog.Event) { e.Room.JoinsOpen = e.SaleOpens.Add(1) }, "room.joins_open: must not be after sale.opens"},
		{"joins long before", func(e *catalog.Event) { e.Room.JoinsOpen = e.SaleOpens.Add(-31 * 24 * time.Hour) }, "room.joins_open: is more than 30 days"},
		{"order", func(e *catalog.Event) { e.Room.Order = "luck" }, `room.opening_order: "luck" must be draw or arrival`},
		{"join", func(e *catalog.Event) { e.Room.JoinRequires = "money" }, `room.join_requires: "money"`},
		{"rate", func(e *catalog.Event) { e.Room.Rate = -1 }, "room.rate: -1 is not between 1 and"},
		{"rate min", func(e *catalog.Event) { e.Room.RateMin = 5 }, "room.rate_min: goes with rate: auto"},
		{"rate min above", func(e *catalog.Event) { e.Room.RateAuto, e.Room.Rate, e.Room.RateMin = true, 10, 11 }, "room.rate_min: 11 is not between 1 and 10"},
		{"active", func(e *catalog.Event) { e.Room.ActiveMax = ledger.RoomActiveMax + 1 }, "room.active_max: "},
		{"turn", func(e *catalog.Event) { e.Room.Turn = 10 }, "room.turn: 10ms is not between 1s and"},
		{"stay", func(e *catalog.Event) { e.Room.Stay = catalog.StayMax + 1 }, "room.stay: "},
		{"source", func(e *catalog.Event) { e.Room.Source = "beacon: 12" }, `room.draw_source: "beacon: 12" must be none, organizer: `},
		{"source of words", func(e *catalog.Event) { e.Room.Source = "organizer:  " }, "room.draw_source: "},
		{"source of an arrival", func(e *catalog.Event) { e.Room.Order, e.Room.Source = catalog.OrderArrival, "beacon: x 1" }, "room.draw_source: goes with opening_order: draw"},
		{"lane twice", func(e *catalog.Event) {
			e.Room.Lanes = []catalog.Lane{{Key: "a", Name: "A", Weight: 1}, {Key: "a", Name: "A", Weight: 1}}
		}, `room.lanes[1].key: "a" is there twice`},
		{"weight", func(e *catalog.Event) { e.Room.Lanes = []catalog.Lane{{Key: "a", Name: "A"}} }, "room.lanes[0].weight: 0 is not between 1"},
		{"access", func(e *catalog.Event) {
			e.Room.Lanes = []catalog.Lane{{Key: "a", Name: "A", Weight: 1, Access: "friends"}}
		}, `room.lanes[0].access: "friends"`},
		{"lanes", func(e *catalog.Event) { e.Room.Lanes = make([]catalog.Lane, 17) }, "room.lanes: has 17 lanes; at most 16"},
		{"offer", func(e *catalog.Event) { e.OfferTTL = 1 }, "offer_ttl: 1ms is not between 1m0s"},
		{"rest", func(e *catalog.Event) { e.Holding.Rest = 0 }, "holding.rest: is 0: say for how long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.EditEvent(t.Context(), e.ID, 0, func(e *catalog.Event) {
				e.Room.Mode = catalog.RoomOn
				c.edit(e)
			})
			var refused *catalog.RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if now, err := w.Current(t.Context(), e.ID); err != nil || now.Version != e.Version {
		t.Errorf("something was changed: %+v, %v", now, err)
	}
}

// The greatest and the least that an event may say are what a ledger takes: else it would be stored here and never reach it.
func TestTheLedgerTakesWhatARoomMaySay(t *testing.T) {
	w := newWorld(t)
	e := w.mustImport(t, nil)[0].Event
	for name, edit := range map[string]func(e *catalog.Event){
		"greatest": func(e *catalog.Event) {
			e.Holding = catalog.Holding{UnpaidMax: catalog.UnpaidMax, Rest: catalog.HoldingRestMax, SeatRest: catalog.HoldingRestMax}
			e.Room.Turn, e.Room.Stay, e.Room.DrawWait = catalog.TurnMax, catalog.StayMax, catalog.DrawWaitMax
			e.Room.Rate, e.Room.ActiveMax = ledger.RoomRateMax, ledger.RoomActiveMax
			e.Room.Lanes = []catalog.Lane{{Key: "a", Name: "A", Weight: catalog.LaneWeightMax}}
		},
		"least": func(e *catalog.Event) {
			e.Holding = catalog.Holding{}
			e.Room.Turn, e.Room.Stay, e.Room.DrawWait = catalog.RoomTimeMin, catalog.RoomTimeMin, catalog.RoomTimeMin
			e.Room.Rate, e.Room.ActiveMax = 1, 1
		},
	} {
		if _, err := w.EditEvent(t.Context(), e.ID, 0, func(e *catalog.Event) { e.Room.Mode = catalog.RoomOn; edit(e) }); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		l := w.books.event(e.ID)
		if room, holding := l.Room.Problem(), l.Holding.Problem(); room != "" || holding != "" {
			t.Errorf("%s: a ledger refuses %s%s", name, room, holding)
		}
	}
}

func TestDrawSources(t *testing.T) {
	for text, want := range map[string]catalog.DrawSource{
		"": {}, "none": {},
		"organizer: Lotto of 12 June": {Organizer: "Lotto of 12 June"},
		"beacon: quicknet 21000000":   {Beacon: "quicknet", Round: 21_000_000},
	} {
		if got, err := catalog.ParseDrawSource(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"beacon", "beacon:x 1", "beacon: X 1", "beacon: x 0", "beacon: x -1", "beacon: x 01", "beacon: x 1 ", "beacon: x 9999999999999999999",
		"organizer:", "organizer: a\nb", "lottery", "organizer: " + strings.Repeat("x", 201)} {
		if got, err := catalog.ParseDrawSource(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
