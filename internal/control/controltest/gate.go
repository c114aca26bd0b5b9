package controltest

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"onsale/internal/catalog"
	"onsale/internal/guard"
	"onsale/internal/id"
	"onsale/internal/identity"
)

// gate are the tests of guard.BlockStore and guard.EvidenceStore.
var gate = map[string]func(*testing.T, Ports, func() Ports){
	"blocks":           blocks,
	"block lists full": blockListsFull,
	"blocks at once":   blocksAtOnce,
	"evidence":         evidence,
	"evidence pruned":  evidencePruned,
}

var samePrefix = cmpopts.EquateComparable(netip.Prefix{})

func block(t *testing.T, organizer id.ID, kind, target string, until int) guard.Block {
	t.Helper()
	b := guard.Block{ID: next(), Organizer: organizer, Kind: kind, Reason: "scalpers’ «bots»", By: 7, At: at(0), Until: at(until)}
	ok(t, b.ParseTarget(target))
	return b
}

func entryOf(organizer id.ID, action string) identity.Entry {
	return identity.Entry{ID: next(), At: at(0), Actor: 7, Organizer: organizer, Role: identity.Owner, Action: action, Details: map[string]string{"kind": "x"}}
}

func blocks(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	version := func() int64 {
		t.Helper()
		v, err := again().Blocks.BlocksVersion(ctx)
		ok(t, err)
		return v
	}
	const one, other = id.ID(11), id.ID(12)
	before := version()
	device := "000102030405060708090a0b0c0d0e0f"
	want1 := []guard.Block{block(t, one, guard.BlockNetwork, "203.0.113.7/24", 5), block(t, one, guard.BlockNetwork, "2001:db8::1", 5),
		block(t, one, guard.BlockCustomer, id.ID(99).Text(id.Customer), 5), block(t, one, guard.BlockDevice, device, 5)}
	everywhere, others, short := block(t, 0, guard.BlockDevice, device, 5), block(t, other, guard.BlockDevice, device, 5), block(t, one, guard.BlockNetwork, "10.1.2.3", 1)
	for _, b := range append(want1[:4:4], everywhere, others, short) {
		kept, err := p.Blocks.AddBlock(ctx, b, 100, entryOf(b.Organizer, "block.add"))
		ok(t, err)
		if diff := cmp.Diff(b, kept, samePrefix); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
	}
	if version() == before {
		t.Error("the version did not change")
	}
	got, err := again().Blocks.BlocksOf(ctx, one, 0, at(2), 100)
	ok(t, err)
	if diff := cmp.Diff(want1, got, samePrefix); diff != "" {
		t.Errorf("an organizer's (-want +got):\n%s", diff)
	}
	got, err = p.Blocks.BlocksOf(ctx, one, want1[1].ID, at(0), 2)
	ok(t, err)
	if diff := cmp.Diff(want1[2:4], got, samePrefix); diff != "" {
		t.Errorf("a page (-want +got):\n%s", diff)
	}
	all, err := p.Blocks.AllBlocks(ctx, at(2))
	ok(t, err)
	if len(all) != 6 {
		t.Errorf("%d in all, want 6 that have not ended", len(all))
	}

	// The same again is the same block with a new reason and end.
	longer := block(t, one, guard.BlockNetwork, "10.1.2.3", 50)
	longer.Reason = "still"
	kept, err := p.Blocks.AddBlock(ctx, longer, 100, entryOf(one, "block.add"))
	ok(t, err)
	longer.ID = short.ID
	if diff := cmp.Diff(longer, kept, samePrefix); diff != "" {
		t.Errorf("blocked again (-want +got):\n%s", diff)
	}

	// Nobody else's is removed, and what removed nothing is not in the log.
	want(t, p.Blocks.RemoveBlock(ctx, other, want1[0].ID, entryOf(other, "block.remove")), guard.ErrNoBlock)
	before = version()
	ok(t, p.Blocks.RemoveBlock(ctx, one, want1[0].ID, entryOf(one, "block.remove")))
	want(t, p.Blocks.RemoveBlock(ctx, one, want1[0].ID, entryOf(one, "block.remove")), guard.ErrNoBlock)
	if version() == before {
		t.Error("the version did not change")
	}
	log, err := p.People.List(ctx, one, 0, 100)
	ok(t, err)
	actions := map[string]int{}
	for _, e := range log {
		actions[e.Action]++
		if e.Action == "block.add" && e.Target == "" {
			t.Errorf("an entry without its block: %+v", e)
		}
	}
	if actions["block.add"] != 6 || actions["block.remove"] != 1 {
		t.Errorf("the log has %v", actions)
	}
	n, err := p.Blocks.PruneBlocks(ctx, at(20), 2)
	ok(t, err)
	if n != 2 {
		t.Errorf("%d deleted, want 2", n)
	}
	_, err = p.Blocks.PruneBlocks(ctx, at(20), 100)
	ok(t, err)
	if all, err = p.Blocks.AllBlocks(ctx, at(0)); err != nil || len(all) != 1 || all[0].ID != short.ID {
		t.Errorf("after deleting %+v, %v", all, err)
	}
}

func blockListsFull(t *testing.T, p Ports, _ func() Ports) {
	ctx := t.Context()
	for i := range 3 {
		_, err := p.Blocks.AddBlock(ctx, block(t, 11, guard.BlockNetwork, fmt.Sprintf("10.0.0.%d", i), 5), 3, entryOf(11, "block.add"))
		ok(t, err)
	}
	before, err := p.Blocks.BlocksVersion(ctx)
	ok(t, err)
	_, err = p.Blocks.AddBlock(ctx, block(t, 11, guard.BlockNetwork, "10.0.0.9", 5), 3, entryOf(11, "block.add"))
	want(t, err, guard.ErrTooManyBlocks)
	if after, err := p.Blocks.BlocksVersion(ctx); err != nil || after != before {
		t.Errorf("a refused one changed the version: %d, %v", after, err)
	}
	_, err = p.Blocks.AddBlock(ctx, block(t, 11, guard.BlockNetwork, "10.0.0.1", 9), 3, entryOf(11, "block.add")) // one of them
	ok(t, err)
	_, err = p.Blocks.AddBlock(ctx, block(t, 12, guard.BlockNetwork, "10.0.0.9", 5), 3, entryOf(12, "block.add"))
	ok(t, err)
	late := block(t, 11, guard.BlockNetwork, "10.0.0.9", 20)
	late.At = at(6) // two of the three have ended
	_, err = p.Blocks.AddBlock(ctx, late, 3, entryOf(11, "block.add"))
	ok(t, err)
}

// blocksAtOnce has many handles fill a list: it is full once.
func blocksAtOnce(t *testing.T, p Ports, again func() Ports) {
	handles := []guard.BlockStore{p.Blocks, again().Blocks}
	var added sync.Map
	var wg sync.WaitGroup
	for i := range 20 {
		b := block(t, 11, guard.BlockNetwork, fmt.Sprintf("10.0.0.%d", i), 5)
		wg.Go(func() {
			if _, err := handles[i%2].AddBlock(t.Context(), b, 7, entryOf(11, "block.add")); err == nil {
				added.Store(i, true)
			}
		})
	}
	wg.Wait()
	all, err := p.Blocks.BlocksOf(t.Context(), 11, 0, at(0), 100)
	ok(t, err)
	count := 0
	added.Range(func(any, any) bool { count++; return true })
	if len(all) != 7 || count != 7 {
		t.Errorf("%d blocks, %d were answered; want 7", len(all), count)
	}
}

func orderEvidence(order, event id.ID, score, hours int) guard.OrderEvidence {
	return guard.OrderEvidence{Order: order, Event: event, At: at(hours), Evidence: guard.Evidence{
		Version: 1, Score: score, Step: "none", Signals: guard.Signals{Heat: 1.5, DeviceAccounts: 3, Tool: true}, Address: "00ff", Device: "ff00",
	}}
}

func evidence(t *testing.T, p Ports, again func() Ports) {
	ctx := t.Context()
	first, second, other := orderEvidence(1, 5, 10, 0), orderEvidence(2, 5, 60, 1), orderEvidence(3, 6, 60, 1)
	ok(t, p.Evidence.PutEvidence(ctx, []guard.OrderEvidence{first, second, other}))
	got, err := again().Evidence.Evidence(ctx, 1)
	ok(t, err)
	if diff := cmp.Diff(first, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = p.Evidence.Evidence(ctx, 4)
	want(t, err, guard.ErrNoEvidence)
	// What is kept is the one with the greater score.
	worse, better := orderEvidence(1, 5, 70, 2), orderEvidence(2, 5, 20, 2)
	ok(t, p.Evidence.PutEvidence(ctx, []guard.OrderEvidence{worse, better}))
	for _, c := range []struct {
		score, max int
		after      id.ID
		want       []guard.OrderEvidence
	}{{0, 10, 0, []guard.OrderEvidence{worse, second}}, {65, 10, 0, []guard.OrderEvidence{worse}}, {0, 1, 0, []guard.OrderEvidence{worse}},
		{0, 10, 1, []guard.OrderEvidence{second}}, {71, 10, 0, nil}} {
		all, err := p.Evidence.EvidenceOf(ctx, 5, c.score, c.after, c.max)
		ok(t, err)
		if diff := cmp.Diff(c.want, all); diff != "" {
			t.Errorf("from %d after %d (-want +got):\n%s", c.score, c.after, diff)
		}
	}
}

func evidencePruned(t *testing.T, p Ports, _ func() Ports) {
	ctx := t.Context()
	g := setUp(t, p.Catalog)
	past, ahead := g.event("past", 1), g.event("ahead", 100)
	ok(t, p.Catalog.PutEvents(ctx, nil, []catalog.Event{past, ahead}, []string{"", ""}))
	ok(t, p.Evidence.PutEvidence(ctx, []guard.OrderEvidence{
		orderEvidence(1, past.ID, 1, 50), orderEvidence(2, past.ID, 1, 50), orderEvidence(3, ahead.ID, 1, 0), orderEvidence(4, 999, 1, 1), orderEvidence(5, 999, 1, 60),
	}))
	total := 0
	for range 5 {
		n, err := p.Evidence.PruneEvidence(ctx, at(50), 2)
		ok(t, err)
		if total += n; n < 2 {
			break
		}
	}
	if total != 3 {
		t.Errorf("%d deleted, want 3", total)
	}
	for order, kept := range map[id.ID]bool{1: false, 2: false, 3: true, 4: false, 5: true} {
		if _, err := p.Evidence.Evidence(ctx, order); (err == nil) != kept {
			t.Errorf("order %d: %v", order, err)
		}
	}
}
