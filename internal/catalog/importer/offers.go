package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"onsale/internal/catalog"
)

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

// An offer is what schema.org says of one price.
type offer struct {
	path, name, price, currency, from, through string
	soldOut                                    bool
}

// offers takes the prices of an event: those that are one price for one named thing; the rest is asked for.
func (d *Draft) offers(o map[string]any) {
	var all []offer
	for i, one := range d.atMost(d.Path+".offers", list(o["offers"])) {
		path := d.Path + ".offers"
		if _, many := o["offers"].([]any); many {
			path = fmt.Sprintf("%s[%d]", path, i)
		}
		all = append(all, d.offer(path, object(one))...)
	}
	if len(all) > catalog.TiersMax { // aggregates of offers
		d.ask(d.Path+".offers", "tiers", fmt.Sprintf("What does each category cost? There are %d prices, and an event has at most %d.", len(all), catalog.TiersMax))
		return
	}
	if len(all) == 0 {
		if o["isAccessibleForFree"] == true && !d.asked("tiers") {
			d.ask(d.Path+".isAccessibleForFree", "tiers", "Are there tickets, and for which categories? The data says that it is free.")
		}
		return
	}
	d.offerCurrency(all)
	if d.changing(all) {
		return
	}
	for _, one := range all {
		field := fmt.Sprintf("tiers[%d]", len(d.Tiers))
		if one.name == "" {
			d.ask(one.path, field+".category", fmt.Sprintf("Which category of the plan costs %s %s?", one.price, one.currency))
		}
		if one.soldOut {
			d.ask(one.path+".availability", field, fmt.Sprintf("Is %s to be sold at all? The data says that it is sold out.", quoted(strings.TrimSpace(one.name+" "+one.price))))
		}
		d.Tiers = append(d.Tiers, Tier{Category: one.name, Face: d.price(one.path+".price", field+".face", one.price)})
	}
	if len(d.Performances) == 1 {
		p := &d.Performances[0]
		p.SaleOpens = d.offered(all, "opens", func(o offer) string { return o.from })
		p.SaleCloses = d.offered(all, "closes", func(o offer) string { return o.through })
	}
}

// offered is when all offers begin or end; it is asked for where they differ or say only a day.
func (d *Draft) offered(all []offer, what string, of func(offer) string) string {
	times := map[string]bool{}
	for _, one := range all {
		times[of(one)] = true
	}
	field := "performances[0].sale." + what
	if len(times) > 1 {
		d.ask(d.Path+".offers", field, fmt.Sprintf("When is it that the sale %s? The data has not the same for each price.", what),
			slices.DeleteFunc(sortedKeys(times), func(s string) bool { return s == "" })...)
		return ""
	}
	text := of(all[0])
	m, ok := readMoment(text)
	switch {
	case text == "":
		return ""
	case !ok || m.date || m.placeholder():
		d.ask(all[0].path, field, fmt.Sprintf("When is it that the sale %s? The data says %s.", what, quoted(text)))
		return ""
	}
	return d.checked(all[0].path, field, m)
}

// offer reads one offer; an aggregate is what its own offers say.
func (d *Draft) offer(path string, o map[string]any) []offer {
	if slices.Contains(types(o), "AggregateOffer") {
		var all []offer
		for i, one := range d.atMost(path+".offers", list(o["offers"])) {
			if nested := object(one); nested != nil && !slices.Contains(types(nested), "AggregateOffer") {
				all = append(all, d.offer(fmt.Sprintf("%s.offers[%d]", path, i), nested)...)
			}
		}
		if len(all) == 0 {
			d.Currency = strings.ToUpper(str(o["priceCurrency"]))
			d.ask(path, "tiers", fmt.Sprintf("What does each category cost? The data says only from %s to %s.", quoted(str(o["lowPrice"])), quoted(str(o["highPrice"]))))
		}
		return all
	}
	price, currency := str(o["price"]), str(o["priceCurrency"])
	if specs := list(o["priceSpecification"]); price == "" && len(specs) == 1 {
		price, currency = str(at(specs[0], "price")), str(at(specs[0], "priceCurrency"))
	} else if price == "" && len(specs) > 1 {
		d.ask(path+".priceSpecification", "tiers", fmt.Sprintf("What does each category cost? The data has %d specifications of the price.", len(specs)))
	}
	if price == "" {
		return nil // a link: prices are asked for, if no other offer has one
	}
	return []offer{{path: path, name: cut(str(o["name"]), 100), price: price, currency: strings.ToUpper(currency), from: str(o["validFrom"]), through: str(o["validThrough"]),
		soldOut: strings.HasSuffix(str(o["availability"]), "SoldOut")}}
}

func (d *Draft) offerCurrency(all []offer) {
	currencies := map[string]bool{}
	for _, one := range all {
		if one.currency != "" {
			currencies[one.currency] = true
		}
	}
	switch keys := sortedKeys(currencies); {
	case len(keys) > 1:
		d.ask(d.Path+".offers", "currency", "In which currency is it sold? The data has several.", keys...)
	case len(keys) == 1:
		d.Currency = keys[0]
	}
}

// changing asks about prices of one thing that change with time, or that cannot be told apart; then no tier is taken.
func (d *Draft) changing(all []offer) bool {
	names, prices, timed := map[string]bool{}, []string{}, false
	for _, one := range all {
		names[one.name] = true
		timed = timed || one.through != ""
		prices = append(prices, one.price)
	}
	if len(names) == len(all) {
		return false
	}
	why := "the data does not say for what"
	if timed {
		why = "they hold at different times"
	}
	d.ask(d.Path+".offers", "tiers", fmt.Sprintf("What does each category cost? There are %d prices, and %s.", len(all), why), prices...)
	return true
}
