package importer

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/catalog/eventfile"
)

var update = flag.Bool("update", false, "write golden files")

func sample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := string(sample(t, name)); got != want {
		t.Errorf("%s differs (go test -update writes it); got\n%s", path, got)
	}
}

func convert(t testing.TB, data []byte, o Options) Result {
	t.Helper()
	r, err := Convert(data, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Our own samples have every oddity of the real files; the golden files are what becomes of them, whole.
func TestSamples(t *testing.T) {
	for name, format := range map[string]Format{"programmes.json": Programmes, "event.jsonld": JSONLD, "discovery.json": Discovery} {
		for variant, o := range map[string]Options{"": {}, ".answered": {Zone: "Europe/Berlin", Country: "DE", City: "Hamburg", Currency: "EUR", Plan: "hall.json", Language: "en"}} {
			if name == "programmes.json" && o.Zone != "" {
				o.Zone, o.Country, o.City = "Asia/Shanghai", "CN", "上海"
			}
			r := convert(t, sample(t, name), o)
			if r.Format != format {
				t.Errorf("%s is %s", name, r.Format)
			}
			var b strings.Builder
			for _, note := range r.Notes {
				fmt.Fprintf(&b, "note: %s\n", note)
			}
			for _, s := range r.Skipped {
				fmt.Fprintf(&b, "skipped: %s %s\n", s.Path, s.Why)
			}
			for _, f := range files(t, r) {
				fmt.Fprintf(&b, "\n==== %s\n%s", f.Name, f.Data)
			}
			golden(t, name+variant+".golden", b.String())
		}
	}
}

// files are the files of a result, each checked: one without questions is good, one with questions is refused with each
// of them.
func files(t testing.TB, r Result) []File {
	t.Helper()
	all, err := r.Files()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range all {
		if names[f.Name] {
			t.Errorf("%s is there twice", f.Name)
		}
		names[f.Name] = true
		_, err := eventfile.Parse(f.Data)
		if len(f.Questions) == 0 {
			if err != nil {
				t.Errorf("%s has no questions, and %v\n%s", f.Name, err, f.Data)
			}
			continue
		}
		var refused *catalog.RefusedError
		if !errors.As(err, &refused) {
			t.Fatalf("%s has questions and is not refused (%v)\n%s", f.Name, err, f.Data)
		}
		for i := range min(len(f.Questions), 100) { // so many problems a report lists
			key := fmt.Sprintf("questions[%d]", i)
			if !slices.ContainsFunc(refused.Problems, func(p catalog.Problem) bool { return p.Key == key }) {
				t.Errorf("%s is not refused for question %d (%+v): %v\n%s", f.Name, i, f.Questions[i], err, f.Data)
			}
		}
	}
	return all
}

func TestAnsweredProgrammeBecomesEvents(t *testing.T) {
	r := convert(t, sample(t, "programmes.json"), Options{Zone: "Asia/Shanghai", Country: "CN", City: "上海", Plan: strings.Repeat("a", 64)})
	f := files(t, r)[0]
	if len(f.Questions) != 0 {
		t.Fatalf("%+v", f.Questions)
	}
	file, err := eventfile.Parse(f.Data)
	if err != nil {
		t.Fatal(err)
	}
	in := file.Import("")
	e := in.Events[0]
	if in.Show.Title != "林晚风「星河入梦」音乐会" || in.Show.Key != "programme-7" || len(in.Events) != 2 || !slices.Equal(e.Performers, []string{"林晚风"}) {
		t.Errorf("%+v", in.Show)
	}
	if want := time.Date(2027, 5, 1, 11, 30, 0, 0, time.UTC); !e.Starts.Equal(want) || e.State != catalog.Draft {
		t.Errorf("starts %s, is %s", e.Starts, e.State)
	}
	if e.Tiers[1].Face != 68050 || e.Currency != "CNY" || e.Limits.Event != 6 || e.SeatsPerHoldMax != 4 || e.Quotas[0].Max != 500 {
		t.Errorf("%+v", e)
	}
}

func TestAnsweringTheQuestionsMakesAGoodFile(t *testing.T) {
	r := convert(t, sample(t, "event.jsonld"), Options{})
	text := string(files(t, r)[0].Data)
	begin, end := strings.Index(text, "# Answer each"), strings.Index(text, "venue:\n")
	text = text[:begin] + text[end:]
	text = strings.Replace(text, "zone: # ?", "zone: Europe/Berlin", 1)
	text = strings.Replace(text, "plan: # ?", "plan: hall.json", 1)
	file, err := eventfile.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	e := file.Import("").Events[0]
	if !e.Starts.Equal(time.Date(2027, 10, 30, 18, 0, 0, 0, time.UTC)) || !e.Doors.Equal(e.Starts.Add(-time.Hour)) || e.Tiers[1].Face != 3900 {
		t.Errorf("%+v", e)
	}
}

func TestNothingOfPersonsIsTaken(t *testing.T) {
	for _, f := range files(t, convert(t, sample(t, "event.jsonld"), Options{})) {
		if strings.Contains(string(f.Data), "SECRET") {
			t.Errorf("%s names who has reserved:\n%s", f.Name, f.Data)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		o    Options
		want string
	}{
		"not JSON":       {"<html>", Options{}, "not JSON"},
		"empty":          {"", Options{}, "not JSON"},
		"two values":     {"{} {}", Options{}, "more than one"},
		"something else": {`{"a": 1}`, Options{}, "say which it is"},
		"a number":       {`7`, Options{}, "say which it is"},
		"zone":           {`[]`, Options{Zone: "Berlin"}, "IANA zone"},
		"format":         {`[]`, Options{Format: "ics"}, "is not a format"},
		"too long":       {strings.Repeat(" ", DataBytesMax+1), Options{}, "split it"},
	} {
		if _, err := Convert([]byte(c.data), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTooManyEventsAreSaid(t *testing.T) {
	data := "[" + strings.TrimSuffix(strings.Repeat(`{"title":"x","show_times":[]},`, DraftsMax+3), ",") + "]"
	r := convert(t, []byte(data), Options{})
	if len(r.Drafts) != DraftsMax || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "left out") {
		t.Errorf("%d drafts, %v", len(r.Drafts), r.Notes)
	}
	many := `[{"title":"x","show_times":[` + strings.TrimSuffix(strings.Repeat(`"2027-01-01 20:00:00",`, catalog.EventsPerImportMax+1), ",") + `]}]`
	r = convert(t, []byte(many), Options{Zone: "Asia/Shanghai"})
	if d := r.Drafts[0]; len(d.Performances) != catalog.EventsPerImportMax || len(d.Questions) > questionsMax+20 || !d.asked("performances") {
		t.Errorf("%d performances, %d questions", len(d.Performances), len(d.Questions))
	}
	prices := `[{"title":"x","show_times":["2027-01-01 20:00:00"],"tiers":[` + strings.TrimSuffix(strings.Repeat(`{"name":"","price_yuan":"x","total":0},`, 10*questionsMax), ",") + `]}]`
	r = convert(t, []byte(prices), Options{Zone: "Asia/Shanghai"})
	if d := r.Drafts[0]; len(d.Tiers) != catalog.TiersMax || len(d.Questions) != 6+3*catalog.TiersMax && len(d.Questions) != questionsMax+1 || !d.asked("tiers") {
		t.Errorf("%d tiers, %d questions", len(d.Tiers), len(d.Questions))
	}
	files(t, r)
	deep := strings.Repeat(`{"@type":"Thing","event":`, 500) + `{"@type":"Event"}` + strings.Repeat("}", 500)
	if r = convert(t, []byte(deep), Options{}); len(r.Drafts) != 0 || len(r.Skipped) != 1 {
		t.Errorf("deep: %+v", r)
	}
}

// TestReal converts the files that people who do this job wrote: each part of each is imported or asked about. The golden
// file has counts only.
func TestReal(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{"damai-programmes", "discovery-docs-get-event", "discovery-docs-get-venue", "discovery-docs-search-events", "discovery-docs-search-venues", "event-jsonld-examples"} {
		data := realFile(t, "events/"+name+".json")
		variants := map[string]string{}
		for variant, o := range map[string]Options{"as it is": {}, "with answers": {Zone: "Asia/Shanghai", Country: "CN", City: "北京", Currency: "USD", Plan: "hall.json", Language: "en"}} {
			if strings.HasPrefix(name, "damai") != (o.Country == "CN") && o.Country != "" {
				o.Zone, o.Country, o.City = "America/Denver", "US", "Denver"
			}
			r := convert(t, data, o)
			ready, fields := 0, map[string]int{}
			for _, f := range files(t, r) {
				if len(f.Questions) == 0 {
					ready++
				}
				for _, q := range f.Questions {
					fields[numbers.ReplaceAllString(q.Field, "[]")]++
				}
			}
			covered(t, name, data, r)
			if variant == "as it is" {
				fmt.Fprintf(&b, "%s: %s\n", name, r.Format)
			}
			variants[variant] = fmt.Sprintf("  %s: %d drafts, %d of them without questions, %d skipped, %d questions\n    %s\n", variant, len(r.Drafts), ready, len(r.Skipped), r.Questions(), counts(fields))
		}
		b.WriteString(variants["as it is"] + variants["with answers"])
	}
	golden(t, "real.golden", b.String())
}

func counts(fields map[string]int) string {
	var all []string
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, fmt.Sprintf("%s %d", field, fields[field]))
	}
	return strings.Join(all, ", ")
}

// covered checks that each part of a list became a draft or was skipped.
func covered(t *testing.T, name string, data []byte, r Result) {
	t.Helper()
	value, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	parts, _ := value.([]any)
	for i := range parts {
		path := fmt.Sprintf("[%d]", i)
		is := func(p string) bool {
			return p == path || strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[")
		}
		if !slices.ContainsFunc(r.Drafts, func(d Draft) bool { return is(d.Path) }) && !slices.ContainsFunc(r.Skipped, func(s Skipped) bool { return is(s.Path) }) {
			t.Errorf("%s: nothing is said of part %d", name, i)
		}
	}
	if want := map[string]int{"damai-programmes": 49, "event-jsonld-examples": 39}[name]; want != 0 && len(parts) != want {
		t.Errorf("%s has %d parts, want %d", name, len(parts), want)
	}
}
