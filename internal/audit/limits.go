package audit

import (
	"cmp"
	"encoding/binary"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// A limitKey names a counter of limits; subject is a customer in 8 bytes, or a document's keyed hash.
type limitKey struct {
	scope    ledger.LimitScope
	of       id.ID
	category int16
	subject  string
}

type quotaKey struct{ category, section int16 }

// showCount is a customer's claims over the events of a show that limit them.
type showCount struct {
	count  int64
	max    int
	newest ledger.Time // when the last of them was judged
	set    ledger.Time // when the limits of one of the events changed last
}

func customerSubject(customer id.ID) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(customer)))
}

// count adds a claim, live (also where its time is up and nobody has ended it) or sold, to what it counts under. Places
// that have gone back do not count, and while a hold is to take the place of tickets, these count in its stead.
func (h *hall) count(v *holdRow) {
	if !h.known {
		return
	}
	for _, l := range h.event.Limits {
		n, less := 0, 0
		for _, line := range v.lines {
			if !line.gone && (l.Scope != ledger.PerCategory || line.category == l.Category) {
				n++
			}
		}
		for _, x := range v.exchanged {
			if l.Scope == ledger.PerShow || x.event == h.id && (l.Scope != ledger.PerCategory || x.category == l.Category) {
				less++
			}
		}
		if n = max(0, n-less); n > 0 {
			h.countUnder(l, v.customer, n, h.judged(v))
		}
	}
	for _, q := range h.event.Quotas {
		for _, line := range v.lines {
			if line.gone {
				continue
			}
			if section, ok := h.section(v.area, line.seat); ok && (q.Category < 0 || q.Category == line.category) && (q.Section < 0 || q.Section == section) {
				k := quotaKey{q.Category, q.Section}
				h.quotas[k]++
				h.newest[k] = max(h.newest[k], v.created)
			}
		}
	}
}

// judged is when a claim was held against the limits. What is exchanged one for one is not, so then it is when the claim
// was made that the tickets were of at first.
func (h *hall) judged(v *holdRow) ledger.Time {
	if v.exchange != 0 && v.state == ledger.HoldSold {
		return h.a.across.began(v.exchange)
	}
	return v.created
}

// received counts a ticket that was passed on for whoever has it now, beside its buyer (A10).
func (h *hall) received(t *ticketRow) {
	o := h.orders[t.order]
	if !h.known || o == nil || t.gone || t.customer == o.customer {
		return
	}
	for _, l := range h.event.Limits {
		if l.Scope != ledger.PerCategory || l.Category == t.category {
			h.countUnder(l, t.customer, 1, madeAt(t.id))
		}
	}
}

// countUnder adds places of a customer to the counter of a limit; those of documents count elsewhere.
func (h *hall) countUnder(l ledger.Limit, customer id.ID, n int, judged ledger.Time) {
	k := limitKey{l.Scope, h.id, -1, customerSubject(customer)}
	switch l.Scope {
	case ledger.PerEvent:
	case ledger.PerCategory:
		k.category = l.Category
	case ledger.PerShow:
		k.of = h.event.Show
		c := h.a.shows[k]
		if c == nil {
			c = &showCount{}
			h.a.shows[k] = c
		}
		c.count += int64(n)
		c.max = max(c.max, l.Max)
		c.newest, c.set = max(c.newest, judged), max(c.set, h.event.LimitsAt)
		return
	default:
		return
	}
	h.countLimit(k, int64(n), judged)
}

func (h *hall) countLimit(k limitKey, n int64, judged ledger.Time) {
	h.limits[k] += n
	h.newest[k] = max(h.newest[k], judged)
}

// since says whether a claim was judged under a counter since the event's limits changed last, not just then. Where none
// was, more than is allowed now may have been allowed then.
func (h *hall) since(k any) bool { return h.newest[k] > h.event.LimitsAt }

func (h *hall) section(area, seat int32) (int16, bool) {
	switch {
	case area >= 0 && int(area) < len(h.layout.Areas):
		return h.layout.Areas[area].Section, true
	case area < 0 && seat >= 0 && int(seat) < len(h.layout.Section):
		return h.layout.Section[seat], true
	}
	return 0, false
}

// countDocuments adds an order's identity documents. Until an exchange is paid both its own and those of the tickets that it
// is for count, so it is not judged before.
func (h *hall) countDocuments(v *orderRow) {
	if !slices.ContainsFunc(h.event.Limits, func(l ledger.Limit) bool { return l.Scope == ledger.PerDocument }) {
		return
	}
	documents, err := parseDocuments(v.documents)
	if err != nil {
		h.bad(CheckReferences, orderText(v.id), "its documents cannot be read")
		return
	}
	judged := v.created
	if v.exchange != 0 {
		judged = h.a.across.began(v.id)
	}
	for _, d := range documents {
		if d == "" {
			continue
		}
		k := limitKey{ledger.PerDocument, h.id, -1, d}
		h.countLimit(k, 1, judged)
		if v.exchange != 0 && v.state == ledger.OrderPending {
			h.above[k]++
		}
	}
}

// limitMax is the bound of a counter of this event, false where it has none.
func (h *hall) limitMax(k limitKey) (int, bool) {
	for _, l := range h.event.Limits {
		if l.Scope == k.scope && (l.Scope != ledger.PerCategory || l.Category == k.category) {
			return l.Max, true
		}
	}
	return 0, false
}

// compareLimits judges the recount, and the stored counters by it. A limit that was lowered under what a customer had
// already is not broken by that.
func (h *hall) compareLimits() {
	for _, k := range sortedLimits(h.limits) {
		h.a.saw(CheckI9, 1)
		if most, ok := h.limitMax(k); ok && h.limits[k]-h.above[k] > int64(most) && h.since(k) {
			h.bad(CheckI9, k.text(), "%d places, %d are allowed by %s", h.limits[k]-h.above[k], most, k.word())
		}
	}
	rows := read(h.a.snap, `SELECT scope, of_id, category, subject, count FROM #limits WHERE scope IN (1, 2, 4) AND of_id = `+number(h.id), scanLimit)
	for r := range rows.all() {
		k := limitKey{r.scope, r.of, r.category, string(r.subject)}
		h.a.compareLimit(k, r.count, h.limits[k], h.id)
		delete(h.limits, k)
	}
	for _, k := range sortedLimits(h.limits) {
		h.a.compareLimit(k, 0, h.limits[k], h.id)
	}
}

func (a *audit) compareLimit(k limitKey, stored, counted int64, event id.ID) {
	a.saw(CheckLimits, 1)
	if stored != counted {
		a.bad(CheckLimits, event, k.text(), "the counter by %s says %d, there are %d places", k.word(), stored, counted)
	}
}

// showLimits does the same for limits over all events of a show.
func (a *audit) showLimits() {
	rows := read(a.snap, `SELECT scope, of_id, category, subject, count FROM #limits WHERE scope = 3`, scanLimit)
	stored := map[limitKey]int64{}
	for r := range rows.all() {
		k := limitKey{r.scope, r.of, r.category, string(r.subject)}
		stored[k] = r.count
		if a.shows[k] == nil {
			a.compareLimit(k, r.count, 0, 0)
		}
	}
	for _, k := range sortedLimits(a.shows) {
		c := a.shows[k]
		a.saw(CheckI9, 1)
		if c.count > int64(c.max) && c.newest > c.set {
			a.bad(CheckI9, 0, k.text(), "%d places, %d are allowed by %s", c.count, c.max, k.word())
		}
		a.compareLimit(k, stored[k], c.count, 0)
	}
}

// compareQuotas judges quotas. A quota that an organizer lowers under what is sold already is not broken by that, so the
// count is held against the greatest maximum that has been in force.
func (h *hall) compareQuotas() {
	for _, q := range h.event.Quotas {
		most := q.Max
		for _, s := range q.Steps {
			if s.At <= h.a.now {
				most = max(most, s.Max)
			}
		}
		h.a.saw(CheckI9, 1)
		if n := h.quotas[quotaKey{q.Category, q.Section}]; n > int64(most) && h.since(quotaKey{q.Category, q.Section}) {
			h.bad(CheckI9, quotaText(q.Category, q.Section), "%d places, %d are on sale", n, most)
		}
	}
	rows := read(h.a.snap, `SELECT category, section, count FROM #quotas WHERE event_id = `+number(h.id), scanQuota)
	for r := range rows.all() {
		k := quotaKey{r.category, r.section}
		h.compareQuota(k, r.count)
		delete(h.quotas, k)
	}
	for k := range h.quotas {
		h.compareQuota(k, 0)
	}
}

func (h *hall) compareQuota(k quotaKey, stored int64) {
	h.a.saw(CheckLimits, 1)
	if counted := h.quotas[k]; stored != counted {
		h.bad(CheckLimits, quotaText(k.category, k.section), "the counter says %d, there are %d places", stored, counted)
	}
}

func (k limitKey) word() string {
	switch k.scope {
	case ledger.PerEvent:
		return "event"
	case ledger.PerCategory:
		return "category"
	case ledger.PerShow:
		return "show"
	case ledger.PerDocument:
		return "document"
	}
	return "no scope"
}

// text names whose counter it is. Of a document's keyed hash nothing is shown.
func (k limitKey) text() string {
	if k.scope == ledger.PerDocument || len(k.subject) != 8 {
		return "a document"
	}
	return id.ID(binary.BigEndian.Uint64([]byte(k.subject))).Text(id.Customer)
}

func quotaText(category, section int16) string {
	name := func(v int16) string {
		if v < 0 {
			return "any"
		}
		return itoa(int(v))
	}
	return "quota of category " + name(category) + ", section " + name(section)
}

func sortedLimits[V any](m map[limitKey]V) []limitKey {
	keys := make([]limitKey, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b limitKey) int {
		return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.of, b.of), cmp.Compare(a.category, b.category), cmp.Compare(a.subject, b.subject))
	})
	return keys
}
