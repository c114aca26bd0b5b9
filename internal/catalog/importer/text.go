package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"onsale/internal/catalog"
)

// str is a plain value as text: "" where there is none.
func str(v any) string {
	switch v := v.(type) {
	case string:
		return line(v)
	case json.Number:
		return v.String()
	}
	return ""
}

// line is a text without control characters and blanks at its ends.
func line(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\ufffd"))
	return strings.TrimFunc(text, func(c rune) bool { return unicode.IsSpace(c) || c == '\u200b' || c == '\ufeff' })
}

var tags = regexp.MustCompile(`<[/A-Za-z!][^<>]*>`)

// prose is a longer text: HTML becomes plain text, lines stay.
func prose(text string) string {
	text = html.UnescapeString(tags.ReplaceAllString(text, " "))
	var lines []string
	for one := range strings.Lines(text) {
		if one = line(one); one != "" || len(lines) > 0 {
			lines = append(lines, one)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// list is what stands under a key, one or many, as many.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// atMost are prices, so many as an event has; what is more is asked for.
func (d *Draft) atMost(path string, prices []any) []any {
	if len(prices) > catalog.TiersMax {
		d.ask(path, "tiers", fmt.Sprintf("There are %d prices, and an event has at most %d: which are to be left? Only the first are here.", len(prices), catalog.TiersMax))
		return prices[:catalog.TiersMax]
	}
	return prices
}

// object is a value as an object; an empty one where it is none.
func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

// at is the value at the end of a path of keys.
func at(v any, keys ...string) any {
	for _, key := range keys {
		v = object(v)[key]
	}
	return v
}

// clean bounds the texts of a draft; what is too long is asked for.
func (c *converter) clean(d *Draft) {
	for _, t := range []struct {
		field string
		text  *string
		most  int
	}{
		{"show.title", &d.Show.Title, catalog.NameRunesMax}, {"show.description", &d.Show.Description, catalog.TextRunesMax},
		{"venue.name", &d.Venue.Name, catalog.NameRunesMax}, {"venue.city", &d.Venue.City, catalog.NameRunesMax},
	} {
		if n := utf8.RuneCountInString(*t.text); n > t.most {
			d.ask(d.Path, t.field, fmt.Sprintf("It has %d characters, and at most %d are possible: what is to be left? It is cut here.", n, t.most))
			*t.text = cut(*t.text, t.most)
		}
	}
	var names []string
	for _, name := range d.Show.Performers[:min(len(d.Show.Performers), 20*catalog.PerformersMax)] {
		if name != "" && !slices.Contains(names, name) && utf8.RuneCountInString(name) <= catalog.NameRunesMax {
			names = append(names, name)
		}
	}
	if n := len(names); n > catalog.PerformersMax {
		d.ask(d.Path, "show.performers", fmt.Sprintf("There are %d names, and at most %d are possible: which are to be left? Only the first are here.", n, catalog.PerformersMax))
		names = names[:catalog.PerformersMax]
	}
	d.Show.Performers = names
	d.ID, d.URL, d.Image = cut(d.ID, 200), cut(d.URL, 500), cut(d.Image, 500)
}

func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return strings.TrimSpace(string(r[:most]))
	}
	return text
}

// quoted shows a piece of the data in a question.
func quoted(text string) string { return fmt.Sprintf("%q", cut(text, 80)) }

// slug is a key made of a title: its letters and digits, and where that leaves some out, a mark of the whole.
func slug(title string) string {
	var b strings.Builder
	lossy := false
	for _, c := range strings.ToLower(title) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		default:
			lossy = lossy || unicode.IsLetter(c) || unicode.IsDigit(c)
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
				b.WriteByte('-')
			}
		}
	}
	key := strings.Trim(b.String(), "-")
	if lossy || key == "" || len(key) > 48 {
		sum := sha256.Sum256([]byte(title))
		key = strings.Trim(strings.Trim(key[:min(len(key), 40)], "-")+"-"+hex.EncodeToString(sum[:4]), "-")
	}
	return key
}

// taken are names that are in use, and how often each was asked for.
type taken map[string]int

// unique is the name, or with a number where it is in use; and it is in use from now on.
func (t taken) unique(name string) string {
	if t[name] == 0 {
		t[name] = 1
		return name
	}
	for {
		t[name]++
		if numbered := fmt.Sprintf("%s-%d", name, t[name]); t[numbered] == 0 {
			t[numbered] = 1
			return numbered
		}
	}
}
