package waitingroom_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
)

func status(t *testing.T, w *world, n *node, phase string) waitingroom.StatusDoc {
	t.Helper()
	time.Sleep(1_500 * time.Millisecond)
	page, err := n.Status(context.Background(), w.event)
	if err != nil {
		t.Fatal(err)
	}
	var doc waitingroom.StatusDoc
	if err := json.Unmarshal(page.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Phase != phase {
		t.Errorf("the phase is %s, not %s", doc.Phase, phase)
	}
	if late := time.Since(doc.Now); late < 0 || late > 2*time.Second {
		t.Errorf("the status is %v old", late)
	}
	return doc
}

// readerOf can be away.
type readerOf struct {
	waitingroom.Reader
	away  atomic.Bool
	reads atomic.Int64
}

func (r *readerOf) Session(ctx context.Context, session id.ID) (ledger.Session, error) {
	r.reads.Add(1)
	if r.away.Load() {
		return ledger.Session{}, errors.New("the ledger is away")
	}
	return r.Reader.Session(ctx, session)
}

// I11: the gate's filter lets through whoever has a live session of this event, and nobody else.
func TestAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		w := newWorld(t, nil, func(e *ledger.Event) { e.Room.Stay = 60_000 })
		reader := &readerOf{Reader: w.shard}
		n := w.node(func(o *waitingroom.Options) { o.Reader = reader })
		other := w.node(nil)
		fans := w.joinAll(n, 10, "")
		w.open()
		w.until("all are called", func() bool { return w.room().Lanes[0].Watermark == w.room().Lanes[0].N })
		a, err := n.Claim(ctx, fans[0].place.QueueID, fans[0].customer)
		if err != nil {
			t.Fatal(err)
		}
		admit := func(what, token string, customer, event id.ID, code fault.Code) {
			t.Helper()
			session, err := n.Admit(ctx, token, customer, event)
			if fault.CodeOf(err) != code || code == "" && session != a.Session {
				t.Errorf("%s: %d, %v; not %q", what, session, err, code)
			}
		}
		me := fans[0].customer
		admit("the customer", a.Token, me, w.event, "")
		admit("no token", "", me, w.event, fault.NotAdmitted)
		admit("a queue ticket", fans[0].place.QueueID, me, w.event, fault.NotAdmitted)
		admit("another customer", a.Token, fans[1].customer, w.event, fault.NotAdmitted)
		admit("nobody", a.Token, 0, w.event, fault.NotAdmitted)
		admit("an event that is not", a.Token, me, 123, fault.EventUnknown)
		for range 100 {
			admit("again and again", a.Token, me, w.event, "")
		}
		if reads := reader.reads.Load(); reads > 1 {
			t.Errorf("%d reads of one session within a second", reads)
		}
		// Another event with a room of its own.
		second := w.rule
		second.ID, second.Version = w.made.MustNext(0), 1
		layout := &ledger.Layout{PlanHash: "plan", Section: []int16{0}, Category: []int16{0}, Run: []int32{0}, Quality: []int32{0}}
		if _, err := w.batcher.Do(ctx, ledger.SetEvent{Event: second, Layout: layout}); err != nil {
			t.Fatal(err)
		}
		admit("another event", a.Token, me, second.ID, fault.NotAdmitted)
		// The ledger is away: whom we know goes on.
		time.Sleep(2 * time.Second)
		reader.away.Store(true)
		admit("the ledger is away", a.Token, me, w.event, "")
		reader.away.Store(false)
		time.Sleep(2 * time.Second)
		// Left on another node: within a second it is known here.
		if err := other.Leave(ctx, a.Session, me); err != nil {
			t.Fatal(err)
		}
		time.Sleep(waitingroom.SessionFresh + time.Millisecond)
		admit("left on another node", a.Token, me, w.event, fault.NotAdmitted)
		b, err := n.Claim(ctx, fans[1].place.QueueID, fans[1].customer)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		if _, err := n.Admit(ctx, b.Token, fans[1].customer, w.event); err != nil {
			t.Errorf("in the last second: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := n.Admit(ctx, b.Token, fans[1].customer, w.event); fault.CodeOf(err) != fault.AdmissionExpired {
			t.Errorf("after the session: %v", err)
		}
		w.change(func(e *ledger.Event) { e.Room.Mode = ledger.RoomOff }, n)
		if session, err := n.Admit(ctx, "", me, w.event); err != nil || session != 0 {
			t.Errorf("without a room: %d, %v", session, err)
		}
	})
}

// The public status says what there is to say, the same to all, with a tag that changes when it does.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(e *ledger.Event) { e.Room.Opens = now() + 20_000 })
		n := w.node(nil)
		synctest.Wait()
		doc := status(t, w, n, "closed")
		if len(doc.Lanes) != 1 || doc.Left != nil || doc.Draw.Commitment != "" || !doc.OpensAt.Equal(w.rule.SaleOpens.Std()) {
			t.Errorf("%+v", doc)
		}
		time.Sleep(21 * time.Second)
		w.joinAll(n, 500, "")
		doc = status(t, w, n, "waiting")
		if doc.Lanes[0].Joined != 500 || doc.Draw.Commitment == "" || doc.Draw.State != waitingroom.DrawCommitted || doc.Draw.K != "" {
			t.Errorf("%+v", doc)
		}
		w.left.Store(&waitingroom.Left{Available: 100, Categories: []waitingroom.CategoryLeft{
			{Key: "a", Available: 60, Capacity: 100, TotalMinor: 5000, Name: "A"}, {Key: "b", Available: 11, Capacity: 100}, {Key: "c", Available: 4, Capacity: 100}, {Key: "d", Capacity: 100},
		}})
		w.open()
		doc = status(t, w, n, "open")
		shares := ""
		for _, c := range doc.Left.Categories {
			shares += c.Share + " "
		}
		if shares != "many some few none " || doc.Left.Categories[0].TotalMinor != 5000 || doc.Left.Categories[0].Currency != "EUR" {
			t.Errorf("%+v", doc.Left)
		}
		if doc.Lanes[0].Watermark == 0 || doc.Lanes[0].N != 500 || doc.Draw.K == "" || doc.Outlook.LikelyUntil["general"] == 0 || len(doc.Poll) == 0 {
			t.Errorf("%+v", doc)
		}
		// The seats bound how many are called: 100 seats ÷ 2.5 × 1.2.
		time.Sleep(5 * time.Second)
		if mark := w.room().Lanes[0].Watermark; mark > 48 {
			t.Errorf("%d people are called for 100 seats", mark)
		}
		w.left.Store(&waitingroom.Left{Held: 10})
		doc = status(t, w, n, "open") // C11: all held is not sold out
		if doc.Outlook.LikelyUntil["general"] > doc.Lanes[0].Watermark {
			t.Errorf("%+v", doc.Outlook)
		}
		w.left.Store(&waitingroom.Left{Gone: true})
		status(t, w, n, "sold_out")
		before, err := n.Status(context.Background(), w.event)
		if err != nil {
			t.Fatal(err)
		}
		again, err := n.Status(context.Background(), w.event)
		if err != nil || again != before {
			t.Errorf("a status is written for each who asks: %v", err)
		}
		time.Sleep(3 * time.Second)
		after, err := n.Status(context.Background(), w.event)
		if err != nil || after.ETag == before.ETag || string(after.JSON) == string(before.JSON) {
			t.Errorf("%s, %v", after.ETag, err)
		}
	})
}

// A stream begins with the present status and tells the turn once; a client that does not keep up is dropped, and there are no
// more streams than may be.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		w := newWorld(t, nil, nil)
		n := w.node(func(o *waitingroom.Options) { o.SubscribersMax = 3 })
		fans := w.joinAll(n, 10, "")
		if _, err := n.Subscribe(ctx, w.event, "no ticket"); fault.CodeOf(err) != fault.QueueUnknown {
			t.Errorf("a stream of no ticket: %v", err)
		}
		own, err := n.Subscribe(ctx, w.event, fans[0].place.QueueID)
		if err != nil {
			t.Fatal(err)
		}
		slow, err := n.Subscribe(ctx, w.event, "")
		if err != nil {
			t.Fatal(err)
		}
		third, err := n.Subscribe(ctx, w.event, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Subscribe(ctx, w.event, ""); fault.CodeOf(err) != fault.Busy {
			t.Errorf("one stream more than may be: %v", err)
		}
		third.Close()
		third.Close()
		var frames []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for f := range own.Frames() {
				frames = append(frames, string(f))
			}
		}()
		time.Sleep(2 * joinsFor)
		own.Close()
		<-done
		turns := 0
		for _, f := range frames {
			if !strings.HasSuffix(f, "\n\n") || !strings.HasPrefix(f, "event: status\ndata: {") && !strings.HasPrefix(f, "event: turn\ndata: {\"called\":true") {
				t.Fatalf("%q", f)
			}
			if strings.HasPrefix(f, "event: turn") {
				turns++
			}
		}
		if turns != 1 || !strings.HasPrefix(frames[0], "event: status") {
			t.Errorf("%d turns were told in %d frames", turns, len(frames))
		}
		for range slow.Frames() { // what was buffered, then the end
		}
		if !slow.Slow() || own.Slow() || n.Stats().SlowDropped != 1 || n.Stats().Subscribers != 0 {
			t.Errorf("%+v", n.Stats())
		}
		last, err := n.Subscribe(ctx, w.event, fans[1].place.QueueID) // after the call: told at once
		if err != nil {
			t.Fatal(err)
		}
		<-last.Frames()
		if f := <-last.Frames(); !strings.HasPrefix(string(f), "event: turn") {
			t.Errorf("%q", f)
		}
		n.stop()
		if _, open := <-last.Frames(); open {
			t.Error("a stream outlives its service")
		}
		if _, err := n.Subscribe(ctx, w.event, ""); fault.CodeOf(err) != fault.Busy {
			t.Errorf("a stream of a closed service: %v", err)
		}
	})
}

// C8: the steps of the last 15 minutes are public, by second.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, nodes, _ := opened(t, 2_000, nil, 1)
		time.Sleep(3 * time.Second)
		calls, err := nodes[0].Calls(context.Background(), w.event)
		if err != nil {
			t.Fatal(err)
		}
		points := calls["general"]
		for i, p := range points {
			if i > 0 && (p.At <= points[i-1].At || p.Watermark <= points[i-1].Watermark) {
				t.Fatalf("%+v", points)
			}
		}
		if len(points) < 3 || len(points) > 5 {
			t.Errorf("%+v", points)
		}
	})
}

// The report has the 99th percentile to a quarter, of the last seconds only.
func TestHoldReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(e *ledger.Event) { e.Room.RateAuto, e.Room.RateMin = true, 10 })
		var last atomic.Pointer[ledger.RoomReport]
		n := w.node(func(o *waitingroom.Options) {
			o.Node = 7
			o.Ledger = &ledgerOf{Ledger: o.Ledger, before: func(c ledger.Command) error {
				if a, ok := c.(ledger.Advance); ok && a.Report.Node >= 0 {
					last.Store(&a.Report)
				}
				return nil
			}}
		})
		w.joinAll(n, 100, "")
		w.open()
		for i := range 1_000 {
			n.ObserveHold(w.event, time.Duration(10+i%10)*time.Millisecond, false)
		}
		for range 50 {
			n.ObserveHold(w.event, 700*time.Millisecond, false)
			n.ObserveHold(w.event, 0, true)
		}
		w.until("it is told", func() bool { r := last.Load(); return r != nil && r.Holds > 0 })
		if r := last.Load(); r == nil || r.Node != 7 || r.Holds != 1_050 || r.Shed != 50 || r.P99 < 700 || r.P99 > 900 {
			t.Errorf("%+v", r)
		}
		time.Sleep(5 * time.Second)
		if r := last.Load(); r.Holds != 0 || r.P99 != 0 {
			t.Errorf("%+v", r)
		}
	})
}
