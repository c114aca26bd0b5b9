package catalog

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// problemsMax is how many problems one report lists; the rest are counted.
const problemsMax = 100

// A Problem is one thing that is wrong with an event or a file.
type Problem struct {
	Line    int    // in the file; 0: not known
	Key     string // which key, "performances[2].starts"
	Message string // what is wrong and how to mend it, for people
}

// String is the problem on one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// A RefusedError holds all that is wrong.
type RefusedError struct{ Problems []Problem }

// Error lists every problem, one a line.
func (e *RefusedError) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return "refused:\n  " + strings.Join(lines, "\n  ")
}

// Report gathers problems; it lists the first hundred and counts the others. The zero value is ready.
type Report struct {
	problems []Problem
	more     int
}

// Add adds a problem.
func (r *Report) Add(line int, key, format string, args ...any) {
	if len(r.problems) >= problemsMax {
		r.more++
		return
	}
	r.problems = append(r.problems, Problem{Line: line, Key: key, Message: fmt.Sprintf(format, args...)})
}

// Err is a *RefusedError with what was gathered, nil where nothing was.
func (r *Report) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	problems := r.problems
	if r.more > 0 {
		problems = append(problems, Problem{Message: fmt.Sprintf("and %d more", r.more)})
	}
	return &RefusedError{Problems: problems}
}

var (
	keyPattern      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	countryPattern  = regexp.MustCompile(`^[A-Z]{2}$`)
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
)

// CheckKey says what is wrong with an organizer's own name for a thing, "" where nothing is.
func CheckKey(key string) string {
	if len(key) > KeyBytesMax || !keyPattern.MatchString(key) {
		return fmt.Sprintf("%.80q must be 1 to %d letters, digits, dots, dashes or underscores, and begin with a letter or digit", key, KeyBytesMax)
	}
	return ""
}

// CheckText says what is wrong with a text for people, "" where nothing is.
func CheckText(text string, runesMax int) string {
	switch {
	case !utf8.ValidString(text):
		return "is not valid UTF-8"
	case utf8.RuneCountInString(text) > runesMax:
		return fmt.Sprintf("is longer than %d characters", runesMax)
	case strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }):
		return "has control characters: take them out"
	}
	return ""
}

// Validate adds all that is wrong with the show.
func (s *Show) Validate(r *Report, path string) {
	if fault := CheckKey(s.Key); fault != "" {
		r.Add(0, path+"key", "%s", fault)
	}
	checkName(r, path+"title", s.Title)
	if fault := CheckText(s.Description, TextRunesMax); fault != "" {
		r.Add(0, path+"description", "%s", fault)
	}
	checkPerformers(r, path, s.Performers)
}

func checkPerformers(r *Report, path string, performers []string) {
	if len(performers) > PerformersMax {
		r.Add(0, path+"performers", "has %d names; at most %d", len(performers), PerformersMax)
		return
	}
	for i, name := range performers {
		checkName(r, fmt.Sprintf("%sperformers[%d]", path, i), name)
	}
}

func checkName(r *Report, key, text string) {
	if strings.TrimSpace(text) == "" {
		r.Add(0, key, "is empty: give a name")
	} else if fault := CheckText(text, NameRunesMax); fault != "" {
		r.Add(0, key, "%s", fault)
	}
}

// Validate adds all that is wrong with the event, seen alone. Keys are those of the event file.
func (e *Event) Validate(r *Report, path string) {
	if fault := CheckKey(e.Key); fault != "" {
		r.Add(0, path+"key", "%s", fault)
	}
	checkName(r, path+"title", e.Title)
	checkPerformers(r, path, e.Performers)
	e.Venue.validate(r, path+"venue.")
	e.validateTimes(r, path)
	if !currencyPattern.MatchString(e.Currency) {
		r.Add(0, path+"currency", "%.20q is not an ISO 4217 code, such as EUR", e.Currency)
	}
	e.validateTiers(r, path)
	e.validateLimits(r, path)
	e.validateQuotas(r, path)
	e.validateRules(r, path)
	e.validateRoom(r, path)
	between(r, path+"seats_per_hold_max", int64(e.SeatsPerHoldMax), 1, ledger.SeatsPerHoldCap)
	between(r, path+"extend_max", int64(e.ExtendMax), 0, ExtendMaxMax)
	duration(r, path+"hold_ttl", e.HoldTTL, HoldTTLMin, HoldTTLMax)
	duration(r, path+"payment_window", e.PaymentWindow, PaymentWindowMin, PaymentWindowMax)
	switch e.Orphans.Mode {
	case OrphansOff, OrphansWarn, OrphansRefuse:
	default:
		r.Add(0, path+"orphans.mode", "%.20q must be off, warn or refuse", string(e.Orphans.Mode))
	}
	between(r, path+"orphans.few_seats_left", int64(e.Orphans.FewSeatsLeft), 0, venue.SeatsMax)
	duration(r, path+"orphans.split_release_before", e.Orphans.SplitReleaseBefore, 0, 366*24*60*60*1000)
	if _, ok := e.State.ledgerState(); !ok {
		r.Add(0, path+"state", "%.20q cannot be stored", string(e.State))
	}
}

func (v Venue) validate(r *Report, path string) {
	checkName(r, path+"name", v.Name)
	checkName(r, path+"city", v.City)
	if !countryPattern.MatchString(v.Country) {
		r.Add(0, path+"country", "%.20q must be two capital letters (ISO 3166-1), such as DE", v.Country)
	}
	if _, err := LoadZone(v.Zone); err != nil {
		r.Add(0, path+"zone", "%s", err)
	}
}

func (e *Event) validateTimes(r *Report, path string) {
	switch {
	case e.Starts.IsZero():
		r.Add(0, path+"starts", "is missing: when does the performance start?")
	case !e.Doors.IsZero() && e.Doors.After(e.Starts):
		r.Add(0, path+"doors", "must not be after starts")
	}
	switch {
	case e.SaleOpens.IsZero() && e.State != Draft:
		r.Add(0, path+"sale.opens", "is missing: when does the sale open? Only a draft may leave it out")
	case e.SaleCloses.IsZero():
		r.Add(0, path+"sale.closes", "is missing: when does the sale close?")
	case !e.SaleOpens.IsZero() && !e.SaleCloses.After(e.SaleOpens):
		r.Add(0, path+"sale.closes", "must be after sale.opens")
	}
}

func (e *Event) validateTiers(r *Report, path string) {
	switch {
	case len(e.Tiers) == 0:
		r.Add(0, path+"tiers", "is empty: give at least one category a price")
	case len(e.Tiers) > TiersMax:
		r.Add(0, path+"tiers", "has %d tiers; at most %d", len(e.Tiers), TiersMax)
	}
	seen := map[string]bool{}
	for i, t := range e.Tiers {
		p := fmt.Sprintf("%stiers[%d].", path, i)
		if seen[t.Category] {
			r.Add(0, p+"category", "%.80q has two tiers: keep one", t.Category)
		}
		seen[t.Category] = true
		checkName(r, p+"name", t.Name)
		between(r, p+"face", t.Face, 0, AmountMax)
		between(r, p+"fee", t.Fee, 0, AmountMax)
		between(r, p+"tax_percent", t.TaxBP, 0, TaxBPMax)
	}
}

func (e *Event) validateLimits(r *Report, path string) {
	between(r, path+"limits.event", int64(e.Limits.Event), 0, LimitMax)
	between(r, path+"limits.show", int64(e.Limits.Show), 0, LimitMax)
	between(r, path+"limits.document", int64(e.Limits.Document), 0, LimitMax)
	seen := map[string]bool{}
	for _, c := range e.Limits.Categories {
		p := path + "limits.categories." + c.Category
		if seen[c.Category] {
			r.Add(0, p, "is there twice")
		}
		seen[c.Category] = true
		between(r, p, int64(c.Max), 1, LimitMax)
	}
}

func (e *Event) validateQuotas(r *Report, path string) {
	if len(e.Quotas) > QuotasMax {
		r.Add(0, path+"quotas", "has %d quotas; at most %d", len(e.Quotas), QuotasMax)
	}
	for i, q := range e.Quotas {
		p := fmt.Sprintf("%squotas[%d].", path, i)
		between(r, p+"on_sale_max", int64(q.Max), 0, PlacesMax)
		if len(q.Steps) > QuotaStepsMax {
			r.Add(0, p+"steps", "has %d steps; at most %d", len(q.Steps), QuotaStepsMax)
		}
		for k, s := range q.Steps {
			between(r, fmt.Sprintf("%ssteps[%d].on_sale_max", p, k), int64(s.Max), 0, PlacesMax)
			if k > 0 && !s.At.After(q.Steps[k-1].At) {
				r.Add(0, fmt.Sprintf("%ssteps[%d].at", p, k), "must be after the step before it")
			}
		}
	}
}

func between(r *Report, key string, value, least, most int64) {
	if value < least || value > most {
		r.Add(0, key, "%d is not between %d and %d", value, least, most)
	}
}

func duration(r *Report, key string, value, least, most ledger.Duration) {
	if value < least || value > most {
		r.Add(0, key, "%s is not between %s and %s", value.Std(), least.Std(), most.Std())
	}
}
