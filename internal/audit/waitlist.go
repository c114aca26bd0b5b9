package audit

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"slices"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The waitlist (A23): each wish and its offers agree, nobody is on a list twice or has more offers than one person gets, and
// nobody was offered what somebody before them waited for. The last is judged by the notices, which say when a wish waited;
// only simple cases, in which no other reason can have made the worker pass somebody over.

const (
	// waitlistCounter is the category and section under which the ledger counts an event's open wishes among its quotas.
	waitlistCounter = -2
	// turnGrace is how long somebody must have waited before an offer for it to be held against it: the worker had read the list
	// by then.
	turnGrace = ledger.Duration(5_000)
	// turnPairsMax is how many pairs of an offer and somebody who waited are looked at.
	turnPairsMax = 2_000_000
)

const wishColumns = `wish_id, event_id, customer_id, state, quantity, least, categories, sections, together, price_max, line_order, hold_id, offer_count, sequence`

type wishRow struct {
	id, event, customer  id.ID
	state                ledger.WishState
	quantity, least      int
	categories, sections string
	together             int
	price, order         int64
	hold                 id.ID
	offers               int
	notices              int64
}

func scanWish(r *sql.Rows, v *wishRow) error {
	return r.Scan(&v.id, &v.event, &v.customer, &v.state, &v.quantity, &v.least, &v.categories, &v.sections, &v.together, &v.price, &v.order,
		&v.hold, &v.offers, &v.notices)
}

// wants says whether a place would do, going by its category and section alone.
func (v *wishRow) wants(category, section int16) bool {
	in := func(list string, name int16) bool {
		var names []int16
		return json.Unmarshal([]byte(list), &names) == nil && (len(names) == 0 || slices.Contains(names, name))
	}
	return in(v.categories, category) && in(v.sections, section)
}

// An offerBrief is a hold that came of an offer.
type offerBrief struct {
	wish, customer id.ID
	state          ledger.HoldState
	created        ledger.Time
	places         [][2]int16 // category and section of each
	gone           bool       // some were given back: they had been bought
}

// offered takes a hold that came of an offer.
func (h *hall) offered(v *holdRow) {
	if v.offer == 0 {
		return
	}
	o := &offerBrief{wish: v.offer, customer: v.customer, state: v.state, created: v.created}
	for _, l := range v.lines {
		section, _ := h.section(v.area, l.seat)
		o.places = append(o.places, [2]int16{l.category, section})
		o.gone = o.gone || l.gone
	}
	if h.offers == nil {
		h.offers = map[id.ID]*offerBrief{}
	}
	h.offers[v.id] = o
}

// A lineup is what is known of an event's list, until the notices have been read.
type lineup struct {
	wishes map[id.ID]*wishRow
	offers map[id.ID]*offerBrief
	free   bool // of limits and quotas: nobody was passed over for them
	told   map[id.ID][]wishNotice
}

type wishNotice struct {
	at   ledger.Time
	kind string
}

// waitlist checks the wishes of the event.
func (h *hall) waitlist(rows *table[wishRow]) {
	l := &lineup{wishes: map[id.ID]*wishRow{}, offers: h.offers, told: map[id.ID][]wishNotice{}}
	l.free = len(h.event.Limits)+len(h.event.Quotas) == 0
	waits := map[id.ID]id.ID{}
	for v := range rows.all() {
		l.wishes[v.id] = &v
		h.a.saw(CheckWaitlist, 1)
		h.wish(&v)
		if v.state != ledger.WishWaiting && v.state != ledger.WishOffered {
			continue
		}
		h.quotas[quotaKey{waitlistCounter, waitlistCounter}]++
		if other := waits[v.customer]; other != 0 {
			h.bad(CheckWaitlist, wishText(v.id), "its customer waits by %s, too", wishText(other))
		}
		waits[v.customer] = v.id
	}
	made := map[id.ID]int{}
	for _, hold := range sortedKeys(h.offers) {
		o := h.offers[hold]
		made[o.wish]++
		switch w := l.wishes[o.wish]; {
		case w == nil:
			h.bad(CheckReferences, holdText(hold), "its wish %s is not there", wishText(o.wish))
		case w.customer != o.customer:
			h.bad(CheckWaitlist, holdText(hold), "it is an offer to somebody else than whose wish %s is", wishText(o.wish))
		case made[o.wish] > w.offers:
			h.bad(CheckWaitlist, wishText(o.wish), "it says %d offers, there are more", w.offers)
		}
	}
	if len(l.wishes) > 0 {
		h.a.lineups[h.id] = l
		for wish := range l.wishes {
			h.a.wishes[wish] = l
		}
	}
}

// wish checks one wish against its last offer.
func (h *hall) wish(v *wishRow) {
	name := wishText(v.id)
	switch {
	case !stated(v.state):
		h.bad(CheckWaitlist, name, "it has no state (%d)", v.state)
		return
	case v.least < 1 || v.least > v.quantity:
		h.bad(CheckWaitlist, name, "it is for %d to %d places", v.least, v.quantity)
	case v.offers < 0 || v.offers > ledger.WishOffersMax:
		h.bad(CheckWaitlist, name, "it has had %d offers, one person gets %d", v.offers, ledger.WishOffersMax)
	}
	o := h.offers[v.hold]
	if v.state == ledger.WishOffered && o == nil {
		h.bad(CheckWaitlist, name, "it is OFFERED, but %s is not there, or no offer", holdText(v.hold))
	}
	if o == nil { // holds that came to nothing are deleted after a day
		return
	}
	switch {
	case o.wish != v.id:
		h.bad(CheckWaitlist, name, "its offer %s is of %s", holdText(v.hold), wishText(o.wish))
	case v.state == ledger.WishTaken && o.state == ledger.HoldLive:
		h.bad(CheckWaitlist, name, "it is TAKEN, and its offer %s is not paid", holdText(v.hold))
	case v.state == ledger.WishWaiting && o.state == ledger.HoldLive:
		h.bad(CheckWaitlist, name, "it waits, and its offer %s is live", holdText(v.hold))
	}
	if v.state != ledger.WishOffered { // it may have been changed since
		return
	}
	fits := len(o.places) >= v.least && len(o.places) <= v.quantity
	for _, p := range o.places {
		fits = fits && v.wants(p[0], p[1])
	}
	if !fits {
		h.bad(CheckWaitlist, name, "its offer %s is not what was wished for", holdText(v.hold))
	}
}

func stated(s ledger.WishState) bool { return s >= ledger.WishWaiting && s <= ledger.WishWithdrawn }

func wishText(wish id.ID) string { return wish.Text(id.Wish) }

// wishNote takes a notice that is of no order. It says whether it is of a wish.
func (a *audit) wishNote(n *noticeRow) bool {
	l := a.wishes[n.order]
	if l == nil {
		return false
	}
	a.saw(CheckOutbox, 1)
	w, name := l.wishes[n.order], wishText(n.order)
	var says struct {
		said
		Wish string `json:"wish_id"`
	}
	if err := json.Unmarshal([]byte(n.body), &says); err != nil || says.Format < 1 || says.Wish != name {
		a.bad(CheckOutbox, w.event, name, "notice %d cannot be read, or is about %q", n.sequence, says.Wish)
	}
	if !wishKinds[n.kind] {
		a.bad(CheckOutbox, w.event, name, "notice %d is of kind %q, which wishes do not have", n.sequence, n.kind)
	}
	if n.sequence == w.notices && stated(w.state) && says.State != w.state.String() {
		a.bad(CheckI12, w.event, name, "it is %s, its last notice says %q", w.state, says.State)
	}
	if n.sequence > w.notices {
		a.bad(CheckI12, w.event, name, "notice %d is one more than it has", n.sequence)
	}
	if n.sequence == int64(len(l.told[n.order]))+1 { // else the first are gone, and nothing is known of it
		l.told[n.order] = append(l.told[n.order], wishNotice{n.created, n.kind})
	}
	return true
}

var wishKinds = map[string]bool{
	ledger.NoticeWishAdded: true, ledger.NoticeWishOffered: true, ledger.NoticeWishLapsed: true, ledger.NoticeWishEnded: true,
}

// turns judges of each event whether the first was served first, once the notices are read.
func (a *audit) turns() {
	pairs := 0
	for _, event := range sortedKeys(a.lineups) {
		l := a.lineups[event]
		if !l.free {
			continue
		}
		for _, hold := range sortedKeys(l.offers) {
			o := l.offers[hold]
			to := l.wishes[o.wish]
			if to == nil {
				continue
			}
			place, waits := l.waited(to, o.created, 0)
			if !waits {
				continue
			}
			for _, wish := range sortedKeys(l.wishes) {
				if pairs++; pairs > turnPairsMax {
					return
				}
				first := l.wishes[wish]
				if before, waited := l.waited(first, o.created, turnGrace); waited && before.Compare(place) < 0 && first.wouldTake(o) {
					a.bad(CheckWaitlist, event, wishText(wish), "it waited for what was offered to %s, which goes behind it", wishText(to.id))
				}
			}
		}
	}
}

// waited says whether a wish was waiting just before an instant, and had been for a while, and its place on the list then. One
// that was changed meanwhile is not judged.
func (l *lineup) waited(w *wishRow, at ledger.Time, grace ledger.Duration) (place ledger.WishCursor, waits bool) {
	told := l.told[w.id]
	if int64(len(told)) != w.notices {
		return place, false
	}
	offers, added := 0, 0
	for _, n := range told {
		if n.kind == ledger.NoticeWishOffered {
			offers++
		}
		if n.kind == ledger.NoticeWishAdded {
			added++
		}
	}
	if added != 1 {
		return place, false
	}
	before := w.offers - offers // brought along from earlier wishes
	since := ledger.Time(0)
	for _, n := range told {
		if n.at >= at {
			if since == 0 || n.kind == ledger.NoticeWishEnded && n.at == at {
				return place, false
			}
			break
		}
		switch n.kind {
		case ledger.NoticeWishAdded, ledger.NoticeWishLapsed:
			since = n.at
		case ledger.NoticeWishOffered:
			since, before = 0, before+1
		default:
			since = 0
		}
	}
	return ledger.WishCursor{Offers: before, Order: w.order, Wish: w.id}, since != 0 && since+ledger.Time(grace) <= at
}

// wouldTake says whether somebody would surely have taken some of what an offer is of.
func (v *wishRow) wouldTake(o *offerBrief) bool {
	if v.price > 0 || v.together != 0 && v.least > 1 {
		return false
	}
	n := 0
	for _, p := range o.places {
		if v.wants(p[0], p[1]) {
			n++
		}
	}
	return n >= cmp.Or(v.least, 1)
}
