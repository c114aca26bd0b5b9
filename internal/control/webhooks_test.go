package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/id"
	"onsale/internal/outbox/webhook"
)

func endpoint(t *testing.T, d *DB, number id.ID, url string) webhook.Endpoint {
	t.Helper()
	o, err := d.Catalog().EnsureOrganizer(t.Context(), catalog.Organizer{ID: 9, Key: "house", Name: "House"})
	must(t, err)
	e := webhook.Endpoint{ID: number, Organizer: o.ID, URL: url, On: true, Sealed: []byte{0, 1, 2}, Created: time.Date(2027, 1, 1, 0, 0, 0, 5e6, time.UTC)}
	must(t, d.Webhooks().AddEndpoint(t.Context(), e, 10))
	return e
}

func delivery(e webhook.Endpoint, message string) webhook.Delivery {
	return webhook.Delivery{Endpoint: e.ID, Message: message, Kind: "booking.paid", Body: `{"a":"极光"}`, State: webhook.Due, Created: time.Date(2027, 1, 2, 0, 0, 0, 7e6, time.UTC)}
}

func messages(all []webhook.Delivery) []string {
	names := []string{}
	for _, d := range all {
		names = append(names, d.Message)
	}
	return names
}

func TestWebhookEndpoints(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		ctx := t.Context()
		d := open()
		s, other := d.Webhooks(), open().Webhooks()
		e := endpoint(t, d, 1, "https://a.example.com")
		got, err := other.Endpoint(ctx, 1)
		must(t, err)
		same(t, got, e)
		e.Kinds, e.On, e.URL, e.OldSealed, e.OldUntil = []string{"a.b", "c.d"}, false, "https://b.example.com", []byte{3}, e.Created.Add(time.Hour)
		stale := e
		must(t, s.SetEndpoint(ctx, e))
		was := e.Sealed
		e.Sealed = []byte{7}
		must(t, s.RotateEndpoint(ctx, e, was))
		if err := s.RotateEndpoint(ctx, e, was); !errors.Is(err, webhook.ErrUnknown) {
			t.Errorf("a rotation that comes second: %v", err)
		}
		must(t, other.SetEndpoint(ctx, stale)) // whoever read it before leaves the new secret alone
		all, err := other.Endpoints(ctx, 0)
		must(t, err)
		same(t, all, []webhook.Endpoint{e})
		none, err := s.Endpoints(ctx, 8)
		must(t, err)
		same(t, len(none), 0)

		twin := e
		twin.ID = 2
		for err, want := range map[error]error{
			s.AddEndpoint(ctx, twin, 10): webhook.ErrTaken, s.AddEndpoint(ctx, twin, 1): webhook.ErrTooMany, s.RemoveEndpoint(ctx, 5): webhook.ErrUnknown,
			s.SetEndpoint(ctx, webhook.Endpoint{ID: 5, Sealed: []byte{1}}): webhook.ErrUnknown,
		} {
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		must(t, s.Put(ctx, []webhook.Delivery{delivery(e, "m")}, 10))
		must(t, s.RemoveEndpoint(ctx, 1))
		must(t, s.Put(ctx, []webhook.Delivery{delivery(e, "n")}, 10)) // whoever still knew of it
		if _, err := other.Endpoint(ctx, 1); !errors.Is(err, webhook.ErrUnknown) {
			t.Error(err)
		}
		c, err := s.Count(ctx, 1)
		must(t, err)
		same(t, c, webhook.Counts{})
	})
}

func TestWebhookEndpointsAreCountedOneByOne(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		d := open()
		first := endpoint(t, d, 1, "https://a.example.com")
		var racers sync.WaitGroup
		results := make([]error, 8)
		for i := range results {
			racers.Go(func() {
				e := first
				e.ID, e.URL = id.ID(i+2), fmt.Sprintf("https://%d.example.com", i)
				results[i] = d.Webhooks().AddEndpoint(t.Context(), e, 3)
			})
		}
		racers.Wait()
		added := 0
		for _, err := range results {
			if err == nil {
				added++
			} else if !errors.Is(err, webhook.ErrTooMany) {
				t.Error(err)
			}
		}
		same(t, added, 2)
	})
}

func TestWebhookDeliveries(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		ctx := t.Context()
		d := open()
		s, other := d.Webhooks(), open().Webhooks()
		e := endpoint(t, d, 1, "https://a.example.com")
		endpoint(t, d, 2, "https://b.example.com") // it has nothing due
		must(t, s.Put(ctx, []webhook.Delivery{delivery(e, "m1"), delivery(e, "m2")}, 3))
		again := delivery(e, "m1")
		again.Body = "other"
		must(t, other.Put(ctx, []webhook.Delivery{again, delivery(e, "m3"), delivery(e, "m4")}, 3)) // the fourth is one too many
		c, err := s.Count(ctx, e.ID)
		must(t, err)
		same(t, c, webhook.Counts{Waiting: 3, Dead: 1})
		due, err := other.DueEndpoints(ctx, 10)
		must(t, err)
		same(t, due, []webhook.Endpoint{e})

		slow, err := s.Claim(ctx, e.ID, 0, 1)
		must(t, err)
		want := delivery(e, "m1")
		want.Fence, want.Due = 1, slow[0].Due
		same(t, slow[0], want)
		quick, err := other.Claim(ctx, e.ID, time.Hour, 10)
		must(t, err)
		slices.SortFunc(quick, func(a, b webhook.Delivery) int { return strings.Compare(a.Message, b.Message) })
		same(t, messages(quick), []string{"m1", "m2", "m3"})
		none, err := s.Claim(ctx, e.ID, time.Hour, 10)
		must(t, err)
		same(t, messages(none), []string{})
		due, err = s.DueEndpoints(ctx, 10)
		must(t, err)
		same(t, len(due), 0)

		stale := slow[0]
		stale.State = webhook.Dead
		must(t, s.Settle(ctx, stale, 0)) // the claim has gone to another
		dead, err := s.List(ctx, e.ID, webhook.Dead, 10)
		must(t, err)
		same(t, messages(dead), []string{"m4"})
		quick[0].State, quick[0].Status, quick[0].Tries = webhook.Ended, 204, 1
		quick[1].Tries, quick[1].Status, quick[1].Last = 1, 503, "no"
		must(t, s.Settle(ctx, quick[0], 0))
		must(t, s.Settle(ctx, quick[1], time.Hour))
		must(t, s.Settle(ctx, quick[2], 0)) // broken off: due at once
		next, err := other.Claim(ctx, e.ID, time.Hour, 10)
		must(t, err)
		same(t, messages(next), []string{"m3"})
		list, err := s.List(ctx, e.ID, webhook.Ended, 10)
		must(t, err)
		same(t, messages(list), []string{"m1"})
		same(t, list[0].Status, 204)

		off := e
		off.On = false
		must(t, s.SetEndpoint(ctx, off))
		must(t, s.Settle(ctx, next[0], 0))
		due, err = s.DueEndpoints(ctx, 10)
		must(t, err)
		same(t, len(due), 0)
	})
}

func TestWebhookReplayAndPrune(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		ctx := t.Context()
		d := open()
		s := d.Webhooks()
		e := endpoint(t, d, 1, "https://a.example.com")
		settle := func() {
			t.Helper()
			all, err := s.Claim(ctx, e.ID, time.Hour, 10)
			must(t, err)
			for _, one := range all {
				one.State, one.Tries = webhook.Ended, 11
				if one.Message == "m2" {
					one.State = webhook.Dead
				}
				must(t, s.Settle(ctx, one, 0))
			}
		}
		must(t, s.Put(ctx, []webhook.Delivery{delivery(e, "m1"), delivery(e, "m2"), delivery(e, "m3")}, 10))
		settle()
		for _, test := range []struct {
			replay webhook.Replay
			want   int
		}{
			{webhook.Replay{Dead: true}, 1}, {webhook.Replay{Message: "m3"}, 1}, {webhook.Replay{Message: "m9"}, 0},
			{webhook.Replay{Since: delivery(e, "").Created}, 3}, {webhook.Replay{Since: delivery(e, "").Created.Add(time.Millisecond)}, 0},
		} {
			n, err := s.Replay(ctx, e.ID, test.replay)
			must(t, err)
			if n != test.want {
				t.Errorf("%+v: %d, want %d", test.replay, n, test.want)
			}
			all, err := s.Claim(ctx, e.ID, 0, 10)
			must(t, err)
			for _, one := range all {
				if one.Tries != 0 {
					t.Errorf("a replay goes on counting: %+v", one)
				}
			}
			settle()
		}
		later, earlier := time.Now().Add(time.Minute), time.Now().Add(-time.Hour)
		n, err := s.Prune(ctx, later, earlier, 1)
		must(t, err)
		same(t, n, 1)
		n, err = s.Prune(ctx, later, later, 10)
		must(t, err)
		same(t, n, 2)
	})
}
