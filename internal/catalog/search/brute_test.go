package search

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"onsale/internal/catalog"
)

// brute is what a search must find: every entry looked at, without the index (but for the typos that it knows of).
func brute(t *testing.T, x *Index, text string) []hit {
	t.Helper()
	words, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(words.clauses) == 0 {
		return nil
	}
	if err := x.engine.view.candidates(t.Context(), words, everything, func(int32) {}); err != nil {
		t.Fatal(err)
	}
	var all []hit
	for _, e := range x.entries {
		if slices.ContainsFunc(words.clauses, func(c clause) bool { return c.term && !mentions(e, c.chinese) }) {
			continue
		}
		if rank := words.rank(e); rank > 0 {
			all = append(all, hit{rank: rank, starts: e.starts, event: e.id, entry: e})
		}
	}
	slices.SortFunc(all, func(a, b hit) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return all
}

func mentions(e *entry, run string) bool {
	return slices.ContainsFunc(e.places[:], func(p place) bool { return strings.Contains(p.chinese, run) })
}

// The index finds what looking at every event finds, in the same order, whatever the way it takes.
func TestTheIndexMissesNothing(t *testing.T) {
	listings := programme(500, 7)
	w := newWorld(t, Options{}, listings...)
	queries := asked(listings, 60, 7)
	r := rand.New(rand.NewPCG(7, 7))
	for range 30 { // two pieces of different events, and of their texts
		a, b := listings[r.IntN(len(listings))], listings[r.IntN(len(listings))]
		queries = append(queries, catalog.Query{Text: piecesOf(r, a) + " " + piecesOf(r, b)}, catalog.Query{Text: piecesOf(r, a) + piecesOf(r, a)})
	}
	queries = append(queries, catalog.Query{Text: "live 演唱会"}, catalog.Query{Text: "arena live"}, catalog.Query{Text: "晨 演唱会"}, catalog.Query{Text: "现场演出"})
	found := 0
	for _, q := range queries {
		want := brute(t, w.Index, q.Text)
		got := w.find(catalog.Query{Text: q.Text, Max: 3})
		found += len(got)
		same := len(got) == len(want)
		for i := 0; same && i < len(got); i++ {
			same = got[i] == want[i].entry.event.Key
		}
		if !same {
			t.Errorf("%s: found %d, and there are %d, or their order differs", q.Text, len(got), len(want))
		}
	}
	if found < len(queries) {
		t.Errorf("%d queries found only %d events", len(queries), found)
	}
}

// piecesOf is a part of what an event says.
func piecesOf(r *rand.Rand, l catalog.Listing) string {
	from := []rune([]string{l.Event.Title, l.Event.Performers[0], l.Event.Venue.Name, l.Show.Description}[r.IntN(4)])
	start := r.IntN(len(from))
	return string(from[start:min(len(from), start+1+r.IntN(8))])
}

// A page full of names is not enough where an entry with a part in its text may be better.
func TestTextsAreReadWhereTheyMatter(t *testing.T) {
	at := start.AddDate(0, 1, 0)
	var all []catalog.Listing
	for _, key := range []string{"p1", "p2", "p3"} {
		l := listing(key, "Show", at)
		l.Event.Venue.Name = "Auroras Nebulas 乙丙丁戊"
		all = append(all, l)
	}
	words, run := listing("words", "Aurora", at), listing("run", "乙丙丁", at)
	words.Show.Description, run.Show.Description = "With a nebula", "甲乙"
	w := newWorld(t, Options{}, append(all, words, run)...)
	for query, want := range map[string][]string{"aurora nebula": {"words", "p1", "p2", "p3"}, "甲乙丙丁戊": {"run", "p1", "p2", "p3"}} {
		if got := w.find(catalog.Query{Text: query, Max: 2}); !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", query, got, want)
		}
	}
}
