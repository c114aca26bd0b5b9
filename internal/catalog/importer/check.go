package importer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bojanz/currency"

	"onsale/internal/catalog"
)

// check asks about what is known, and cannot be: whatever the catalog would refuse.
func (d *Draft) check() {
	d.checkMoney()
	zone, err := catalog.LoadZone(d.Venue.Zone)
	if err != nil {
		zone = time.UTC // it is asked for
	}
	for i := range d.Performances {
		p := &d.Performances[i]
		e := catalog.Event{
			Format: catalog.FormatVersion, Key: p.Key, State: catalog.Draft, Title: d.Show.Title, Performers: d.Show.Performers, Venue: d.Venue,
			Currency: d.Currency, HoldTTL: catalog.DefaultHoldTTL, PaymentWindow: catalog.DefaultPaymentWindow,
			SeatsPerHoldMax: max(d.PerHold, 1), Limits: catalog.Limits{Event: d.PerCustomer}, Orphans: catalog.Orphans{Mode: catalog.OrphansWarn},
		}
		for _, t := range d.Tiers {
			e.Tiers = append(e.Tiers, catalog.Tier{Category: t.Category, Name: t.Category})
		}
		path := fmt.Sprintf("performances[%d].", i)
		e.Starts = d.instantOf(path+"starts", &p.Starts, zone)
		e.Doors = d.instantOf(path+"doors", &p.Doors, zone)
		e.SaleOpens = d.instantOf(path+"sale.opens", &p.SaleOpens, zone)
		e.SaleCloses = d.instantOf(path+"sale.closes", &p.SaleCloses, zone)
		if e.SaleCloses.IsZero() {
			e.SaleCloses = e.Starts
		}
		if e.SaleCloses.IsZero() { // the start is asked for
			e.SaleCloses = e.SaleOpens.Add(time.Hour)
		}
		var r catalog.Report
		e.Validate(&r, path)
		d.refused(r.Err(), path)
		if len(d.Questions) > questionsMax {
			return
		}
	}
	var r catalog.Report
	d.Show.Validate(&r, "show.")
	d.refused(r.Err(), "")
}

// instantOf reads a time as the event file's reader does; what that refuses is asked for.
func (d *Draft) instantOf(field string, text *string, zone *time.Location) time.Time {
	if *text == "" {
		return time.Time{}
	}
	at, err := catalog.ParseTime(*text, zone)
	if err != nil && !d.asked("venue.zone") {
		d.ask(d.Path, field, cut(fmt.Sprintf("When? %s.", err), 300))
		*text = ""
	}
	return at
}

// refused makes questions of what the catalog refuses, but for what is asked about already.
func (d *Draft) refused(err error, path string) {
	var refused *catalog.RefusedError
	if !errors.As(err, &refused) {
		return
	}
	for _, p := range refused.Problems {
		field := p.Key
		if own := strings.TrimPrefix(p.Key, path); !strings.HasPrefix(own, "starts") && !strings.HasPrefix(own, "doors") && !strings.HasPrefix(own, "sale") && !strings.HasPrefix(own, "key") {
			field = own // it stands at the top of the file
		}
		switch field {
		case "title", "performers":
			field = "show." + field
		}
		if strings.HasSuffix(field, "].name") && strings.HasPrefix(field, "tiers[") {
			field = strings.TrimSuffix(field, "name") + "category"
		}
		if !d.asked(field) && !(strings.HasPrefix(field, "tiers") && d.asked("tiers")) {
			d.ask(d.Path, field, fmt.Sprintf("What is right? The data's value %s.", cut(p.Message, 200)))
		}
	}
}

// checkMoney asks about a currency that is none, and prices that it cannot have.
func (d *Draft) checkMoney() {
	if d.Currency == "" {
		return
	}
	digits, known := currency.GetDigits(d.Currency)
	if !known {
		d.ask(d.Path, "currency", fmt.Sprintf("In which currency is it sold? The data says %s, which is none.", quoted(d.Currency)))
		d.Currency = ""
		return
	}
	for i := range d.Tiers {
		face := d.Tiers[i].Face
		_, fraction, _ := strings.Cut(face, ".")
		amount, err := currency.NewAmount(face, d.Currency)
		if face == "" {
			continue
		}
		minor, err2 := int64(0), err
		if err == nil {
			minor, err2 = amount.Int64()
		}
		if len(strings.TrimRight(fraction, "0")) > int(digits) || err2 != nil || minor > catalog.AmountMax {
			d.ask(d.Path, fmt.Sprintf("tiers[%d].face", i), fmt.Sprintf("What is the price? The data says %s, which %s cannot be.", quoted(face), d.Currency))
			d.Tiers[i].Face = ""
		}
	}
}
