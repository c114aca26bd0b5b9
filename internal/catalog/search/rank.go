package search

import (
	"container/heap"
	"slices"
	"strings"

	"onsale/internal/catalog"
	"onsale/internal/fold"
	"onsale/internal/id"
)

// Where something is found.
const (
	inTitle = iota // of the event or its show
	inPerformers
	inPlace // venue and city
	inText  // the organizer's own words about the show
	placesCount
)

// points by where and how well a clause is found: as it is, as the beginning of a word, or nearly (a typo, or most pairs
// of a long Chinese run). What is merely mentioned in the text comes last.
var points = [placesCount][3]int{inTitle: {10, 7, 4}, inPerformers: {10, 7, 4}, inPlace: {8, 5, 3}, inText: {2, 1, 1}}

// textRankMax is the best rank of an entry that has a query of one clause in its text only; any other is better.
const textRankMax = 2

const (
	exact = iota
	beginning
	nearly

	wholeName = 10 // more for a query that is the title or a performer's name
	inOrder   = 3  // more for one of several words that stands so in the title
)

// An entry is an event as the index knows it. It is not changed.
type entry struct {
	starts    int64 // ms
	id        id.ID
	organizer id.ID
	city      string
	places    [placesCount]place
	names     []string // title and performers, squeezed
	event     *catalog.Event
	version   catalog.EventVersion
	slot      int
}

// A place of an entry, folded.
type place struct {
	words   string // " one two "
	chinese string // runs, each followed by a blank
}

func newEntry(l catalog.Listing, version catalog.EventVersion, slot int) *entry {
	e := &entry{id: l.Event.ID, organizer: l.Event.Organizer, starts: l.Event.Starts.UnixMilli(), city: squeeze(fold.Text(l.Event.Venue.City)),
		event: &l.Event, version: version, slot: slot}
	titles := []string{l.Event.Title}
	if l.Show.Title != l.Event.Title {
		titles = append(titles, l.Show.Title)
	}
	e.fill(inTitle, titles...)
	e.fill(inPerformers, l.Event.Performers...)
	e.fill(inPlace, l.Event.Venue.Name, l.Event.Venue.City)
	e.fill(inText, l.Show.Description)
	for _, name := range append(titles, l.Event.Performers...) {
		e.names = append(e.names, squeeze(fold.Text(name)))
	}
	return e
}

func (e *entry) fill(where int, texts ...string) {
	var words, chinese strings.Builder
	words.WriteByte(' ')
	for _, text := range texts {
		for _, p := range pieces(fold.Text(text), false) {
			if p.chinese != "" {
				chinese.WriteString(p.chinese + " ")
				continue
			}
			for _, part := range p.parts {
				words.WriteString(part + " ")
			}
			words.WriteString(p.word + " ")
		}
	}
	e.places[where] = place{words: words.String(), chinese: chinese.String()}
}

// terms are what the index knows places by: their words, and their Chinese characters one by one and in pairs.
func terms(places []place) (words, chinese []string) {
	for _, p := range places {
		words = append(words, strings.Fields(p.words)...)
		for _, run := range strings.Fields(p.chinese) {
			chinese = append(append(chinese, strings.Split(run, "")...), pairs(run)...)
		}
	}
	return words, chinese
}

// rank says how well an entry that the index has found answers the query, from 1 on; 0: not at all. It depends on nothing
// else.
func (p *parsed) rank(e *entry) int {
	total := 0
	for i := range p.clauses {
		n := p.clauses[i].points(e)
		if n == 0 {
			return 0
		}
		total += n
	}
	if slices.Contains(e.names, p.whole) {
		return total + wholeName
	}
	if len(p.clauses) > 1 && strings.Contains(e.names[0], p.whole) {
		return total + inOrder
	}
	return total
}

// points are those of the best place in which the clause is found; 0: it is in none.
func (c *clause) points(e *entry) int {
	best, missing := 0, len(c.pairs)
	for where := range e.places {
		if best >= points[where][exact] {
			continue
		}
		if where == inText && c.term {
			return max(best, points[inText][exact]) // a term of the index as it is: it need not be looked for in long texts
		}
		how, found := exact, false
		if c.chinese != "" {
			found = strings.Contains(e.places[where].chinese, c.chinese)
		} else {
			how, found = c.wordIn(e.places[where].words)
		}
		if found {
			best = max(best, points[where][how])
		}
	}
	if best > 0 || missingMax(len(c.pairs)) == 0 {
		return best
	}
	// Most pairs of a long run, wherever they are: one may name the singer, another the city.
	where := inText
	for _, pair := range c.pairs {
		for k := range e.places {
			if strings.Contains(e.places[k].chinese, pair) {
				missing--
				where = min(where, k)
				break
			}
		}
	}
	if missing <= missingMax(len(c.pairs)) {
		return points[where][nearly]
	}
	return 0
}

// wordIn says how a word stands in a place's words.
func (c *clause) wordIn(words string) (how int, found bool) {
	at := strings.Index(words, c.word)
	for i := at; i >= 0; { // all occurrences: the first may be inside of a word
		if words[i-1] == ' ' {
			if words[i+len(c.word)] == ' ' {
				return exact, true
			}
			how, found = beginning, found || len(c.word) >= prefixLettersMin
		}
		next := strings.Index(words[i+1:], c.word)
		if next < 0 {
			break
		}
		i += 1 + next
	}
	if len(c.parts) > 0 && hasAll(words, c.parts) {
		return exact, true
	}
	if found {
		return how, true
	}
	for _, typo := range c.typos {
		if hasWord(words, typo) {
			return nearly, true
		}
	}
	return 0, false
}

func hasAll(words string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !hasWord(words, part) })
}

func hasWord(words, word string) bool { return strings.Contains(words, " "+word+" ") }

// A hit is an entry that answers a query.
type hit struct {
	rank   int
	starts int64
	event  id.ID
	entry  *entry
}

// before says whether h comes before g in a list.
func (h hit) before(g hit) bool {
	switch {
	case h.rank != g.rank:
		return h.rank > g.rank
	case h.starts != g.starts:
		return h.starts < g.starts
	}
	return h.event < g.event
}

// top keeps the first few hits. Its heap has the last of them on top.
type top struct {
	hits []hit
	most int
}

func newTop(most int) *top { return &top{most: most, hits: make([]hit, 0, most)} }

// wants says whether add would keep a hit.
func (t *top) wants(h hit) bool { return len(t.hits) < t.most || h.before(t.hits[0]) }

func (t *top) add(h hit) {
	if len(t.hits) == t.most {
		t.hits[0] = h
		heap.Fix(t, 0)
		return
	}
	heap.Push(t, h)
}

func (t *top) sorted() []hit {
	slices.SortFunc(t.hits, func(a, b hit) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return t.hits
}

func (t *top) Len() int           { return len(t.hits) }
func (t *top) Less(i, j int) bool { return t.hits[j].before(t.hits[i]) }
func (t *top) Swap(i, j int)      { t.hits[i], t.hits[j] = t.hits[j], t.hits[i] }
func (t *top) Push(h any)         { t.hits = append(t.hits, h.(hit)) }
func (t *top) Pop() any {
	last := t.hits[len(t.hits)-1]
	t.hits = t.hits[:len(t.hits)-1]
	return last
}
