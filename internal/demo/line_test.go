package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"onsale/internal/draw"
	"onsale/internal/guard"
	"onsale/internal/id"
)

// published is a status after a draw of one lane of n numbers.
func published(n, watermark int64) *queueStatus {
	k := [32]byte{1, 2, 3}
	list := sha256.Sum256([]byte("the list"))
	q := &queueStatus{Phase: "open", Poll: [][2]int64{{0, 1}, {100, 5}, {1000, 60}}}
	q.Draw.K, q.Draw.Commitment, q.Draw.ListHash, q.Draw.N, q.Draw.Value = hex.EncodeToString(k[:]), draw.Commitment(k), hex.EncodeToString(list[:]), n, "7 11 13"
	q.Lanes = append(q.Lanes, q.Lanes...)
	q.Lanes = append(q.Lanes, struct {
		Key       string `json:"key"`
		N         int64  `json:"n"`
		Joined    int64  `json:"joined"`
		Watermark int64  `json:"watermark"`
	}{Key: "general", N: n, Joined: n, Watermark: watermark})
	return q
}

// A page works out its own position from what is published, polls by its distance, and goes when the watermark has passed it.
func TestPeopleWorkOutTheirTurn(t *testing.T) {
	const n = 5000
	l := newLine(&client{figures: newFigures()}, "evt")
	random := rand.New(rand.NewPCG(1, 1))
	var called, sentHome int
	for number := range int64(n + 10) {
		l.wait(&waiter{place: place{lane: "general", number: number, drawn: number < n}, random: random, turn: func(yes bool) {
			if yes {
				called++
			} else {
				sentHome++
			}
		}})
	}
	now := time.Now().Add(time.Hour)
	l.take(&queueStatus{Phase: "waiting"})
	l.poll(now)
	if called+sentHome > 0 || l.length() != n+10 || l.polls.Load() != n+10 {
		t.Fatalf("before the opening %d were called, %d sent home after %d polls", called, sentHome, l.polls.Load())
	}
	if _, known := l.standing(place{lane: "general", number: 3, drawn: true}); known {
		t.Error("a number means something before the draw")
	}
	l.take(published(n, 700))
	l.poll(now.Add(time.Minute))
	if called != 700 {
		t.Errorf("%d were called, the watermark is 700", called)
	}
	l.take(published(n, n+3))
	l.poll(now.Add(time.Hour))
	if called != n+3 {
		t.Errorf("%d were called, the watermark is %d", called, n+3)
	}
	over := published(n, n+3)
	over.Phase = "sold_out"
	l.take(over)
	l.poll(now.Add(2 * time.Hour))
	if sentHome != 7 || l.length() != 0 || len(l.back) > 0 {
		t.Errorf("%d sent home, %d wait, %v", sentHome, l.length(), l.back)
	}
}

// Who is far away polls seldom.
func TestPollsByDistance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	q := published(10, 0)
	for _, c := range []struct {
		ahead int64
		known bool
		want  time.Duration
	}{{0, true, time.Second}, {99, true, time.Second}, {100, true, 5 * time.Second}, {5000, true, time.Minute}, {0, false, pollFirst}} {
		for range 50 {
			got := q.pause(c.ahead, c.known, random)
			if got < c.want*8/10 || got > c.want*12/10 {
				t.Errorf("%d ahead: polls after %s, want about %s", c.ahead, got, c.want)
			}
		}
	}
}

// What the line shows that cannot be is noticed.
func TestWhatIsPublishedIsChecked(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(q *queueStatus)
	}{
		{"another K", "committed to", func(q *queueStatus) { q.Draw.K = strings.Repeat("00", 32) }},
		{"no hash of the list", "what is published", func(q *queueStatus) { q.Draw.ListHash = "" }},
		{"a K cut off", "what is published", func(q *queueStatus) { q.Draw.K = q.Draw.K[:20] }},
		{"another N", "in all", func(q *queueStatus) { q.Draw.N++ }},
		{"a watermark that went back", "after 700", func(q *queueStatus) { q.Lanes[0].Watermark = 699 }},
	} {
		l := newLine(&client{figures: newFigures()}, "evt")
		if c.name == "a watermark that went back" {
			l.take(published(5000, 700))
		}
		q := published(5000, 700)
		c.spoil(q)
		l.take(q)
		if len(l.back) != 1 || !strings.Contains(l.back[0], c.want) {
			t.Errorf("%s: %q", c.name, l.back)
		}
	}
}

// Work is done as a challenge asks for it.
func TestSolve(t *testing.T) {
	sum := sha256.Sum256([]byte("salt?expires=1" + "42"))
	c := &guard.Challenge{Algorithm: "SHA-256", Challenge: hex.EncodeToString(sum[:]), MaxNumber: 50, Salt: "salt?expires=1", Signature: "s"}
	if text, err := solve(c); err != nil || text == "" {
		t.Error(err)
	}
	c.MaxNumber = 41
	if _, err := solve(c); err == nil {
		t.Error("a number beyond the greatest was tried")
	}
}

// The journal takes no number for two people, and no two sessions for a number.
func TestJournalOfTheLine(t *testing.T) {
	j, err := openJournal(t.TempDir() + "/journal")
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	p := place{lane: "general", number: 7, drawn: true}
	one, two := id.ID(1).Text(id.Session), id.ID(2).Text(id.Session)
	for _, c := range []struct {
		name string
		err  error
		bad  bool
	}{
		{"a number", j.joined(1, p), false}, {"the same again", j.joined(1, p), false}, {"the same to another", j.joined(2, p), true},
		{"not drawn any more", j.joined(1, place{lane: "general", number: 7}), true},
		{"the number in another lane", j.joined(2, place{lane: "presale", number: 7}), false},
		{"in", j.cameIn(1, p, one), false}, {"again", j.cameIn(1, p, one), false}, {"as another", j.cameIn(1, p, two), true},
		{"by another number", j.cameIn(1, place{lane: "general", number: 8}, one), true}, {"no session", j.cameIn(1, p, "x"), true},
	} {
		if (c.err != nil) != c.bad {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
}
