package identity

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A mail is tried three times, some seconds apart, and never once what it brings has expired.
func TestMailsAreTriedAgainWhileTheyAreOfUse(t *testing.T) {
	for name, c := range map[string]struct {
		fails   int
		expires time.Duration
		tries   []time.Duration
	}{
		"at once":        {0, time.Hour, []time.Duration{0}},
		"the third time": {2, time.Hour, []time.Duration{0, 2 * time.Second, 12 * time.Second}},
		"never":          {9, time.Hour, []time.Duration{0, 2 * time.Second, 12 * time.Second}},
		"expires":        {9, 2 * time.Second, []time.Duration{0}},
		"has expired":    {0, 0, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newMailQueue(1, time.Now, slog.New(slog.DiscardHandler))
			start := time.Now()
			var tries []time.Duration
			if !q.take() || q.take() {
				t.Fatal("one place")
			}
			q.put(mailJob{kind: "test", expires: start.Add(c.expires), send: func(ctx context.Context) error {
				if until, bounded := ctx.Deadline(); !bounded || time.Until(until) > sendTimeMax {
					t.Error("a talk without an end")
				}
				tries = append(tries, time.Since(start))
				if len(tries) <= c.fails {
					return errors.New("no")
				}
				return nil
			}})
			ctx, cancel := context.WithCancel(t.Context())
			go q.work(ctx)
			time.Sleep(time.Minute)
			cancel()
			synctest.Wait()
			if len(tries) != len(c.tries) {
				t.Fatalf("%s: tried at %v, want %v", name, tries, c.tries)
			}
			for i := range tries {
				if tries[i] != c.tries[i] {
					t.Errorf("%s: tried at %v, want %v", name, tries, c.tries)
				}
			}
			if !q.take() {
				t.Errorf("%s: its place is still taken", name)
			}
		})
	}
}
