package search

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

func TestFinds(t *testing.T) {
	w := newWorld(t, Options{}, sample(t)...)
	for _, c := range []struct {
		query string
		want  string // keys in order
	}{
		// Chinese.
		{"林晚风", "wei"},
		{"音乐会", "wei"},
		{"演唱会", "tour-sz tour-bj jj"},
		{"舞", "ballet roman"}, // one character
		{"芭", "ballet"},
		{"《雨夜来客》", "play"},
		{"雨夜来客", "play"},
		{"林晚风「星河入梦」", "wei"},
		{"林晚风星河入梦音乐会", "wei"},            // without what stands between
		{"“四海潮生·虎年”", "tour-sz tour-bj"}, // quotes and the dot ignored
		{"四海潮生虎年", "tour-sz tour-bj"},
		{"许青禾北京", "tour-bj"}, // two things without a blank between them
		{"林晚风演唱会", ""},       // but not when most of it is missing
		{"北京 演唱会", "tour-bj jj"},
		{"林晚 风", "wei"},
		{"鸟巢", "jj"},
		{"交响乐", "ballet"}, // the organizer's own words
		{"赵一鸣", "play"},
		{"方远JJ30", "jj"},
		{"方远 jj", "jj"},
		{"ＪＪ３０", "jj"}, // full-width
		{"live", "roman oasis-2 oasis tour-sz"},
		{"冰原Ⅱ", "roman"},
		{"冰原II", "roman"},
		{"mao house上海", "roman"},
		// English.
		{"oasis", "oasis-2 oasis tribute"}, // in the title, before the one that only mentions it
		{"ＯＡＳＩＳ", "oasis-2 oasis tribute"},
		{"oasis wembley", "oasis tribute"},
		{"Wembley OASIS", "oasis tribute"},
		{"oasis at the wembley", "oasis tribute"}, // titles leave such words out
		{"oasis wembly", "oasis tribute"},         // a letter missing
		{"oasis wmebley", "oasis tribute"},        // two letters swapped
		{"oasiss", "oasis-2 oasis tribute"},
		{"oase", ""}, // too short for a typo
		{"wemb", "tribute oasis"},
		{"we", ""}, // too short for a beginning
		{"beyonce", "bey"},
		{"BEYONCÉ", "bey"},
		{"beyonce\u0301", "bey"},
		{"oa\u00adsis wem\u200bbley", "oasis tribute"}, // what nobody sees
		{"林\U000E0100晚风", "wei"},
		{"munchen", "metal"},
		{"münchen", "metal"},
		{"motorhead", "metal"},
		{"ac/dc", "metal"},
		{"acdc", "metal"},
		{"ac dc", "metal"},
		{"bb prince", "blues"},
		{"B.B. Prince", "blues"},
		{"lupos", "blues"},
		{"lupo’s hotel", "blues"},
		{"saint denis", "bey"},
		{"the", "tribute"}, // alone, such a word counts
		// Nothing.
		{"secret", ""}, {"cancelled", ""}, {"《》", ""}, {"·", ""}, {"zzz", ""}, {"oasis 林晚风", ""},
	} {
		if got := strings.Join(w.find(catalog.Query{Text: c.query}), " "); got != c.want {
			t.Errorf("%s: found %q, want %q", c.query, got, c.want)
		}
	}
}

func TestRanking(t *testing.T) {
	at := start.AddDate(0, 1, 0)
	named := listing("named", "Aurora", at.Add(9*time.Hour))
	longer := listing("longer", "Aurora and Friends", at.Add(8*time.Hour))
	performed := listing("performed", "Summer Tour", at.Add(7*time.Hour))
	performed.Event.Performers = []string{"The Aurora Band"}
	placed := listing("placed", "Spring", at.Add(6*time.Hour))
	placed.Event.Venue.Name = "Aurora Hall"
	begun := listing("begun", "Auroras of the North", at.Add(5*time.Hour))
	mistyped := listing("mistyped", "Aurola", at.Add(4*time.Hour))
	mentioned := listing("mentioned", "Winter", at.Add(3*time.Hour))
	mentioned.Show.Description = "For those who have seen an aurora."
	w := newWorld(t, Options{}, mistyped, named, longer, placed, performed, begun, mentioned)
	want := []string{"named", "performed", "longer", "placed", "begun", "mistyped", "mentioned"}
	if got := w.find(catalog.Query{Text: "aurora"}); !slices.Equal(got, want) {
		t.Errorf("ranked %v, want %v", got, want)
	}
	if got := w.find(catalog.Query{}); !slices.Equal(got, []string{"mentioned", "mistyped", "begun", "placed", "performed", "longer", "named"}) {
		t.Errorf("without words by date, and not %v", got)
	}
}

func TestFilters(t *testing.T) {
	w := newWorld(t, Options{}, sample(t)...)
	day := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for name, c := range map[string]struct {
		q    catalog.Query
		want string
	}{
		"city":              {catalog.Query{Text: "oasis", City: "london"}, "oasis tribute"},
		"city, accents":     {catalog.Query{City: "munchen"}, "metal"},
		"city, full-width":  {catalog.Query{Text: "oasis", City: "ＬＯＮＤＯＮ"}, "oasis tribute"},
		"Chinese city":      {catalog.Query{Text: "演唱会", City: "深圳"}, "tour-sz"},
		"no part of a city": {catalog.Query{City: "lond"}, ""},
		"from":              {catalog.Query{Text: "oasis", From: day("2027-07-11T17:00:00Z")}, "oasis-2 oasis"},
		"after that":        {catalog.Query{Text: "oasis", From: day("2027-07-11T17:00:00.001Z")}, "oasis"},
		"to":                {catalog.Query{Text: "oasis", To: day("2027-07-25T17:00:00Z")}, "oasis-2 tribute"},
		"both":              {catalog.Query{From: day("2027-05-04T00:00:00Z"), To: day("2027-05-06T00:00:00Z")}, "play ballet"},
		"organizer":         {catalog.Query{Text: "oasis", Organizer: 2}, ""},
		"its organizer":     {catalog.Query{Text: "oasis", Organizer: 1}, "oasis-2 oasis tribute"},
	} {
		if got := strings.Join(w.find(c.q), " "); got != c.want {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

func TestAvailability(t *testing.T) {
	at := start.AddDate(0, 1, 0)
	var all []catalog.Listing
	add := func(key string, edit func(*catalog.Event)) id.ID {
		l := listing(key, "Show "+key, at.Add(time.Duration(len(all))*time.Hour))
		edit(&l.Event)
		all = append(all, l)
		return l.Event.ID
	}
	add("open", func(*catalog.Event) {})
	soldOut := add("soldout", func(*catalog.Event) {})
	stopped := add("stopped", func(*catalog.Event) {})
	left := add("left", func(*catalog.Event) {})
	add("paused", func(e *catalog.Event) { e.State = catalog.Paused })
	add("later", func(e *catalog.Event) { e.SaleOpens = start.Add(time.Hour) })
	add("over", func(e *catalog.Event) { e.SaleCloses = start })
	w := newWorld(t, Options{Left: func(event id.ID) (ledger.EventState, int, bool) {
		switch event {
		case soldOut:
			return ledger.OnSale, 0, true
		case stopped:
			return ledger.Stopped, 9, true
		case left:
			return ledger.OnSale, 1, true
		}
		return 0, 0, false
	}}, all...)
	for asked, want := range map[catalog.Availability]string{
		catalog.AnyAvailability: "open soldout stopped left paused later over",
		catalog.SellingNow:      "open soldout left",
		catalog.Available:       "open left",
	} {
		for _, text := range []string{"", "show"} {
			if got := strings.Join(w.find(catalog.Query{Text: text, Availability: asked, Max: 2}), " "); got != want {
				t.Errorf("%q, %q: found %q, want %q", asked, text, got, want)
			}
		}
	}
	w.clock.add(time.Hour) // it opens while nobody changes it
	if got := strings.Join(w.find(catalog.Query{Availability: catalog.SellingNow}), " "); got != "open soldout left later" {
		t.Errorf("an hour later %q", got)
	}
}

func TestTooMuch(t *testing.T) {
	w := newWorld(t, Options{}, sample(t)...)
	for name, c := range map[string]struct {
		q     catalog.Query
		field string
	}{
		"length":             {catalog.Query{Text: strings.Repeat("a", QueryRunesMax+1)}, "query"},
		"words":              {catalog.Query{Text: "b 甲 c 乙 d 丙 e 丁 f 戊 g 己 h 庚 i 辛 j 壬 k 癸 l 子 m 丑 n"}, "query"},
		"another's cursor":   {catalog.Query{Text: "oasis", After: catalog.Cursor{Rank: 3, Words: 5, Event: 1}}, "cursor"},
		"a list's cursor":    {catalog.Query{Text: "oasis", After: catalog.Cursor{Event: 1, Starts: start}}, "cursor"},
		"a search's, listed": {catalog.Query{After: catalog.Cursor{Rank: 3, Words: 5, Event: 1}}, "cursor"},
	} {
		_, err := w.Search(t.Context(), c.q)
		if f := fault.Of(err); f.Code != fault.Invalid || f.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	// At the bounds it works.
	w.find(catalog.Query{Text: strings.Repeat("甲乙丙丁", QueryRunesMax/4)})
	w.find(catalog.Query{Text: strings.Repeat("甲", QueryRunesMax)})
	p, err := w.Search(t.Context(), catalog.Query{Max: catalog.QueryMax + 1})
	if err != nil || len(p.Events) > catalog.QueryDefault {
		t.Errorf("%d events, %v", len(p.Events), err)
	}
}

func TestBusyUntilRead(t *testing.T) {
	s := newStore()
	s.put(sample(t)...)
	s.fail(errors.New("away"))
	x, err := New(Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	busy := func(when string) {
		t.Helper()
		_, err := x.Search(t.Context(), catalog.Query{Text: "oasis"})
		if f := fault.Of(err); f.Code != fault.Busy || f.RetryAfter == 0 {
			t.Errorf("%s: %v", when, err)
		}
	}
	busy("before")
	if _, err := x.Sync(t.Context()); err == nil {
		t.Error("the store was away")
	}
	busy("after a failed read")
	s.fail(nil)
	if n, err := x.Sync(t.Context()); err != nil || n != 13 || x.Count() != 13 {
		t.Errorf("%d read, %d there, %v", n, x.Count(), err)
	}
	s.fail(errors.New("away"))
	if _, err := x.Sync(t.Context()); err == nil {
		t.Error("the store was away")
	}
	if p, err := x.Search(t.Context(), catalog.Query{Text: "oasis"}); err != nil || len(p.Events) != 3 {
		t.Errorf("with the store away again: %v, %v", p, err)
	}
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		t.Error(err)
	}
	busy("closed")
	if _, err := x.Sync(t.Context()); err == nil {
		t.Error("a closed index was synced")
	}
}

func TestCancelledSearchEnds(t *testing.T) {
	w := newWorld(t, Options{}, sample(t)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Search(ctx, catalog.Query{Text: "oasis"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
