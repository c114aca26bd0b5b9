package search

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"onsale/internal/catalog"
)

// realFile reads one of the files that people who do this job wrote. They are not part of the project: they lie in
// shared/real beside it, or where ONSALE_REAL_DATA says.
func realFile(t *testing.T, name string) []byte {
	t.Helper()
	folder := os.Getenv("ONSALE_REAL_DATA")
	for dir := "."; folder == ""; dir = filepath.Join(dir, "..") {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			folder = filepath.Join(dir, "..", "shared", "real")
		} else if len(dir) > 60 {
			t.Fatal("no go.mod above the test")
		}
	}
	data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if os.IsNotExist(err) {
		t.Skipf("%s is not there; put the real files into ../shared/real or name their folder in ONSALE_REAL_DATA", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRealProgrammes searches the real programme list. Keys are the numbers that programmes have there.
func TestRealProgrammes(t *testing.T) {
	var rows []struct {
		ID                  int
		Title, Actor, Place string
		ShowTimes           []string `json:"show_times"`
	}
	if err := json.Unmarshal(realFile(t, "events/damai-programmes.json"), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 49 {
		t.Fatalf("%d programmes", len(rows))
	}
	zone, err := catalog.LoadZone("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	var all []catalog.Listing
	for _, r := range rows {
		starts, err := catalog.ParseTime(r.ShowTimes[0], zone)
		if err != nil {
			t.Fatal(err)
		}
		l := listing(strconv.Itoa(r.ID), r.Title, starts)
		l.Event.Venue.Name, l.Event.Venue.City = r.Place, "北京"
		if r.Actor != "" {
			l.Event.Performers = strings.Split(r.Actor, "&")
		}
		all = append(all, l)
	}
	w := newWorld(t, Options{}, all...)
	for query, want := range map[string]string{
		"韦礼安":              "2",
		"韦礼安音乐会":           "2",
		"韦礼安 「一直都在」":       "2",
		"音乐会":              "2",
		"李荣浩":              "22 24 26 28 30",
		"李荣浩 MAO":          "30",
		"“纵横四海·龙年”":        "22 24 26 28 30",
		"纵横四海龙年":           "22 24 26 28 30",
		"《李白》":             "17",
		"唐旭":               "7",
		"话剧":               "7 5",
		"鸟巢":               "38 32",
		"beyond":           "14",
		"ＢＥＹＯＮＤ":           "14",
		"mao livehouse":    "12 14 4 20",
		"mao livehose":     "12 14 4 20",
		"maolivehouse":     "30", // written as one word there
		"jj20":             "32",
		"jj":               "32",
		"gloria":           "38",
		"i am gloria":      "38",
		"omni space":       "6",
		"天鹅湖":              "15",
		"芭":                "15",
		"乒":                "21",
		"邓紫棋演唱会":           "38",
		"没有的节目":            "",
		"livehouse heaven": "",
	} {
		got := w.find(catalog.Query{Text: query})
		if strings.Join(got, " ") != want {
			t.Errorf("%s: found %v, want %s", query, got, want)
		}
	}
	// Each is found by its whole title, before all that are called otherwise, and by its performers.
	for _, l := range all {
		got := w.find(catalog.Query{Text: l.Event.Title})
		at := slices.Index(got, l.Event.Key)
		if at < 0 || slices.ContainsFunc(got[:at], func(key string) bool {
			return all[slices.IndexFunc(all, func(x catalog.Listing) bool { return x.Event.Key == key })].Event.Title != l.Event.Title
		}) {
			t.Errorf("programme %s comes as number %d of what its title finds", l.Event.Key, at)
		}
		for _, name := range l.Event.Performers {
			if !slices.Contains(w.find(catalog.Query{Text: name}), l.Event.Key) {
				t.Errorf("programme %s is not found by its performer", l.Event.Key)
			}
		}
	}
}
