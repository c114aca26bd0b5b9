package outbox

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

func TestLogTellsIDsOnlyAndAlertsAsErrors(t *testing.T) {
	var out bytes.Buffer
	h := Log(slog.New(slog.NewTextHandler(&out, nil)))
	n := ledger.Notice{Order: 77, Sequence: 4, Kind: ledger.NoticePaid, Body: []byte(`{"secret":1}`), At: 1_800_000_000_000}
	if err := h.Handle(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	n.Kind, n.Alert = ledger.NoticeGiveBack, true
	if err := h.Handle(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || strings.Contains(out.String(), "secret") {
		t.Fatal(out.String())
	}
	for i, want := range []string{"level=INFO msg=notice kind=booking.paid order=" + n.Order.Text(id.Order) + " sequence=4 alert=false", "level=ERROR msg=notice kind=payment.give_back"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("%q is not in %q", want, lines[i])
		}
	}
}

func TestCount(t *testing.T) {
	var c Count
	for _, n := range []ledger.Notice{{Kind: ledger.NoticePaid}, {Kind: ledger.NoticePaid}, {Kind: ledger.NoticeGiveBack, Alert: true}} {
		if err := c.Handle(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	kinds := c.Kinds()
	if len(kinds) != 2 || kinds[ledger.NoticePaid] != 2 || kinds[ledger.NoticeGiveBack] != 1 || c.Alerts() != 1 {
		t.Errorf("%v, %d alerts", kinds, c.Alerts())
	}
	kinds[ledger.NoticePaid] = 99
	if c.Kinds()[ledger.NoticePaid] != 2 {
		t.Error("its counts can be changed from outside")
	}
}

func TestDedup(t *testing.T) {
	var got []int64
	fail := false
	h := Dedup(HandlerFunc(func(_ context.Context, n ledger.Notice) error {
		if fail {
			return errors.New("no")
		}
		got = append(got, int64(n.Order)*100+n.Sequence)
		return nil
	}), 2)
	send := func(order id.ID, sequence int64) error {
		return h.Handle(t.Context(), ledger.Notice{Order: order, Sequence: sequence})
	}
	for _, s := range [][2]int64{{1, 1}, {1, 1}, {1, 2}, {2, 1}, {1, 1}, {1, 2}, {1, 3}} {
		if err := send(id.ID(s[0]), s[1]); err != nil {
			t.Fatal(err)
		}
	}
	fail = true
	if send(2, 2) == nil {
		t.Error("a failure was taken for done")
	}
	fail = false
	_ = send(2, 2) // comes again, and is not dropped
	_ = send(3, 1) // order 1 is forgotten
	_ = send(1, 1)
	want := []int64{101, 102, 201, 103, 202, 301, 101}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if d := h.(*dedup); len(d.orders) != 2 {
		t.Errorf("it remembers %d orders", len(d.orders))
	}
}
