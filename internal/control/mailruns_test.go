package control

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"onsale/internal/outbox/mail"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func job(key string) mail.Job {
	return mail.Job{
		Key: key, Kind: mail.KindTickets, Customer: 1, Order: 2, Event: 3, Refund: 4, Ticket: 5, Word: "w", Version: 6,
		Created: time.Date(2027, 1, 2, 3, 4, 5, 6e6, time.UTC),
	}
}

func keysOf(jobs []mail.Job) []string {
	keys := []string{}
	for _, j := range jobs {
		keys = append(keys, j.Key)
	}
	return keys
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("not as wanted (-want +got):\n%s", diff)
	}
}

func TestMailJobsAreDoneOnce(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		ctx := t.Context()
		s, other := open().Mail(), open().Mail()
		bulk := job("c")
		bulk.Bulk = true
		must(t, s.PutJobs(ctx, []mail.Job{job("a"), job("b"), bulk}))
		again := job("a")
		again.Order = 99
		must(t, other.PutJobs(ctx, []mail.Job{again}))

		first, err := s.ClaimJobs(ctx, false, time.Hour, 10)
		must(t, err)
		same(t, keysOf(first), []string{"a", "b"})
		want := job("a")
		want.Fence, want.Due = 1, first[0].Due
		same(t, first[0], want)
		for range 2 { // claimed ones are nobody else's
			none, err := other.ClaimJobs(ctx, false, time.Hour, 10)
			must(t, err)
			same(t, keysOf(none), []string{})
		}
		got, err := other.ClaimJobs(ctx, true, time.Hour, 10)
		must(t, err)
		same(t, keysOf(got), []string{"c"})

		must(t, s.EndJob(ctx, first[0]))
		must(t, s.DelayJob(ctx, first[1], time.Hour, "451"))
		none, err := s.ClaimJobs(ctx, false, time.Hour, 10)
		must(t, err)
		same(t, keysOf(none), []string{})
		// One that is ended never comes again, whoever asks for it.
		must(t, s.PutJobs(ctx, []mail.Job{job("a")}))
		waiting, bulkCount, dead, err := s.CountJobs(ctx)
		must(t, err)
		same(t, []int{waiting, bulkCount, dead}, []int{2, 1, 0})
	})
}

func TestMailJobsAreFenced(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		ctx := t.Context()
		s := open().Mail()
		must(t, s.PutJobs(ctx, []mail.Job{job("a")}))
		slow, err := s.ClaimJobs(ctx, false, 0, 1)
		must(t, err)
		quick, err := s.ClaimJobs(ctx, false, time.Hour, 1)
		must(t, err)
		same(t, keysOf(quick), []string{"a"})
		must(t, s.KillJob(ctx, slow[0], "550"))
		must(t, s.DelayJob(ctx, slow[0], 0, "late"))
		must(t, s.EndJob(ctx, slow[0]))
		waiting, _, dead, err := s.CountJobs(ctx)
		must(t, err)
		same(t, []int{waiting, dead}, []int{1, 0})

		must(t, s.KillJob(ctx, quick[0], "550 5.1.1"))
		letters, err := s.DeadJobs(ctx, 10)
		must(t, err)
		if len(letters) != 1 || letters[0].Last != "550 5.1.1" || letters[0].Tries != 1 {
			t.Fatalf("%+v", letters)
		}
		n, err := s.ReviveJobs(ctx, []string{"a", "a", "none"})
		must(t, err)
		same(t, n, 1)
		revived, err := s.ClaimJobs(ctx, false, time.Hour, 1)
		must(t, err)
		if len(revived) != 1 || revived[0].Tries != 0 || revived[0].Fence != 3 {
			t.Fatalf("%+v", revived)
		}
	})
}

func TestMailJobsArePruned(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		ctx := t.Context()
		s := open().Mail()
		must(t, s.PutJobs(ctx, []mail.Job{job("a"), job("b"), job("c"), job("d")}))
		jobs, err := s.ClaimJobs(ctx, false, time.Hour, 10)
		must(t, err)
		must(t, s.EndJob(ctx, jobs[0]))
		must(t, s.EndJob(ctx, jobs[1]))
		must(t, s.KillJob(ctx, jobs[2], "550"))
		later, earlier := time.Now().Add(time.Minute), time.Now().Add(-time.Hour)
		n, err := s.PruneJobs(ctx, earlier, earlier, 10)
		must(t, err)
		same(t, n, 0)
		n, err = s.PruneJobs(ctx, later, earlier, 1)
		must(t, err)
		same(t, n, 1)
		n, err = s.PruneJobs(ctx, later, later, 10)
		must(t, err)
		same(t, n, 2)
		waiting, _, dead, err := s.CountJobs(ctx)
		must(t, err)
		same(t, []int{waiting, dead}, []int{1, 0})
	})
}

func TestMailRuns(t *testing.T) {
	eachDialect(t, func(t *testing.T, open func() *DB) {
		ctx := t.Context()
		s, other := open().Mail(), open().Mail()
		if _, err := s.Told(ctx, 7); !errors.Is(err, mail.ErrUnknown) {
			t.Fatal(err)
		}
		was := mail.Event{ID: 7, Version: 1, Title: "Aurora", Starts: time.Date(2027, 6, 1, 18, 0, 0, 0, time.UTC), Venue: "Hall", City: "上海", Zone: "Asia/Shanghai"}
		must(t, s.PutTold(ctx, was))
		changed := was
		changed.Version, changed.Venue = 2, "Other"
		must(t, other.PutTold(ctx, changed)) // somebody was faster
		told, err := s.Told(ctx, 7)
		must(t, err)
		same(t, told, mail.Told{Event: was})

		run := mail.Run{Event: 7, Kind: mail.KindEventChanged, Version: 2, Was: was, Now: changed, Changes: 1}
		must(t, s.PutRun(ctx, run))
		must(t, other.PutRun(ctx, run)) // the notice came twice
		told, err = s.Told(ctx, 7)
		must(t, err)
		same(t, told, mail.Told{Event: changed, Changes: 1})

		slow, ok, err := s.ClaimRun(ctx, 0)
		must(t, err)
		quick, ok2, err := other.ClaimRun(ctx, time.Hour)
		must(t, err)
		if _, third, _ := s.ClaimRun(ctx, time.Hour); !ok || !ok2 || third {
			t.Fatal(ok, ok2, third)
		}
		slow.Cursor, slow.Made, slow.Done = 100, 1, true
		must(t, s.AdvanceRun(ctx, slow, []mail.Job{job("stale")}))
		quick.Cursor, quick.Made = 50, 2
		must(t, s.AdvanceRun(ctx, quick, []mail.Job{job("x"), job("y")}))
		waiting, _, _, err := s.CountJobs(ctx)
		must(t, err)
		same(t, waiting, 2) // the stale claim made none

		next, ok, err := s.ClaimRun(ctx, time.Hour)
		must(t, err)
		want := run
		want.Was.Version, want.Cursor, want.Made, want.Fence = 0, 50, 2, 3
		same(t, []any{next, ok}, []any{want, true})

		cancelled := changed
		cancelled.Version, cancelled.Cancelled = 3, true
		must(t, s.PutRun(ctx, mail.Run{Event: 7, Kind: mail.KindEventCancelled, Version: 3, Was: changed, Now: cancelled, Changes: 2}))
		must(t, s.AdvanceRun(ctx, next, []mail.Job{job("z")})) // what is cancelled has no changes any more
		last, ok, err := s.ClaimRun(ctx, time.Hour)
		must(t, err)
		if !ok || last.Kind != mail.KindEventCancelled {
			t.Fatalf("%+v, %v", last, ok)
		}
		last.Done = true
		must(t, s.AdvanceRun(ctx, last, nil))
		if _, ok, err := s.ClaimRun(ctx, time.Hour); ok || err != nil {
			t.Fatal(ok, err)
		}
		waiting, _, _, err = s.CountJobs(ctx)
		must(t, err)
		same(t, waiting, 2)
		if _, err := s.Run(ctx, 7, mail.KindEventChanged, 9); !errors.Is(err, mail.ErrUnknown) {
			t.Fatal(err)
		}
		n, err := s.PruneJobs(ctx, time.Time{}, time.Now().Add(time.Minute), 10)
		must(t, err)
		same(t, n, 2)
	})
}
