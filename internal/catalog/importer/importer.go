// Package importer turns what other systems say of events into drafts of event files: schema.org Events as JSON-LD,
// answers of the Ticketmaster Discovery API, and programme lists of a Chinese ticket shop.
//
// The one idea: what the data does not say is a question, never a guess. A placeholder for a date, a time without a zone, a
// price that is "from 35", a title in two languages: each becomes a Question that names the field of the event file, what
// is doubtful, and what may be answered. A draft's file (Draft.File) holds its questions, and is refused by
// `onsale event import` until they are answered and taken out.
//
// Start reading at Convert, then Draft. One file for each format: jsonld.go, discovery.go, programmes.go; times.go and
// text.go read what they share; file.go writes event files.
package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"onsale/internal/catalog"
)

// Limits of what is converted.
const (
	DataBytesMax = 16 << 20
	DraftsMax    = 5_000
	depthMax     = 64
	questionsMax = 500 // of one draft
	optionsMax   = 20  // of one question
)

// A Format is what data looks like.
type Format string

// The formats.
const (
	JSONLD     Format = "json-ld"    // schema.org
	Discovery  Format = "discovery"  // Ticketmaster Discovery API, version 2
	Programmes Format = "programmes" // a list with title, actor, place, show_times and tiers in yuan
)

// Options answer, for all that is converted, what the data does not say.
type Options struct {
	Format   Format // "": it is recognized
	Zone     string // of times without one: "Asia/Shanghai"
	Country  string // two letters
	City     string
	Currency string
	Plan     string // path of a plan file, or the hash of an imported plan
	Language string // of texts that come in several: "en"
}

// A Draft is one show with its performances, as far as it is known.
type Draft struct {
	Path  string // where it stands in the data
	ID    string // the other system's
	URL   string
	Image string

	Show         catalog.Show // Key, Title, Description, Performers
	Venue        catalog.Venue
	Plan         string
	Currency     string
	Tiers        []Tier
	PerCustomer  int  // limit; 0: not said
	PerHold      int  // seats_per_hold_max; 0: not said
	Documents    bool // buyers are named by their documents
	Performances []Performance

	Questions []Question
}

// A Tier is a price. Category and Face are "" where they are not known.
type Tier struct {
	Category string // the plan's category, and its name for people
	Face     string // decimal
	Total    int    // how many are on sale; 0: not said
}

// A Performance is one date. Its times are as the event file has them: the clock on the venue's wall, or with an offset;
// "" where they are not known.
type Performance struct {
	Key        string
	Starts     string
	Doors      string
	SaleOpens  string
	SaleCloses string
}

// A Question is something that a person must answer.
type Question struct {
	Path    string   // where in the data the doubt is
	Field   string   // of the event file: "venue.zone"
	Text    string   // what is missing or doubtful, and what to answer
	Options []string // answers that suggest themselves; none is taken
}

// Skipped is a part of the data that holds no event.
type Skipped struct{ Path, Why string }

// A Result is all that was found.
type Result struct {
	Format  Format
	Drafts  []Draft
	Skipped []Skipped
	Notes   []string // what to know about the whole
}

// Questions counts the questions of all drafts.
func (r *Result) Questions() int {
	n := 0
	for i := range r.Drafts {
		n += len(r.Drafts[i].Questions)
	}
	return n
}

// Convert reads data of one of the formats. An error says that it is none of them, or too large; everything else becomes
// drafts, questions and skipped parts.
func Convert(data []byte, o Options) (Result, error) {
	if len(data) > DataBytesMax {
		return Result{}, fmt.Errorf("the data has %d bytes; at most %d are possible: split it", len(data), DataBytesMax)
	}
	if o.Zone != "" {
		if _, err := catalog.LoadZone(o.Zone); err != nil {
			return Result{}, err
		}
	}
	value, err := decode(data)
	if err != nil {
		return Result{}, err
	}
	r := Result{Format: o.Format}
	if r.Format == "" {
		r.Format = recognize(value)
	}
	c := &converter{o: o, result: &r}
	switch r.Format {
	case JSONLD:
		c.jsonld(value)
	case Discovery:
		c.discovery(value)
	case Programmes:
		c.programmes(value)
	case "":
		return Result{}, fmt.Errorf("this is neither schema.org JSON-LD (an @type), nor a Discovery answer (_embedded), nor a programme list (show_times): say which it is, %s, %s or %s", JSONLD, Discovery, Programmes)
	default:
		return Result{}, fmt.Errorf("%.40q is not a format: use %s, %s or %s", r.Format, JSONLD, Discovery, Programmes)
	}
	c.sameShows()
	return r, nil
}

func decode(data []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("the data is not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the data is more than one JSON value: put them into one list")
	}
	return value, nil
}

// recognize tells formats apart by what only one of them has; "" where nothing does.
func recognize(value any) Format {
	found := Format("")
	var look func(v any, depth int)
	look = func(v any, depth int) {
		if found != "" || depth > 3 {
			return
		}
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				look(one, depth+1)
			}
		case map[string]any:
			switch {
			case has(v, "@type"), has(v, "@context"), has(v, "@graph"):
				found = JSONLD
			case has(v, "show_times"):
				found = Programmes
			case has(v, "_embedded"), has(v, "_links"), v["type"] == "event", v["type"] == "venue":
				found = Discovery
			}
		}
	}
	look(value, 0)
	return found
}

func has(object map[string]any, key string) bool {
	_, there := object[key]
	return there
}

type converter struct {
	o      Options
	result *Result
}

func (c *converter) skip(path, format string, args ...any) {
	c.result.Skipped = append(c.result.Skipped, Skipped{Path: path, Why: fmt.Sprintf(format, args...)})
}

// draft begins a draft; nil where there are too many.
func (c *converter) draft(path string) *Draft {
	if len(c.result.Drafts) >= DraftsMax {
		if len(c.result.Drafts) == DraftsMax && !strings.Contains(strings.Join(c.result.Notes, ""), "left out") {
			c.result.Notes = append(c.result.Notes, fmt.Sprintf("there are more than %d events: the others are left out, split the data", DraftsMax))
		}
		return nil
	}
	return &Draft{Path: path, Plan: c.o.Plan}
}

// done asks for what is missing in a draft and keeps it.
func (c *converter) done(d *Draft) {
	c.complete(d)
	keys := taken{}
	for i := range d.Performances {
		p := &d.Performances[i]
		key := performanceKey(p.Starts, i)
		p.Key = keys.unique(key)
		if p.Key != key && p.Starts != "" {
			d.ask(d.Path, fmt.Sprintf("performances[%d].key", i), "Is this another performance? This start is there twice: leave one out, or keep both.")
		}
	}
	d.check()
	c.result.Drafts = append(c.result.Drafts, *d)
}

// ask adds a question about a field. Beyond questionsMax there is one more, which says so.
func (d *Draft) ask(path, field, text string, options ...string) {
	switch n := len(d.Questions); {
	case n > questionsMax:
		return
	case n == questionsMax:
		path, field, text, options = d.Path, "performances", "There is more to ask: convert again when these are answered.", nil
	}
	options = options[:min(len(options), optionsMax)]
	for i := range options {
		options[i] = cut(options[i], catalog.NameRunesMax)
	}
	d.Questions = append(d.Questions, Question{Path: path, Field: field, Text: text, Options: options})
}

// asked says whether there is a question about a field already.
func (d *Draft) asked(field string) bool {
	for _, q := range d.Questions {
		if q.Field == field {
			return true
		}
	}
	return false
}

// need asks about a field unless it is known, answered by the options, or asked about already: an answer to what the data
// does not say is none to what it says doubtfully.
func (d *Draft) need(value *string, answer, field, text string) {
	switch {
	case *value != "" || d.asked(field):
	case answer != "":
		*value = answer
	default:
		d.ask(d.Path, field, text)
	}
}

// complete asks for what no draft may be without.
func (c *converter) complete(d *Draft) {
	d.need(&d.Show.Title, "", "show.title", "What is the show called?")
	d.need(&d.Venue.Name, "", "venue.name", "What is the house called?")
	d.need(&d.Venue.City, c.o.City, "venue.city", "In which city is the house?")
	d.need(&d.Venue.Country, c.o.Country, "venue.country", "In which country is the house? Two letters, such as DE.")
	d.need(&d.Venue.Zone, c.o.Zone, "venue.zone", "In which IANA zone is the house, such as Europe/Berlin? Times without an offset are read in it.")
	d.need(&d.Plan, "", "venue.plan", "Which seating plan has the house? The path of a plan file, or the hash of an imported plan.")
	d.need(&d.Currency, c.o.Currency, "currency", "In which currency are the prices? ISO 4217, such as EUR.")
	if len(d.Tiers) == 0 && !d.asked("tiers") {
		d.ask(d.Path, "tiers", "What does it cost? Give each category of the plan that is to be sold a price.")
	}
	if len(d.Performances) == 0 && !d.asked("performances") {
		d.ask(d.Path, "performances", "When is it? List the performances, each with key and starts.")
	}
	if len(d.Performances) > catalog.EventsPerImportMax {
		d.ask(d.Path, "performances", fmt.Sprintf("There are %d performances, and a file has at most %d: where are the others to go? Only the first are here.", len(d.Performances), catalog.EventsPerImportMax))
		d.Performances = d.Performances[:catalog.EventsPerImportMax]
	}
	c.clean(d)
	if d.Show.Key == "" && d.Show.Title != "" {
		d.Show.Key = slug(d.Show.Title)
	}
	d.need(&d.Show.Key, "", "show.key", "What is your own short name for the show? Letters, digits, dots and dashes.")
}

// sameShows asks about drafts that look like one show, and keeps their performances apart.
func (c *converter) sameShows() {
	first := map[string]int{}
	keys := taken{}
	for i := range c.result.Drafts {
		d := &c.result.Drafts[i]
		if d.Show.Key == "" {
			continue
		}
		k, again := first[d.Show.Key]
		if !again {
			first[d.Show.Key] = i
		}
		if again {
			d.ask(d.Path, "show.key", fmt.Sprintf("It has the title of %s: is it the same show? Then keep the key; else give it another one.", c.result.Drafts[k].Path))
		}
		for n := range d.Performances {
			p := &d.Performances[n]
			key := d.Show.Key + " " + p.Key
			own := keys.unique(key)
			if again && own != key && p.Starts != "" {
				d.ask(d.Path, fmt.Sprintf("performances[%d].key", n), fmt.Sprintf("%s has a performance at this time, too: is it the same one? Then leave this out.", c.result.Drafts[k].Path))
			}
			p.Key = strings.TrimPrefix(own, d.Show.Key+" ")
		}
	}
}
