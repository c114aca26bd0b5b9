package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/searcher"
	bleve "github.com/blevesearch/bleve_index_api"
)

// The fields of a document: Chinese apart from words, and names (title, performers, place) apart from long texts.
const (
	wordsField       = "words"
	chineseField     = "chinese"
	wordsTextField   = "words_text"
	chineseTextField = "chinese_text"
)

// depth says which fields of a document are searched.
type depth int

const (
	names depth = iota
	everything
)

func (d depth) words() []string   { return []string{wordsField, wordsTextField}[:d+1] }
func (d depth) chinese() []string { return []string{chineseField, chineseTextField}[:d+1] }

const analysts = 2 // goroutines that take documents apart

// segmentsMax is how many batches one engine takes: in memory bleve does not merge their segments, and each one makes every
// search slower. The index then moves to a new engine.
const segmentsMax = 48

// An engine is one bleve index in memory. Changes are not seen before fresh.
type engine struct {
	index    bleve.Index
	analysis *bleve.AnalysisQueue
	view     *view
	segments int
}

// A view is the index as it was at one moment.
type view struct {
	reader bleve.IndexReader
	slots  []int32 // by bleve's document number, which a search meets thousands of times
}

func newEngine() (*engine, error) {
	e := &engine{analysis: bleve.NewAnalysisQueue(analysts)}
	index, err := scorch.NewScorch(scorch.Name, map[string]any{"path": ""}, e.analysis)
	if err == nil {
		err = index.Open()
	}
	if err != nil {
		e.analysis.Close()
		return nil, fmt.Errorf("opening the search index: %w", err)
	}
	e.index = index
	if e.view, err = e.fresh(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the search index: %w", err), e.close())
	}
	return e, nil
}

func (e *engine) close() error {
	var err error
	if e.view != nil {
		err = e.view.reader.Close()
	}
	err = errors.Join(err, e.index.Close())
	e.analysis.Close()
	return err
}

// change puts documents and takes others out. Searches do not see it yet.
func (e *engine) change(put []*entry, gone []int) error {
	batch := bleve.NewBatch()
	for _, one := range put {
		d := document.NewDocument(strconv.Itoa(one.slot))
		words, chinese := terms(one.places[:inText])
		wordsText, chineseText := terms(one.places[inText:])
		for field, terms := range map[string][]string{wordsField: words, chineseField: chinese, wordsTextField: wordsText, chineseTextField: chineseText} {
			d.AddField(document.NewTextFieldCustom(field, nil, []byte(strings.Join(terms, " ")), bleve.IndexField|bleve.SkipFreqNorm, blanks{}))
		}
		batch.Update(d)
	}
	for _, slot := range gone {
		batch.Delete(strconv.Itoa(slot))
	}
	e.segments++
	return e.index.Batch(batch)
}

// fresh is a view of all changes so far.
func (e *engine) fresh() (*view, error) {
	reader, err := e.index.Reader()
	if err != nil {
		return nil, err
	}
	v := &view{reader: reader}
	if err := v.number(); err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return v, nil
}

// number fills in the slots.
func (v *view) number() error {
	all, err := v.reader.DocIDReaderAll()
	if err != nil {
		return err
	}
	for {
		internal, err := all.Next()
		if err != nil || internal == nil {
			return errors.Join(err, all.Close())
		}
		number := int(internal.Value())
		external, err := v.reader.ExternalID(internal)
		if err != nil {
			return errors.Join(err, all.Close())
		}
		slot, err := strconv.ParseInt(external, 10, 32)
		if err != nil {
			return errors.Join(err, all.Close())
		}
		if more := number + 1 - len(v.slots); more > 0 {
			v.slots = append(v.slots, make([]int32, more)...)
		}
		v.slots[number] = int32(slot)
	}
}

// blanks is the analyzer of both fields: the terms are ready, with blanks between them.
type blanks struct{}

// Analyze implements analysis.Analyzer.
func (blanks) Analyze(text []byte) analysis.TokenStream {
	var tokens analysis.TokenStream
	for i, term := range bytes.Fields(text) {
		tokens = append(tokens, &analysis.Token{Term: term, Position: i + 1, Type: analysis.AlphaNumeric})
	}
	return tokens
}

var unscored = search.SearcherOptions{Score: "none"}

// candidates visits the slots of all entries that may answer the query, and perhaps some that do not. It sets the typos of
// the query's clauses. With names it leaves out those that have a clause in the organizer's words only.
func (v *view) candidates(ctx context.Context, q parsed, d depth, visit func(slot int32)) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var each []search.Searcher
	for i := range q.clauses {
		s, err := v.clause(ctx, &q.clauses[i], d)
		if err != nil {
			return errors.Join(err, closeAll(each))
		}
		each = append(each, s)
	}
	both, err := searcher.NewConjunctionSearcher(ctx, v.reader, each, unscored)
	if err != nil {
		return errors.Join(err, closeAll(each))
	}
	defer both.Close()
	c := &search.SearchContext{DocumentMatchPool: search.NewDocumentMatchPool(both.DocumentMatchPoolSize()+1, 0), IndexReader: v.reader}
	for visited := 1; ; visited++ {
		match, err := both.Next(c)
		if err != nil || match == nil {
			return err
		}
		visit(v.slots[match.IndexInternalID.Value()])
		c.DocumentMatchPool.Put(match)
		if visited%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func closeAll(each []search.Searcher) (err error) {
	for _, s := range each {
		err = errors.Join(err, s.Close())
	}
	return err
}

// clause finds the documents that may have a clause.
func (v *view) clause(ctx context.Context, c *clause, d depth) (search.Searcher, error) {
	var each []search.Searcher
	add := func(s search.Searcher, err error) error {
		if err == nil {
			each = append(each, s)
		}
		return err
	}
	var err error
	if c.chinese != "" {
		terms := []string{c.chinese}
		if len(c.pairs) > 0 {
			terms, err = v.rarest(ctx, c.pairs, d)
		}
		for _, field := range d.chinese() {
			err = cmp.Or(err, add(searcher.NewMultiTermSearcher(ctx, v.reader, terms, field, 1, unscored, false)))
		}
	} else {
		for _, field := range d.words() {
			var terms []string
			if terms, err = v.expand(c, field); err != nil {
				break
			}
			err = add(searcher.NewMultiTermSearcher(ctx, v.reader, terms, field, 1, unscored, false))
			if err == nil && len(c.parts) > 0 {
				err = add(v.parts(ctx, c.parts, field))
			}
			if err != nil {
				break
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, closeAll(each))
	}
	if len(each) == 1 {
		return each[0], nil
	}
	s, err := searcher.NewDisjunctionSearcher(ctx, v.reader, each, 1, unscored)
	if err != nil {
		return nil, errors.Join(err, closeAll(each))
	}
	return s, nil
}

// expand answers the words of a field for which a clause's word may stand: itself, those that it begins, and those that
// are one edit away, a transposition being one edit. The latter are added to the clause's typos.
func (v *view) expand(c *clause, field string) ([]string, error) {
	terms := map[string]bool{c.word: true}
	letters := utf8.RuneCountInString(c.word)
	if letters >= prefixLettersMin {
		if err := collect(terms, func() (bleve.FieldDict, error) { return v.reader.FieldDictPrefix(field, []byte(c.word)) }); err != nil {
			return nil, err
		}
	}
	if fuzzy, able := v.reader.(bleve.IndexReaderFuzzy); able && letters >= typoLettersMin {
		near := map[string]bool{}
		if err := collect(near, func() (bleve.FieldDict, error) { return fuzzy.FieldDictFuzzy(field, c.word, 1, "") }); err != nil {
			return nil, err
		}
		for word := range near {
			terms[word] = true
			if word != c.word && !slices.Contains(c.typos, word) {
				c.typos = append(c.typos, word)
			}
		}
	}
	return slices.Sorted(maps.Keys(terms)), nil
}

// parts finds the documents that have all parts of a word in a field.
func (v *view) parts(ctx context.Context, parts []string, field string) (search.Searcher, error) {
	var each []search.Searcher
	for _, part := range parts {
		s, err := searcher.NewTermSearcher(ctx, v.reader, part, field, 1, unscored)
		if err != nil {
			return nil, errors.Join(err, closeAll(each))
		}
		each = append(each, s)
	}
	s, err := searcher.NewConjunctionSearcher(ctx, v.reader, each, unscored)
	if err != nil {
		return nil, errors.Join(err, closeAll(each))
	}
	return s, nil
}

// rarest are so many of a run's pairs that an entry which may miss some of the pairs must have one of these.
func (v *view) rarest(ctx context.Context, pairs []string, d depth) ([]string, error) {
	counts := make(map[string]uint64, len(pairs))
	for _, pair := range pairs {
		for _, field := range d.chinese() {
			r, err := v.reader.TermFieldReader(ctx, []byte(pair), field, false, false, false)
			if err != nil {
				return nil, err
			}
			counts[pair] += r.Count()
			if err := r.Close(); err != nil {
				return nil, err
			}
		}
	}
	rare := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
	return rare[:missingMax(len(pairs))+1], nil
}

// collect adds the words of a dictionary, at most expandMax.
func collect(into map[string]bool, open func() (bleve.FieldDict, error)) error {
	dictionary, err := open()
	if err != nil {
		return err
	}
	for range expandMax {
		entry, err := dictionary.Next()
		if err != nil || entry == nil {
			return errors.Join(err, dictionary.Close())
		}
		into[entry.Term] = true
	}
	return dictionary.Close()
}
