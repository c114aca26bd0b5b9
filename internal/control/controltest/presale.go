package controltest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"onsale/internal/catalog"
	"onsale/internal/presale"
)

func hashOf(n int) (h presale.Hash) {
	copy(h[:], fmt.Sprintf("%016d", n))
	return h
}

func presaleCodes(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	event, other := next(), next()
	code := func(lane string, n int) presale.Code {
		return presale.Code{Lane: lane, Hash: hashOf(n), Uses: n, Label: fmt.Sprint("label ", n), Created: at(0)}
	}
	var all []presale.Code
	for n := range 1203 { // more than one statement writes
		all = append(all, code("a", n+1))
	}
	added, err := p.Presale.PutCodes(ctx, event, all, 1203)
	ok(t, err)
	if added != 1203 {
		t.Errorf("%d added", added)
	}
	_, err = p.Presale.PutCodes(ctx, event, []presale.Code{code("b", 5000)}, 1203)
	want(t, err, presale.ErrTooMany)
	s := again().Presale
	_, err = s.Code(ctx, event, "b", hashOf(5000))
	want(t, err, presale.ErrUnknown) // too many: nothing was kept
	for _, c := range []presale.Code{all[0], all[1202]} {
		got, err := s.Code(ctx, event, "a", c.Hash)
		ok(t, err)
		if got != c {
			t.Errorf("got %+v, want %+v", got, c)
		}
	}
	_, err = s.Code(ctx, other, "a", hashOf(1))
	want(t, err, presale.ErrUnknown)
	_, err = s.Code(ctx, event, "b", hashOf(1))
	want(t, err, presale.ErrUnknown)

	// The same code again gets the new uses and label, and is not counted twice.
	changed := code("a", 1)
	changed.Uses, changed.Label, changed.Created = 77, "new", at(5)
	added, err = p.Presale.PutCodes(ctx, event, []presale.Code{changed}, 1203)
	ok(t, err)
	if got, err := s.Code(ctx, event, "a", changed.Hash); added != 0 || err != nil || got.Uses != 77 || got.Label != "new" || got.Created != at(0) {
		t.Errorf("%d added, %+v, %v", added, got, err)
	}

	var after *presale.Hash
	seen := 0
	for {
		page, err := s.Codes(ctx, event, "a", after, 500)
		ok(t, err)
		if len(page) == 0 {
			break
		}
		seen += len(page)
		after = &page[len(page)-1].Hash
	}
	if seen != 1203 {
		t.Errorf("the pages have %d codes", seen)
	}
}

func laneMembers(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	event := next()
	var all []presale.Hash
	for n := range 700 {
		all = append(all, hashOf(n))
	}
	added, err := p.Presale.PutMembers(ctx, event, "m", all, at(0), 701)
	ok(t, err)
	again2, err := p.Presale.PutMembers(ctx, event, "m", append(all[:2:2], hashOf(9000)), at(1), 701)
	ok(t, err)
	if added != 700 || again2 != 1 {
		t.Errorf("%d and %d added", added, again2)
	}
	_, err = p.Presale.PutMembers(ctx, event, "x", []presale.Hash{hashOf(1)}, at(0), 701)
	want(t, err, presale.ErrTooMany)
	s := again().Presale
	got, err := s.Member(ctx, event, "m", []presale.Hash{hashOf(9999), hashOf(5), hashOf(3)})
	ok(t, err)
	if got != hashOf(5) {
		t.Errorf("%v is on the list", got)
	}
	for _, none := range [][]presale.Hash{{hashOf(9999)}, nil} {
		_, err = s.Member(ctx, event, "m", none)
		want(t, err, presale.ErrUnknown)
	}
	_, err = s.Member(ctx, event, "x", []presale.Hash{hashOf(1)})
	want(t, err, presale.ErrUnknown)
	_, err = p.Presale.PutCodes(ctx, event, []presale.Code{{Lane: "a", Hash: hashOf(1), Uses: 1, Created: at(0)}}, 10)
	ok(t, err)
	counts, err := s.Counts(ctx, event)
	ok(t, err)
	if fmt.Sprint(counts) != "[{a 1 0} {m 0 701}]" {
		t.Errorf("counts %v", counts)
	}
}

// Every edit has its line, in order, with who made it and what it changed; one that was refused has none.
func eventLog(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	g := setUp(t, p.Catalog)
	e := g.event("logged", 5)
	who := catalog.Actor{Customer: next(), Role: "operator", Action: "room.rate"}
	ok(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{e}, []string{""}))
	e.Version, e.Updated = 2, at(1)
	e.Room = catalog.RoomRule{Mode: catalog.RoomOn, Rate: 300, Lanes: []catalog.Lane{{Key: "a", Name: "A", Weight: 1}}}
	acted := catalog.WithActor(ctx, who)
	ok(t, p.Catalog.PutEvents(acted, nil, []catalog.Event{e}, []string{""}))
	want(t, p.Catalog.PutEvents(acted, nil, []catalog.Event{e}, []string{""}), catalog.ErrConflict)
	e.Version, e.Room.Rate = 3, 250
	ok(t, p.Catalog.PutEvents(acted, nil, []catalog.Event{e}, []string{""}))
	ok(t, p.Catalog.AddLog(ctx, e.ID, catalog.LogEntry{At: at(2), Actor: who.Customer, Role: "owner", Action: "room.codes",
		Changes: []catalog.Change{catalog.NewChange("codes", nil, map[string]int{"added": 7})}}))

	s := again().Catalog
	lines, err := s.Log(ctx, e.ID, 0, 10)
	ok(t, err)
	if len(lines) != 4 {
		t.Fatalf("%d lines: %+v", len(lines), lines)
	}
	for i, w := range []string{
		`4 room.codes owner 0 codes: null → {"added":7}`,
		`3 room.rate operator 3 room.rate: 300 → 250`,
		`2 room.rate operator 2 room.lanes: null → [{"key":"a","name":"A","weight":1}], room.mode: null → "on", room.rate: null → 300`,
		`1 event.make  1 `,
	} {
		l := lines[i]
		got := fmt.Sprintf("%d %s %s %d ", l.Seq, l.Action, l.Role, l.Version)
		for k, c := range l.Changes {
			if k > 0 {
				got += ", "
			}
			got += fmt.Sprintf("%s: %s → %s", c.Field, c.Before, c.After)
		}
		if got != w {
			t.Errorf("line %d\n got %s\nwant %s", i, got, w)
		}
	}
	if lines[1].Actor != who.Customer || lines[3].Actor != 0 || lines[0].At != at(2) || lines[2].At != at(1) {
		t.Errorf("who and when: %+v", lines)
	}
	if page, err := s.Log(ctx, e.ID, 3, 1); err != nil || len(page) != 1 || page[0].Seq != 2 {
		t.Errorf("the page before line 3: %+v, %v", page, err)
	}
}

// Many who write at once get a line each, without gaps.
func eventLogAtOnce(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	event := next()
	stores := []catalog.Store{p.Catalog, again().Catalog}
	var mu sync.Mutex
	written := 0
	var work sync.WaitGroup
	for n := range 8 {
		work.Go(func() {
			err := stores[n%2].AddLog(ctx, event, catalog.LogEntry{At: at(0), Action: "x", Changes: []catalog.Change{}})
			if err != nil && !errors.Is(err, catalog.ErrConflict) {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				written++
			}
		})
	}
	work.Wait()
	lines, err := p.Catalog.Log(ctx, event, 0, 100)
	ok(t, err)
	if len(lines) != written || written == 0 || lines[0].Seq != int64(written) {
		t.Errorf("%d lines of %d writers: %+v", len(lines), written, lines)
	}
}
