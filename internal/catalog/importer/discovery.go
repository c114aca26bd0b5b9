package importer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"onsale/internal/catalog"
)

// discovery reads an event, a venue, or a page of either. A venue alone is the beginning of a draft.
func (c *converter) discovery(value any) {
	top := object(value)
	if top == nil {
		for i, one := range list(value) {
			c.discoveryPart(fmt.Sprintf("[%d]", i), object(one))
		}
		return
	}
	c.discoveryPart("", top)
	if pages := str(at(top, "page", "totalPages")); pages != "" && pages != "1" && pages != "0" {
		c.result.Notes = append(c.result.Notes, fmt.Sprintf("this is page %s (counted from 0) of %s: convert the others, too", cut(str(at(top, "page", "number")), 20), cut(pages, 20)))
	}
}

func (c *converter) discoveryPart(path string, part map[string]any) {
	events, venues := list(at(part, "_embedded", "events")), list(at(part, "_embedded", "venues"))
	switch {
	case str(part["type"]) == "event" || has(part, "dates"):
		c.discoveryEvent(dot(path, "event"), part)
	case str(part["type"]) == "venue":
		c.discoveryVenue(dot(path, "venue"), part)
	case len(events) > 0:
		for i, e := range events {
			c.discoveryEvent(dot(path, fmt.Sprintf("_embedded.events[%d]", i)), object(e))
		}
	case len(venues) > 0:
		for i, v := range venues {
			c.discoveryVenue(dot(path, fmt.Sprintf("_embedded.venues[%d]", i)), object(v))
		}
	default:
		c.skip(dot(path, "_embedded"), "holds neither events nor venues: nothing to import")
	}
}

func dot(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (c *converter) discoveryVenue(path string, v map[string]any) {
	d := c.draft(path)
	if d == nil {
		return
	}
	d.place(path, v)
	d.ask(path, "show", "Which show plays here? The data has only the house: its show, prices and dates are missing.")
	c.done(d)
}

var notToUse = regexp.MustCompile(`(?i)do not use|^test\b|\bduplicate\b`)

// place takes what a Discovery venue says.
func (d *Draft) place(path string, v map[string]any) {
	d.ID, d.URL = str(v["id"]), str(v["url"])
	d.Venue.Name = str(v["name"])
	d.Venue.City = str(at(v, "city", "name"))
	d.Venue.Country = strings.ToUpper(str(at(v, "country", "countryCode")))
	if len(d.Venue.Country) != 2 && d.Venue.Country != "" {
		d.ask(path+".country", "venue.country", fmt.Sprintf("Which country is meant? Two letters; the data says %s.", quoted(d.Venue.Country)))
		d.Venue.Country = ""
	}
	d.zoneOf(path+".timezone", str(v["timezone"]))
	if notToUse.MatchString(d.Venue.Name) || v["test"] == true {
		d.ask(path+".name", "venue.name", fmt.Sprintf("Is this a real house? The data calls it %s.", quoted(d.Venue.Name)))
	}
}

func (c *converter) discoveryEvent(path string, e map[string]any) {
	d := c.draft(path)
	if d == nil {
		return
	}
	venues := list(at(e, "_embedded", "venues"))
	if len(venues) > 0 {
		d.place(path+"._embedded.venues[0]", object(venues[0]))
	}
	if len(venues) > 1 {
		d.ask(path+"._embedded.venues", "venue.name", fmt.Sprintf("In which of %d houses is it? The first is here.", len(venues)))
	}
	d.ID, d.URL = str(e["id"]), str(e["url"])
	if catalog.CheckKey(d.ID) == "" {
		d.Show.Key = d.ID
	}
	d.Show.Title = str(e["name"])
	if e["test"] == true {
		d.ask(path+".test", "show.title", "Is this a real event? The data says that it is a test.")
	}
	description, _ := e["info"].(string)
	if description == "" {
		description, _ = e["description"].(string)
	}
	d.Show.Description = prose(description)
	for _, a := range list(at(e, "_embedded", "attractions")) {
		d.Show.Performers = append(d.Show.Performers, str(at(a, "name")))
	}
	d.Image = largest(list(e["images"]))
	d.discoveryZone(path, str(at(e, "dates", "timezone")))
	d.answerZone(c.o.Zone)
	d.discoveryDates(path, e)
	d.discoveryPrices(path, e)
	c.done(d)
}

// discoveryZone compares the event's zone with the venue's.
func (d *Draft) discoveryZone(path, zone string) {
	venue := d.Venue.Zone
	d.zoneOf(path+".dates.timezone", zone)
	if venue != "" && zone != "" && venue != zone {
		d.ask(path+".dates.timezone", "venue.zone", "In which zone is the house? The data names two.", venue, zone)
		d.Venue.Zone = ""
	}
}

func (d *Draft) discoveryDates(path string, e map[string]any) {
	start := object(at(e, "dates", "start"))
	path += ".dates"
	var p Performance
	const field = "performances[0].starts"
	date, clock := str(start["localDate"]), str(start["localTime"])
	switch {
	case start["dateTBD"] == true || start["dateTBA"] == true:
		d.ask(path+".start", field, fmt.Sprintf("When is it? The data says that the date is not fixed yet (%s).", quoted(date)))
	case (start["timeTBA"] == true || start["noSpecificTime"] == true) && date != "":
		if m, ok := readMoment(date); ok && !m.placeholder() {
			d.ask(path+".start", field, fmt.Sprintf("At what time on %s does it start? The data says that the time is not fixed yet.", date), date+"THH:MM")
		} else {
			d.ask(path+".start", field, fmt.Sprintf("When is it? The data says %s, and that the time is not fixed yet.", quoted(date)))
		}
	case date != "" && clock != "":
		p.Starts = d.when(path+".start.localDate", field, date+"T"+clock)
		d.instant(path+".start.dateTime", &p, str(start["dateTime"]))
	case date != "":
		p.Starts = d.when(path+".start.localDate", field, date)
	default:
		p.Starts = d.when(path+".start.dateTime", field, str(start["dateTime"]))
	}
	p.Doors = d.door(path+".doorsTimes", "performances[0].doors", str(at(e, "doorsTimes", "localTime")), p.Starts)
	public := object(at(e, "sales", "public"))
	if opens := str(public["startDateTime"]); opens != "" {
		if m, ok := readMoment(opens); ok && !m.placeholder() && !m.date && public["startTBD"] != true && public["startTBA"] != true {
			p.SaleOpens = m.written()
		} else {
			d.ask(path, "performances[0].sale.opens", fmt.Sprintf("When does the sale open? The data says %s, which is not fixed. A draft may leave it out.", quoted(opens)))
		}
	}
	if closes := str(public["endDateTime"]); closes != "" {
		if m, ok := readMoment(closes); ok && !m.placeholder() && !m.date {
			p.SaleCloses = m.written()
		} else {
			d.ask(path, "performances[0].sale.closes", fmt.Sprintf("When does the sale close? The data says %s. Left out, it closes at the start.", quoted(closes)))
		}
	}
	if status := str(at(e, "dates", "status", "code")); status != "" && status != "onsale" && status != "offsale" {
		d.ask(path+".status", field, fmt.Sprintf("Is it to be sold? The data says that it is %s.", quoted(status)))
	}
	d.Performances = append(d.Performances, p)
}

// instant compares the local start with the instant that the data has beside it.
func (d *Draft) instant(path string, p *Performance, text string) {
	zone, err := catalog.LoadZone(d.Venue.Zone)
	m, ok := readMoment(text)
	if p.Starts == "" || err != nil || !ok || m.offset == "" {
		return
	}
	local, err1 := catalog.ParseTime(p.Starts, zone)
	said, err2 := catalog.ParseTime(m.written(), zone)
	if err1 == nil && err2 == nil && !local.Equal(said) {
		d.ask(path, "performances[0].starts", "When does it start? The local time and the instant of the data differ.", p.Starts, m.written())
		p.Starts = ""
	}
}

// discoveryPrices takes a price range that is one price; of others the categories are to be asked for.
func (d *Draft) discoveryPrices(path string, e map[string]any) {
	currencies := map[string]bool{}
	for i, one := range d.atMost(path+".priceRanges", list(e["priceRanges"])) {
		r := object(one)
		at := fmt.Sprintf("%s.priceRanges[%d]", path, i)
		if currency := str(r["currency"]); currency != "" {
			currencies[currency] = true
			d.Currency = currency
		}
		least, most, kind := str(r["min"]), str(r["max"]), str(r["type"])
		field := fmt.Sprintf("tiers[%d]", len(d.Tiers))
		if least != most || least == "" {
			d.ask(at, "tiers", fmt.Sprintf("What does each category cost? The data says only from %s to %s (%s).", quoted(least), quoted(most), kind))
			continue
		}
		d.ask(at, field+".category", fmt.Sprintf("Which category of the plan costs %s? The data calls the price %s.", quoted(least), quoted(kind)))
		d.Tiers = append(d.Tiers, Tier{Face: d.price(at, field+".face", least)})
	}
	if len(currencies) > 1 {
		d.ask(path+".priceRanges", "currency", "In which currency is it sold? The data has several.", sortedKeys(currencies)...)
		d.Currency = ""
	}
}

// largest is the address of the widest image.
func largest(images []any) string {
	best, url := int64(-1), ""
	for _, one := range images {
		width, _ := at(one, "width").(json.Number)
		if n, _ := width.Int64(); n > best {
			best, url = n, str(at(one, "url"))
		}
	}
	return url
}
