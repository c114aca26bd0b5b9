package httpapi

import (
	"fmt"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/ledger"
)

// apply changes what was named, but for key, plan and currency. What cannot be read is a fault; what the catalog does not
// allow it says itself.
func (b *EventEdit) apply(e *catalog.Event) error {
	if b.State != nil {
		switch *b.State {
		case "draft":
			e.State = catalog.Draft
		case "scheduled":
			e.State = catalog.OnSale
		default:
			return &fault.Error{Code: fault.Invalid, Field: "state", Detail: "draft or scheduled"}
		}
	}
	set(&e.Title, b.Title)
	set(&e.Performers, b.Performers)
	set(&e.Venue, b.Venue)
	set(&e.TaxIncluded, b.TaxIncluded)
	if b.Prices != nil {
		e.Tiers = make([]catalog.Tier, len(*b.Prices))
		for i, p := range *b.Prices {
			e.Tiers[i] = catalog.Tier(p)
		}
	}
	set(&e.Limits, b.Limits)
	set(&e.SeatsPerHoldMax, b.HoldMax)
	set(&e.ExtendMax, b.ExtendMax)
	set(&e.Orphans, b.Orphans)
	set(&e.Documents, b.Documents)
	set(&e.Gates, b.Gates)
	set(&e.Waitlist, b.Waitlist)
	set(&e.Holding, b.Holding)
	setMS(&e.OfferTTL, b.OfferTTLMS)
	if b.HoldTTLMS != nil {
		e.HoldTTL = ledger.Duration(*b.HoldTTLMS)
	}
	if b.PaymentWindowMS != nil {
		e.PaymentWindow = ledger.Duration(*b.PaymentWindowMS)
	}
	return b.applyTimes(e, e.Venue.Location())
}

// applyTimes reads the times, which may be the venue's local ones.
func (b *EventEdit) applyTimes(e *catalog.Event, zone *time.Location) error {
	c := &clockReader{zone: zone}
	c.read("starts_at", b.Starts, &e.Starts)
	c.read("doors_at", b.Doors, &e.Doors)
	c.read("sale_opens_at", b.SaleOpens, &e.SaleOpens)
	c.read("sale_closes_at", b.SaleCloses, &e.SaleCloses)
	if b.Room != nil {
		b.Room.apply(&e.Room, c)
	}
	c.read("transfers_until", b.Transfers, &e.Transfers.Until)
	if b.Refunds != nil {
		e.Refunds = catalog.RefundRule{FeeBP: b.Refunds.FeeBP, FeePlace: b.Refunds.FeePlace}
		c.read("refunds.until", &b.Refunds.Until, &e.Refunds.Until)
	}
	if b.Exchanges != nil {
		e.Exchanges = catalog.ExchangeRule{Fee: b.Exchanges.Fee}
		c.read("exchanges.until", &b.Exchanges.Until, &e.Exchanges.Until)
	}
	if b.Quotas != nil {
		e.Quotas = make([]catalog.Quota, len(*b.Quotas))
		for i, q := range *b.Quotas {
			e.Quotas[i] = catalog.Quota{Category: q.Category, Section: q.Section, Max: q.Max}
			for k, s := range q.Steps {
				step := catalog.QuotaStep{Max: s.Max}
				c.read(fmt.Sprintf("quotas[%d].steps[%d].at", i, k), &s.At, &step.At)
				e.Quotas[i].Steps = append(e.Quotas[i].Steps, step)
			}
		}
	}
	return c.err
}

// A clockReader reads times of one zone and remembers the first that is none.
type clockReader struct {
	zone *time.Location
	err  error
}

func (c *clockReader) read(field string, text *string, into *time.Time) {
	switch {
	case text == nil || c.err != nil:
	case *text == "":
		*into = time.Time{}
	default:
		t, err := catalog.ParseTime(*text, c.zone)
		if err != nil {
			c.err = &fault.Error{Code: fault.Invalid, Field: field, Detail: fmt.Sprintf("%.400s", err), Cause: err}
			return
		}
		*into = t
	}
}
