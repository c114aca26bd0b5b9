// Package eventfile reads event files: YAML or JSON that says which show plays where, when, at what prices and by which
// rules. docs/EVENT_FILE.md has every key.
//
// The one idea: a file is a venue, a show and a list of performances; whatever a performance does not say for itself it
// takes from the top of the file. Everything that is wrong comes at once, each with its line, its key and its mend, and
// a key that nobody knows is refused: a misspelt limit must not become no limit.
//
// Start reading at Parse.
package eventfile

import (
	"fmt"
	"strings"
	"time"

	"github.com/bojanz/currency"
	"go.yaml.in/yaml/v3"

	"onsale/internal/catalog"
	"onsale/internal/ledger"
)

// Limits of a file.
const (
	FileBytesMax = 1 << 20
	QuestionsMax = 1_000
	depthMax     = 16
)

// FormatVersion is the file format that this package reads.
const FormatVersion = 1

// A File is an event file that was read. Its events have no plan hash yet: see Import.
type File struct {
	// Plan is what the file says of its seating plan: the hash of an imported one (64 hex digits), or the path of a plan
	// file, seen from the event file.
	Plan string

	show   catalog.Show
	events []catalog.Event
}

// PlanHash is the plan's hash, where the file names the plan so.
func (f *File) PlanHash() (string, bool) {
	return f.Plan, len(f.Plan) == 64 && strings.Trim(f.Plan, "0123456789abcdef") == ""
}

// Import is the file for catalog.Service.Import, with all its events in the plan of this hash.
func (f *File) Import(planHash string) catalog.Import {
	in := catalog.Import{Show: f.show, Events: append([]catalog.Event(nil), f.events...)}
	for i := range in.Events {
		in.Events[i].PlanHash = planHash
	}
	return in
}

// Parse reads a file. What is wrong is a *catalog.RefusedError with all of it.
func Parse(data []byte) (*File, error) {
	var r catalog.Report
	if len(data) > FileBytesMax {
		r.Add(0, "", "the file has %d bytes; at most %d are possible: use several files", len(data), FileBytesMax)
		return nil, r.Err()
	}
	root, err := parse(data)
	if err != nil {
		r.Add(0, "", "%s", err)
		return nil, r.Err()
	}
	f := &reader{report: &r, root: newObject(&r, "", root)}
	file := f.read()
	if err := r.Err(); err != nil {
		return nil, err
	}
	// What single values cannot tell: the rules of the catalog itself. Lines are not known there, keys are.
	file.show.Validate(&r, "show.")
	for i := range file.events {
		file.events[i].Validate(&r, fmt.Sprintf("performances[%d].", i))
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return file, nil
}

type reader struct {
	report *catalog.Report
	root   *object

	venue    catalog.Venue
	zone     *time.Location
	show     catalog.Show
	currency string
}

func (f *reader) read() *File {
	if version := f.root.number("format", FormatVersion); version != FormatVersion {
		f.report.Add(f.root.line, "format", "is %d, and this program reads %d: use a newer program", version, FormatVersion)
		return nil
	}
	f.readQuestions()
	plan := f.readVenue()
	f.readShow()
	f.readCurrency()
	file := &File{Plan: plan, show: f.show}
	top := f.defaults()
	nodes, path := f.root.list("performances", catalog.EventsPerImportMax)
	if len(nodes) == 0 {
		f.report.Add(f.root.line, "performances", "is missing or empty: list at least one, with key and starts")
	}
	for i, n := range nodes {
		file.events = append(file.events, f.performance(top, path(i), n))
	}
	f.root.end()
	return file
}

// readQuestions refuses a file in which a converter's questions are still open.
func (f *reader) readQuestions() {
	nodes, path := f.root.list("questions", QuestionsMax)
	for i, n := range nodes {
		q := newObject(f.report, path(i), n)
		field := q.str("field", "")
		ask := q.required("ask", "what is to be answered")
		options, _ := q.list("options", QuestionsMax)
		var choices []string
		for _, o := range options {
			choices = append(choices, o.Value)
		}
		if len(choices) > 0 {
			ask += " (" + strings.Join(choices, ", ") + ")"
		}
		f.report.Add(n.Line, strings.TrimSuffix(path(i), "."), "%.60s: %.500s Answer it there, then take this question out", field, ask)
		q.end()
	}
}

func (f *reader) readVenue() (plan string) {
	o := f.root.object("venue")
	f.venue = catalog.Venue{
		Name:    o.required("name", "the name of the house"),
		City:    o.required("city", "where the house is"),
		Country: strings.ToUpper(o.required("country", "two letters, such as DE")),
		Zone:    o.required("zone", `the house's IANA zone, such as "Europe/Berlin"`),
	}
	plan = o.required("plan", "the path of a plan file, or the hash of an imported plan")
	o.end()
	f.zone = time.UTC
	if f.venue.Zone != "" {
		zone, err := catalog.LoadZone(f.venue.Zone)
		if err != nil {
			f.report.Add(o.line, "venue.zone", "%s", err)
			return plan
		}
		f.zone = zone
	}
	return plan
}

func (f *reader) readShow() {
	o := f.root.object("show")
	f.show = catalog.Show{
		Key:         o.required("key", "your own short name for the show, by which it is known again"),
		Title:       o.required("title", "what the show is called"),
		Description: o.str("description", ""),
		Performers:  f.performers(o),
	}
	o.end()
}

// performers is a list of names; nil where the key is not there.
func (f *reader) performers(o *object) []string {
	nodes, _ := o.list("performers", catalog.PerformersMax)
	names := make([]string, 0, len(nodes))
	for i, n := range nodes {
		if n.Kind != yaml.ScalarNode {
			o.report.Add(n.Line, fmt.Sprintf("%sperformers[%d]", o.path, i), "must be a name, and is %s", kindName(n))
			continue
		}
		names = append(names, strings.TrimSpace(n.Value))
	}
	if !o.has("performers") {
		return nil
	}
	return names
}

func (f *reader) readCurrency() {
	f.currency = strings.ToUpper(f.root.required("currency", "an ISO 4217 code, such as EUR"))
	if f.currency != "" && !currency.IsValid(f.currency) {
		f.report.Add(f.root.line, "currency", "%.20q is not a currency: use an ISO 4217 code, such as EUR", f.currency)
	}
}

// settings are what a performance may say for itself, else the top of the file, else the defaults.
type settings struct {
	event     catalog.Event
	hasCloses bool
	perHold   bool // seats_per_hold_max is said
	before    before
}

func (f *reader) defaults() settings {
	top := settings{event: catalog.Event{
		Format: catalog.FormatVersion, State: catalog.OnSale, Title: f.show.Title, Performers: f.show.Performers, Venue: f.venue, Currency: f.currency,
		TaxIncluded: f.root.flag("tax_included", true),
		Limits:      catalog.Limits{Event: catalog.DefaultLimitPerEvent},
		HoldTTL:     catalog.DefaultHoldTTL, PaymentWindow: catalog.DefaultPaymentWindow, ExtendMax: catalog.DefaultExtendMax,
		Orphans: catalog.Orphans{
			Mode: catalog.OrphansWarn, FewSeatsLeft: catalog.DefaultFewSeatsLeft,
			SplitReleaseBefore: catalog.DefaultSplitReleaseBefore,
		},
		Holding: catalog.DefaultHolding(),
	}}
	f.common(&top, f.root)
	return top
}

// common reads the keys that stand at the top of the file or in a performance.
func (f *reader) common(s *settings, o *object) {
	e := &s.event
	switch state := o.str("state", ""); state {
	case "":
	case "draft":
		e.State = catalog.Draft
	case "scheduled":
		e.State = catalog.OnSale
	default:
		o.report.Add(o.keys["state"].Line, o.path+"state", "%.40q must be draft or scheduled; later states are reached by onsale event", state)
	}
	if o.has("sale") {
		f.sale(s, o.object("sale"))
	}
	tax := o.percent("tax_percent", 0)
	if o.has("tiers") {
		e.Tiers = f.tiers(o, tax)
	} else if o.has("tax_percent") && o != f.root {
		o.report.Add(o.keys["tax_percent"].Line, o.path+"tax_percent", "changes nothing without tiers beside it: repeat them here")
	}
	if o.has("limits") {
		e.Limits = f.limits(o.object("limits"))
	}
	if o.has("quotas") {
		e.Quotas = f.quotas(o)
	}
	if o.has("orphans") {
		f.orphans(&e.Orphans, o.object("orphans"))
	}
	f.rules(s, o)
	f.room(s, o)
	e.HoldTTL = o.duration("hold_ttl", e.HoldTTL)
	e.PaymentWindow = o.duration("payment_window", e.PaymentWindow)
	e.ExtendMax = o.number("extend_max", e.ExtendMax)
	if o.has("seats_per_hold_max") {
		e.SeatsPerHoldMax, s.perHold = o.number("seats_per_hold_max", 0), true
	}
}

func (f *reader) performance(top settings, path string, n *yaml.Node) catalog.Event {
	o := newObject(f.report, path, n)
	s := top
	f.common(&s, o)
	e := &s.event
	e.Key = o.required("key", "your own short name for the performance, by which it is known again")
	e.Title = o.str("title", e.Title)
	if own := f.performers(o); own != nil {
		e.Performers = own
	}
	e.Doors = f.time(o, "doors")
	if o.required("starts", "when it starts, 2027-06-12T20:00 in the venue's time") != "" {
		e.Starts = f.time(o, "starts")
	}
	if !s.hasCloses {
		e.SaleCloses = e.Starts
	}
	s.before.from(e)
	if !s.perHold {
		e.SeatsPerHoldMax = catalog.DefaultSeatsPerHoldMax
		if e.Limits.Event > 0 {
			e.SeatsPerHoldMax = min(e.Limits.Event, ledger.SeatsPerHoldCap)
		}
	}
	o.end()
	return *e
}

func (f *reader) sale(s *settings, o *object) {
	if o.has("opens") {
		s.event.SaleOpens = f.time(o, "opens")
	}
	if o.has("closes") {
		s.event.SaleCloses, s.hasCloses = f.time(o, "closes"), true
	}
	o.end()
}

func (f *reader) time(o *object, key string) time.Time {
	text, line, ok := o.text(key)
	if !ok {
		return time.Time{}
	}
	t, err := catalog.ParseTime(text, f.zone)
	if err != nil {
		o.report.Add(line, o.path+key, "%.400s", err)
	}
	return t
}

func (f *reader) tiers(o *object, tax int64) []catalog.Tier {
	nodes, path := o.list("tiers", catalog.TiersMax)
	var tiers []catalog.Tier
	for i, n := range nodes {
		t := newObject(f.report, path(i), n)
		tier := catalog.Tier{Category: t.required("category", "the key of one of the plan's categories")}
		tier.Name = t.str("name", tier.Category)
		if !t.has("face") {
			f.report.Add(t.line, t.path+"face", "is missing: the price, 0 for a free one")
		}
		tier.Face = t.money("face", f.currency)
		tier.Fee = t.money("fee", f.currency)
		tier.TaxBP = t.percent("tax_percent", tax)
		t.end()
		tiers = append(tiers, tier)
	}
	return tiers
}

func (f *reader) limits(o *object) catalog.Limits {
	l := catalog.Limits{
		Event:    o.number("event", catalog.DefaultLimitPerEvent),
		Show:     o.number("show", 0),
		Document: o.number("document", 0),
	}
	categories := o.object("categories")
	for _, category := range categories.order {
		l.Categories = append(l.Categories, catalog.CategoryLimit{Category: category, Max: categories.number(category, 1)})
	}
	o.end()
	return l
}

func (f *reader) quotas(o *object) []catalog.Quota {
	nodes, path := o.list("quotas", catalog.QuotasMax)
	var quotas []catalog.Quota
	for i, n := range nodes {
		q := newObject(f.report, path(i), n)
		quota := catalog.Quota{Category: q.str("category", ""), Section: q.str("section", "")}
		q.required("on_sale_max", "how many may be on sale")
		quota.Max = q.number("on_sale_max", 0)
		steps, stepPath := q.list("steps", catalog.QuotaStepsMax)
		for k, n := range steps {
			s := newObject(f.report, stepPath(k), n)
			s.required("at", "from when on")
			s.required("on_sale_max", "how many may be on sale from then on")
			quota.Steps = append(quota.Steps, catalog.QuotaStep{At: f.time(s, "at"), Max: s.number("on_sale_max", 0)})
			s.end()
		}
		q.end()
		quotas = append(quotas, quota)
	}
	return quotas
}

func (f *reader) orphans(rule *catalog.Orphans, o *object) {
	rule.Mode = catalog.OrphanMode(o.str("mode", string(rule.Mode)))
	rule.FewSeatsLeft = o.number("few_seats_left", rule.FewSeatsLeft)
	rule.SplitReleaseBefore = o.duration("split_release_before", rule.SplitReleaseBefore)
	o.end()
}
