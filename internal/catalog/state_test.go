package catalog_test

import (
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/ledger"
)

func TestOrphansApply(t *testing.T) {
	closes := time.Date(2027, 6, 1, 20, 0, 0, 0, time.UTC)
	e := &catalog.Event{SaleCloses: closes, Orphans: catalog.Orphans{FewSeatsLeft: 50, SplitReleaseBefore: 24 * 3_600_000}}
	for _, c := range []struct {
		before    time.Duration
		available int
		want      bool
	}{{48 * time.Hour, 51, true}, {48 * time.Hour, 50, false}, {24 * time.Hour, 1000, false}, {24*time.Hour + 1, 1000, true}, {-time.Hour, 1000, false}} {
		if got := e.OrphansApply(closes.Add(-c.before), c.available); got != c.want {
			t.Errorf("%s before the end, %d left: %v", c.before, c.available, got)
		}
	}
}

func TestStateAt(t *testing.T) {
	opens := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	e := catalog.Event{SaleOpens: opens, SaleCloses: opens.Add(time.Hour)}
	for _, c := range []struct {
		stored catalog.State
		after  time.Duration
		ledger ledger.EventState
		known  bool
		want   catalog.State
	}{
		{catalog.Draft, 0, 0, false, catalog.Draft},
		{catalog.OnSale, -1, 0, false, catalog.Scheduled},
		{catalog.OnSale, 0, 0, false, catalog.OnSale},
		{catalog.OnSale, time.Hour, 0, false, catalog.Ended},
		{catalog.Paused, 0, 0, false, catalog.Paused},
		{catalog.Paused, time.Hour, 0, false, catalog.Ended},
		{catalog.OnSale, 0, ledger.Stopped, true, catalog.Stopped},
		{catalog.OnSale, 0, ledger.Stopped, false, catalog.OnSale},
		{catalog.Cancelled, 0, ledger.Stopped, true, catalog.Cancelled},
		{catalog.OnSale, 0, ledger.OnSale, true, catalog.OnSale},
	} {
		e.State = c.stored
		if got := e.StateAt(opens.Add(c.after), c.ledger, c.known); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
