package eventfile

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onsale/internal/catalog"
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

func TestSamplesAreReadAsTheGoldenFilesSay(t *testing.T) {
	for _, name := range []string{"aurora.yaml", "rules.yaml", "room.yaml", "tabs.json"} {
		t.Run(name, func(t *testing.T) {
			file, err := Parse(sample(t, name))
			if err != nil {
				t.Fatal(err)
			}
			hash, ok := file.PlanHash()
			if ok != (name == "tabs.json") {
				t.Errorf("plan %q is a hash: %v", hash, ok)
			}
			got, err := json.MarshalIndent(file.Import(strings.Repeat("0", 64)), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := strings.TrimSpace(string(sample(t, name+".golden"))); string(got) != want {
				t.Errorf("%s differs (go test -update writes it); got\n%s", golden, got)
			}
		})
	}
}

// change is the sample with one piece of text replaced.
func change(t testing.TB, old, replacement string) []byte {
	t.Helper()
	text := string(sample(t, "aurora.yaml"))
	if strings.Count(text, old) < 1 {
		t.Fatalf("the sample has no %q", old)
	}
	return []byte(strings.Replace(text, old, replacement, 1))
}

func TestWhatIsWrongIsSaidWithLineKeyAndMend(t *testing.T) {
	cases := []struct{ name, old, new, want string }{
		{"unknown key", "hold_ttl: 10m", "hold_tll: 10m", "line 30: hold_tll: is not a known key here; known are currency, "},
		{"unknown key of a performance", `    state: draft`, `    status: draft`, "performances[2].status: is not a known key here"},
		{"unknown category key", "{ category: premium, name", "{ categorie: premium, name", "line 20: tiers[0].category: is missing"},
		{"key twice", "extend_max: 1", "extend_max: 1\nextend_max: 2", "extend_max: is there twice"},
		{"too many decimals", "face: 129.00", "face: 129.005", `tiers[0].face: "129.005" has more decimals than EUR, which has 2`},
		{"negative money", "face: 129.00", "face: -129", `"-129" must be an amount of EUR such as 49.05`},
		{"money with comma", "face: 129.00", `face: "129,00"`, `"129,00" must be an amount`},
		{"exponent", "face: 129.00", "face: 1e9", `"1e9" must be an amount`},
		{"decimals of yen", "currency: EUR", "currency: JPY", `"6.50" has more decimals than JPY, which has 0`},
		{"unknown currency", "currency: EUR", "currency: EUX", `currency: "EUX" is not a currency`},
		{"missing starts", "    starts: 2027-06-12T20:00\n", "", "performances[0].starts: is missing"},
		{"F3 twice", "starts: 2027-06-12T20:00", "starts: 2027-10-31T02:30",
			"2027-10-31T02:30 exists twice in Europe/Berlin, where clocks change: write 2027-10-31T02:30:00+02:00 or 2027-10-31T02:30:00+01:00"},
		{"F3 never", "opens: 2027-03-01T10:00", "opens: 2027-03-28T02:30",
			"2027-03-28T02:30 does not exist in Europe/Berlin, where clocks change: write 2027-03-28T01:30:00+01:00 or 2027-03-28T03:30:00+02:00"},
		{"no time", "starts: 2027-06-12T20:00", "starts: tomorrow", `"tomorrow" is not a time: write`},
		{"zone", "zone: Europe/Berlin", "zone: Berlin", `venue.zone: "Berlin" is not an IANA zone`},
		{"zone of the machine", "zone: Europe/Berlin", "zone: Local", `a zone is needed`},
		{"state", "state: draft", "state: on_sale", "must be draft or scheduled"},
		{"limit", "  event: 4", "  event: four", `limits.event: "four" must be a whole number`},
		{"duration", "hold_ttl: 10m", "hold_ttl: 10", `hold_ttl: "10" must be a length of time, such as 90s`},
		{"duration out of bounds", "hold_ttl: 10m", "hold_ttl: 1s", `hold_ttl: 1s is not between 5s and 24h0m0s`},
		{"tax", "tax_percent: 7\n", "tax_percent: 7.125\n", "must be a percentage"},
		{"lost tax", `      - { category: standard, face: "39", fee: "0" }` + "\n", "", "changes nothing without tiers beside it"},
		{"tier twice", "category: standard, name", "category: premium, name", `tiers[1].category: "premium" has two tiers`},
		{"orphans", "mode: warn", "mode: maybe", `orphans.mode: "maybe" must be off, warn or refuse`},
		{"window", "sale: { opens: 2027-03-02T10:00", "sale: { opens: 2027-07-02T10:00", "performances[1].sale.closes: must be after sale.opens"},
		{"steps", "at: 2027-05-01T10:00", "at: soon", "quotas[0].steps[0].at"},
		{"a rule without an end", "extend_max: 1", "refunds: { fee_percent: 10 }", "refunds.until: is missing: until when?"},
		{"a rule with two ends", "extend_max: 1", "transfers: { until: 2027-06-01T10:00, until_before: 3h }", "transfers.until: and until_before say the same"},
		{"a rule that ends after the start", "extend_max: 1", "exchanges: { until: 2027-09-01T10:00 }", "performances[0].exchanges.until: must not be after starts"},
		{"more than all is kept", "extend_max: 1", "refunds: { until_before: 3h, fee_percent: 101 }", "refunds.fee_percent"},
		{"a gate twice", "extend_max: 1", "gates: [{ key: a }, { key: a }]", `gates[1].key: "a" is there twice`},
		{"alias", "{ category: standing, name: Standing", "*x", "alias"},
		{"format", "format: 1", "format: 2", "use a newer program"},
		{"question", "currency: EUR", "currency: EUR\nquestions:\n  - { field: venue.zone, ask: \"Which zone?\", options: [Europe/Berlin, Europe/Paris] }",
			"line 18: questions[0]: venue.zone: Which zone? (Europe/Berlin, Europe/Paris) Answer it there, then take this question out"},
		{"question without words", "currency: EUR", "currency: EUR\nquestions: [{}]", "questions[0].ask: is missing"},
		{"performers", "performers: [Aurora Ensemble, 韦礼安]", "performers: Aurora", `show.performers: must be a list, and is "Aurora"`},
		{"performer", "performers: [Aurora Ensemble, 韦礼安]", "performers: [[Aurora]]", "show.performers[0]: must be a name, and is a list"},
		{"empty performer", "performers: [Aurora Ensemble, 韦礼安]", `performers: ["", x]`, "show.performers[0]: is empty"},
		{"two documents", "performances:", "---\nperformances:", "more than one document"},
		{"list for a group", "venue:\n", "venue: []\nvenu:\n", "venue: must have keys and values, and is a list"},
		{"syntax", "show:", "show: [", "line "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(change(t, c.old, c.new))
			if err == nil {
				t.Fatal("it was accepted")
			}
			var refused *catalog.RefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("%T: %v", err, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				if c.name == "alias" { // YAML itself refuses an alias without its anchor
					return
				}
				t.Errorf("got\n%v\nwant %q in it", err, c.want)
			}
		})
	}
}

func TestAllProblemsComeAtOnce(t *testing.T) {
	text := string(sample(t, "aurora.yaml"))
	for old, replacement := range map[string]string{
		"face: 129.00": "face: x", "face: 79.00": "face: y", "hold_ttl: 10m": "hold_ttl: z", "country: DE": "country: DE\n  colour: blue",
	} {
		text = strings.Replace(text, old, replacement, 1)
	}
	_, err := Parse([]byte(text))
	var refused *catalog.RefusedError
	if !errors.As(err, &refused) || len(refused.Problems) != 4 {
		t.Fatalf("want 4 problems, got %v", err)
	}
}

func TestJSON(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key": {strings.Replace(string(sample(t, "tabs.json")), `"currency"`, `"curency"`, 1), "line 4: curency: is not a known key"},
		"twice":       {`{"format": 1, "format": 1}`, "format: is there twice"},
		"trailing":    {`{"format": 1} x`, "line 1"},
		"cut":         {`{"format": 1`, "line 1"},
		"deep":        {`{"a":` + strings.Repeat("[", 100_000), "deeper than 16"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestHostileFilesAreRefused(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ",") + "]\n"
	}
	for name, text := range map[string]string{
		"empty":       "",
		"only spaces": " \n\n",
		"a list":      "- a\n- b\n",
		"a word":      "hello",
		"too large":   strings.Repeat("#", FileBytesMax+1),
		"deep":        strings.Repeat("[", 200_000),
		"aliases":     bomb,
		"merge":       "<<: {format: 1}\n",
		"no utf-8":    "format: \xff\xfe\n",
		"many keys":   strings.Repeat("? [a]\n", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(text))
			if err == nil {
				t.Fatal("it was accepted")
			}
			if n := len(err.Error()); n > 100_000 {
				t.Errorf("the error has %d bytes", n)
			}
		})
	}
}

func TestMoney(t *testing.T) {
	for _, c := range []struct {
		text, currency string
		minor          int64
	}{{"129", "EUR", 12900}, {"129.5", "EUR", 12950}, {"0", "EUR", 0}, {"12000", "JPY", 12000}, {"1.234", "KWD", 1234}, {"88.00", "CNY", 8800}, {"12000.00", "JPY", 12000}} {
		if minor, err := parseMoney(c.text, c.currency); err != nil || minor != c.minor {
			t.Errorf("%s %s: %d, %v; want %d", c.text, c.currency, minor, err, c.minor)
		}
	}
	for text, bp := range map[string]int64{"7": 700, "19.6": 1960, "5.25": 525, "0": 0, "100": 10000, "7 %": 700, "7.50": 750} {
		if got, err := parsePercent(text); err != nil || got != bp {
			t.Errorf("%s: %d, %v; want %d", text, got, err, bp)
		}
	}
	for _, text := range []string{"", "%", "-1", "101", "7.125", "x", "7,5", ".5.5"} {
		if got, err := parsePercent(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func FuzzEventFile(f *testing.F) {
	f.Add(sample(f, "aurora.yaml"))
	f.Add(sample(f, "tabs.json"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("{\"performances\":[{\"starts\":\"2027-03-28T02:30\"}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			var refused *catalog.RefusedError
			if !errors.As(err, &refused) || len(refused.Problems) == 0 {
				t.Fatalf("an error without a problem: %#v", err)
			}
			return
		}
		// What was accepted is valid, and survives the way into the database and back.
		in := file.Import(strings.Repeat("a", 64))
		var r catalog.Report
		for _, e := range in.Events {
			e.Validate(&r, "")
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var back catalog.Event
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if again, _ := json.Marshal(back); string(again) != string(text) {
				t.Fatalf("%s\nbecame\n%s", text, again)
			}
		}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
	})
}
