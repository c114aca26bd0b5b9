package search

import (
	"fmt"
	"hash/fnv"
	"unicode/utf8"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/fold"
)

// Limits of a query.
const (
	QueryRunesMax = 2 * catalog.NameRunesMax
	ClausesMax    = 24 // words and runs of Chinese characters

	prefixLettersMin = 3     // a shorter word must be there as it is
	typoLettersMin   = 5     // as must one in which one edit changes too much
	expandMax        = 1_000 // words of the index for which one word of a query may stand; of more, the first
)

// missingMax is how many pairs of characters of a long Chinese run may be missing: people leave out the blank between
// what they look for, as in the name of a singer followed by the word for a concert.
func missingMax(pairs int) int { return pairs * 3 / 10 }

// stopWords are not looked for where there are others: people write them, titles leave them out.
var stopWords = map[string]bool{"a": true, "an": true, "the": true, "at": true, "in": true, "on": true, "of": true, "and": true, "for": true, "to": true, "with": true, "by": true}

// A parsed query.
type parsed struct {
	clauses []clause // all must be found
	whole   string   // squeezed
}

// A clause is one thing that must be found.
type clause struct {
	piece
	pairs []string // of a Chinese run of two or more
	term  bool     // a Chinese run that is itself a term of the index: one character, or two
	typos []string // words of the index that are one edit away, set by the engine
}

// parse reads the words of a query. Fault: invalid.
func parse(text string) (parsed, error) {
	if n := utf8.RuneCountInString(text); n > QueryRunesMax {
		return parsed{}, &fault.Error{Code: fault.Invalid, Field: "query", Detail: fmt.Sprintf("%d characters are too many: use at most %d", n, QueryRunesMax)}
	}
	folded := fold.Text(text)
	p := parsed{whole: squeeze(folded)}
	seen := map[string]bool{}
	var stops []clause
	for _, one := range pieces(folded, true) {
		key := one.chinese + "\x00" + one.word
		if seen[key] {
			continue
		}
		seen[key] = true
		c := clause{piece: one, pairs: pairs(one.chinese), term: one.chinese != "" && utf8.RuneCountInString(one.chinese) <= 2}
		if stopWords[one.word] {
			stops = append(stops, c)
		} else {
			p.clauses = append(p.clauses, c)
		}
	}
	if len(p.clauses) == 0 {
		p.clauses = stops
	}
	if n := len(p.clauses); n > ClausesMax {
		return parsed{}, &fault.Error{Code: fault.Invalid, Field: "query", Detail: fmt.Sprintf("%d words are too many: use at most %d", n, ClausesMax)}
	}
	return p, nil
}

// namesFirst says that entries which have the query in their names are all better than those that do not.
func (p parsed) namesFirst() bool {
	return len(p.clauses) == 1 && missingMax(len(p.clauses[0].pairs)) == 0
}

// mark tells queries apart, for cursors; 0 for one without words.
func (p parsed) mark() uint32 {
	if p.whole == "" {
		return 0
	}
	h := fnv.New32a()
	for _, c := range p.clauses {
		fmt.Fprintf(h, "%s\x00%s\x00", c.chinese, c.word)
	}
	return h.Sum32()
}

// pairs are the neighbouring characters of a run, each pair once.
func pairs(run string) []string {
	var all []string
	seen := map[string]bool{}
	last, first := 0, true
	for i, c := range run {
		if !first {
			pair := run[last : i+utf8.RuneLen(c)]
			if !seen[pair] {
				seen[pair] = true
				all = append(all, pair)
			}
		}
		last, first = i, false
	}
	return all
}
