package decide

import (
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// section is where a line of a hold lies.
func section(layout *ledger.Layout, area int32, l ledger.Line) int16 {
	if area >= 0 {
		return layout.Areas[area].Section
	}
	return layout.Section[l.Seat]
}

// covered counts the lines of a hold that a quota bounds.
func covered(q ledger.Quota, layout *ledger.Layout, h *ledger.Hold) (n int) {
	for _, l := range h.Lines {
		if !l.Gone && q.Covers(l.Category, section(layout, h.Area, l)) {
			n++
		}
	}
	return n
}

// limited is the counter that a limit keeps for a customer, and how many of the hold's places count under it: those that
// have not gone, less the ones that it is to take the place of (A10). n is 0 for limits that a hold does not count under.
func limited(e *ledger.Event, limit ledger.Limit, h *ledger.Hold) (k LimitKey, n int) {
	k = LimitKey{Scope: limit.Scope, Of: e.ID, Category: -1, Subject: CustomerSubject(h.Customer)}
	switch limit.Scope {
	case ledger.PerDocument:
		return k, 0
	case ledger.PerShow:
		k.Of = e.Show
	case ledger.PerCategory:
		k.Category = limit.Category
	}
	counts := func(event id.ID, category int16) bool {
		return limit.Scope == ledger.PerShow || event == e.ID && (limit.Scope == ledger.PerEvent || category == limit.Category)
	}
	for i := range h.Lines {
		if !h.Lines[i].Gone && counts(e.ID, h.Lines[i].Category) {
			n++
		}
	}
	for _, x := range h.Exchanged {
		if counts(x.Event, x.Category) {
			n--
		}
	}
	return k, max(0, n)
}

// Counters names the counters under which a claim counts, for an adapter that locks them before it decides.
func Counters(e *ledger.Event, layout *ledger.Layout, h *ledger.Hold, limit func(LimitKey), quota func(QuotaKey)) {
	for _, q := range e.Quotas {
		if covered(q, layout, h) > 0 {
			quota(QuotaKey{e.ID, q.Category, q.Section})
		}
	}
	for _, l := range e.Limits {
		if k, n := limited(e, l, h); n > 0 {
			limit(k)
		}
	}
}

// DocumentCounters names those of identity documents.
func DocumentCounters(e *ledger.Event, documents []string, limit func(LimitKey)) {
	if _, ok := documentLimit(e); !ok {
		return
	}
	for _, d := range documents {
		if d != "" {
			limit(documentKey(e.ID, d))
		}
	}
}

// allow refuses a new claim that the event's quotas or limits do not allow, after ending expired holds that count under
// them (A9).
func (w *Work) allow(e *eventRow, layout *ledger.Layout, h *ledger.Hold) error {
	for _, q := range e.Quotas {
		n := covered(q, layout, h)
		if n == 0 {
			continue
		}
		c, err := w.quota(QuotaKey{e.ID, q.Category, q.Section})
		if err != nil {
			return err
		}
		most := q.MaxAt(w.Now)
		if c.count+n > most {
			if err := w.expireCovered(e, q, layout); err != nil {
				return err
			}
		}
		if c.count+n > most && on(GuardQuota) {
			f := fault.New(fault.PlacesTaken, "no more of these are on sale at present")
			f.Field = "quota"
			return f
		}
	}
	return w.allowLimits(e, h)
}

// allowLimits is allow for the customer's limits alone.
func (w *Work) allowLimits(e *eventRow, h *ledger.Hold) error {
	for _, limit := range e.Limits {
		k, n := limited(e.Event, limit, h)
		if n == 0 {
			continue
		}
		c, err := w.limit(k)
		if err != nil {
			return err
		}
		if c.count+n > limit.Max {
			if err := w.expireAll(ExpiredKey{Customer: h.Customer, Area: -1, Max: ledger.ExpireBoundMax}, "limit"); err != nil {
				return err
			}
		}
		if c.count+n > limit.Max && on(GuardLimit) {
			return limitFault(limit)
		}
	}
	return nil
}

func limitFault(limit ledger.Limit) error {
	f := fault.New(fault.LimitReached, "at most %d", limit.Max)
	f.Field = [...]string{"", "event", "category", "show", "document"}[limit.Scope]
	return f
}

// expireCovered ends expired holds that count under a quota.
func (w *Work) expireCovered(e *eventRow, q ledger.Quota, layout *ledger.Layout) error {
	holds, err := w.expired(ExpiredKey{Event: e.ID, Area: -1, Max: ledger.BatchCommandsMax})
	if err != nil {
		return err
	}
	ended := 0
	for _, h := range holds {
		if ended == ledger.ExpireBoundMax {
			break
		}
		if covered(q, layout, &h.Hold) == 0 {
			continue
		}
		did, err := w.expireSound(h, "quota")
		if err != nil {
			return err
		}
		if did {
			ended++
		}
	}
	return nil
}

// count adds a claim to (+1) or takes it from (-1) the counters under which it counts.
func (w *Work) count(e *eventRow, layout *ledger.Layout, h *ledger.Hold, sign int) error {
	for _, q := range e.Quotas {
		if err := w.countQuota(e, q, layout, h, sign); err != nil {
			return err
		}
	}
	return w.countLimits(e, h, sign)
}

// countLimits is count for the customer's limits alone: what somebody received by Transfer counts under those.
func (w *Work) countLimits(e *eventRow, h *ledger.Hold, sign int) error {
	for _, limit := range e.Limits {
		if err := w.countLimit(e, limit, h, sign); err != nil {
			return err
		}
	}
	return nil
}

func (w *Work) countQuota(e *eventRow, q ledger.Quota, layout *ledger.Layout, h *ledger.Hold, sign int) error {
	n := covered(q, layout, h)
	if n == 0 {
		return nil
	}
	k := QuotaKey{e.ID, q.Category, q.Section}
	c, err := w.quota(k)
	if err != nil {
		return err
	}
	if c.count+sign*n < 0 {
		return invariant(e.ID, "the quota of category %d, section %d would count below 0", q.Category, q.Section)
	}
	w.quotaAdd(k, c, sign*n)
	return nil
}

func (w *Work) countLimit(e *eventRow, limit ledger.Limit, h *ledger.Hold, sign int) error {
	k, n := limited(e.Event, limit, h)
	if n == 0 {
		return nil
	}
	c, err := w.limit(k)
	if err != nil {
		return err
	}
	if c.count+sign*n < 0 {
		return invariant(e.ID, "a limit of customer %d would count below 0", h.Customer)
	}
	w.limitAdd(k, c, sign*n)
	return nil
}

// documentLimit is the event's limit for identity documents.
func documentLimit(e *ledger.Event) (ledger.Limit, bool) {
	i := slices.IndexFunc(e.Limits, func(l ledger.Limit) bool { return l.Scope == ledger.PerDocument })
	if i < 0 {
		return ledger.Limit{}, false
	}
	return e.Limits[i], true
}

func documentKey(event id.ID, document string) LimitKey {
	return LimitKey{Scope: ledger.PerDocument, Of: event, Category: -1, Subject: document}
}

// allowDocuments refuses places that would give one identity document too many. Those that are freed by an exchange do
// not count.
func (w *Work) allowDocuments(e *ledger.Event, documents, freed []string) error {
	limit, ok := documentLimit(e)
	if !ok {
		return nil
	}
	here := map[string]int{}
	for _, d := range documents {
		here[d]++
	}
	for _, d := range freed {
		here[d]--
	}
	for _, d := range documents {
		if d == "" || here[d] <= 0 {
			continue
		}
		c, err := w.limit(documentKey(e.ID, d))
		if err != nil {
			return err
		}
		if c.count+here[d] > limit.Max && on(GuardDocument) {
			return limitFault(limit)
		}
	}
	return nil
}

// countDocuments adds or takes away documents.
func (w *Work) countDocuments(e *ledger.Event, documents []string, sign int) error {
	if _, ok := documentLimit(e); !ok {
		return nil
	}
	var m lacking
	for _, d := range documents {
		if d == "" {
			continue
		}
		k := documentKey(e.ID, d)
		c, err := w.limit(k)
		if err := m.note(err); err != nil {
			return err
		}
		if err != nil {
			continue
		}
		if c.count+sign < 0 {
			return invariant(e.ID, "the limit of a document would count below 0")
		}
		w.limitAdd(k, c, sign)
	}
	return m.err
}
