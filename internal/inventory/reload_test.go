package inventory

import (
	"testing"

	"onsale/internal/fault"
)

// A plan that was read anew, since the catalog's memory had no room for it, is still the event's plan: its rules can be
// changed, and another event on it shares what was made of it.
func TestPlanReadAnew(t *testing.T) {
	hall := func(row string) []string { return []string{row} }
	w := newWorld(t, rowsPlan(nil, hall("......")))
	n := w.node(Options{}, Rules{})
	again := rowsPlan(nil, hall("......"))
	if again == w.plan || again.Hash() != w.plan.Hash() {
		t.Fatal("the copy is none")
	}
	before := n.Board(hotEvent)
	if err := n.Load(t.Context(), hotEvent, again, Rules{HandPicked: OrphanRefuse, FewSeats: -1, SplitReleaseBefore: -1}); err != nil {
		t.Fatal(err)
	}
	if n.Board(hotEvent) != before || n.finderOf(again, again.Hash()) != before.finder {
		t.Error("its board or its finder was made anew")
	}
	if _, err := n.seats(1, 1); fault.CodeOf(err) != fault.OrphanSeat {
		t.Errorf("its new rules are not in force: %v", err)
	}
	if err := n.Load(t.Context(), hotEvent, rowsPlan(nil, hall(".......")), Rules{}); err == nil {
		t.Error("an event is moved to another plan")
	}
}

// A client whose stream has ended comes back at once. It must not be let in while the program stops: the program would
// wait for it.
func TestClosedTakesNoStreams(t *testing.T) {
	w := newWorld(t, rowsPlan(nil, []string{"......"}))
	n := w.node(Options{}, Rules{})
	first, err := n.Subscribe(hotEvent, -1)
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	if got := take(first); got != "event: version\ndata: {\"version\":1}\n\n" || take(first) != "end" {
		t.Errorf("%q, and no end", got)
	}
	if s, err := n.Subscribe(hotEvent, -1); fault.CodeOf(err) != fault.Busy {
		t.Errorf("a stream begins behind the end: %v, %v", s, err)
	}
}
