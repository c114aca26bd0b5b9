package search

import (
	"testing"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/fold"
)

// Whatever is asked, the answer is a list without doubles or a clear refusal; pages of any size have the same events.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{"oasis wembley", "林晚风", "《》", "ac/dc", "ＪＪ３０", "a.b.c-d/e&f", "e\u0301", "北京 演唱会 live", "\xff", "ー々〆", "한국 か\u3099", "ǽ"} {
		f.Add(query, 1)
	}
	w := newWorld(f, Options{}, sample(f)...)
	f.Fuzz(func(t *testing.T, query string, most int) {
		if folded := fold.Text(query); fold.Text(folded) != folded {
			t.Errorf("%q folds to %q and then to %q", query, folded, fold.Text(folded))
		}
		if most < 1 || most > 5 {
			most = 3
		}
		all, err := w.Search(t.Context(), catalog.Query{Text: query, Max: catalog.QueryMax})
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatalf("%q: %v", query, err)
			}
			return
		}
		var paged []catalog.Event
		for q := (catalog.Query{Text: query, Max: most}); ; {
			p, err := w.Search(t.Context(), q)
			if err != nil {
				t.Fatalf("%q: %v", query, err)
			}
			paged = append(paged, p.Events...)
			if q.After = p.Next; p.Next == (catalog.Cursor{}) {
				break
			}
		}
		if len(paged) != len(all.Events) {
			t.Fatalf("%q: %d events at once, %d in pages", query, len(all.Events), len(paged))
		}
		for i := range paged {
			if paged[i].ID != all.Events[i].ID {
				t.Fatalf("%q: event %d differs", query, i)
			}
		}
	})
}
