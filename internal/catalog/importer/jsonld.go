package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// eventTypes are schema.org's Event and its kinds that people attend.
var eventTypes = map[string]bool{
	"Event": true, "BusinessEvent": true, "ChildrensEvent": true, "ComedyEvent": true, "CourseInstance": true, "DanceEvent": true,
	"EducationEvent": true, "EventSeries": true, "ExhibitionEvent": true, "Festival": true, "FoodEvent": true, "Hackathon": true,
	"LiteraryEvent": true, "MusicEvent": true, "SaleEvent": true, "ScreeningEvent": true, "SocialEvent": true, "SportsEvent": true,
	"TheaterEvent": true, "VisualArtsEvent": true, "ConferenceEvent": true, "PerformingArtsEvent": true,
	"PublicationEvent": true, "BroadcastEvent": true, "OnDemandEvent": true,
}

// broadcasts are kinds that are seen from elsewhere.
var broadcasts = map[string]bool{"PublicationEvent": true, "BroadcastEvent": true, "OnDemandEvent": true}

// types are the kinds of an object, without the vocabulary's address.
func types(o map[string]any) []string {
	var all []string
	for _, t := range list(o["@type"]) {
		name := str(t)
		for _, prefix := range []string{"https://schema.org/", "http://schema.org/", "schema:"} {
			name = strings.TrimPrefix(name, prefix)
		}
		all = append(all, name)
	}
	return all
}

// jsonld finds the events in every block.
func (c *converter) jsonld(value any) {
	blocks, path := list(value), func(i int) string { return fmt.Sprintf("[%d]", i) }
	if o := object(value); o != nil {
		blocks, path = []any{o}, func(int) string { return "" }
	}
	for i, block := range blocks {
		w := walk{c: c}
		w.look(path(i), block, origin{}, 0)
		if w.found == 0 {
			what := "its type is not said"
			if kinds := types(object(block)); len(kinds) > 0 {
				what = "it is a " + cut(strings.Join(kinds, ", "), 80)
			}
			c.skip(dot(path(i), "@type"), "holds no Event (%s): nothing to import", what)
		}
	}
}

// An origin is what an event was found in.
type origin struct {
	person string   // the type of a reservation or an action of one person
	of     []string // performers, where it was found in a performer's own block
}

// A walk goes through one block.
type walk struct {
	c     *converter
	found int
}

// within are the keys of an event under which there may be other ones.
var within = map[string]bool{"subEvent": true, "subEvents": true, "broadcastOfEvent": true, "hasPart": true, "event": true, "events": true}

func (w *walk) look(path string, value any, from origin, depth int) {
	if depth > depthMax {
		return
	}
	if many, ok := value.([]any); ok {
		for i, one := range many {
			w.look(fmt.Sprintf("%s[%d]", path, i), one, from, depth+1)
		}
		return
	}
	o := object(value)
	if o == nil {
		return
	}
	kinds := types(o)
	isEvent := slices.ContainsFunc(kinds, func(k string) bool { return eventTypes[k] })
	if isEvent {
		w.found++
		w.c.event(path, o, kinds, from)
	}
	for _, kind := range kinds {
		switch {
		case strings.HasSuffix(kind, "Reservation"), strings.HasSuffix(kind, "Action"):
			from.person = kind
		case kind == "MusicGroup" || kind == "PerformingGroup" || kind == "TheaterGroup" || kind == "DanceGroup" || kind == "Person":
			if name, _ := w.c.pick(o["name"]); name != "" {
				from.of = []string{name}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if key != "superEvent" && key != "@context" && (!isEvent || within[key]) {
			w.look(dot(path, key), o[key], from, depth+1)
		}
	}
}

// pick is a text that may come in several languages; others are those that were not taken.
func (c *converter) pick(v any) (text string, others []string) {
	var all []string
	for _, one := range list(v) {
		o := object(one)
		text := str(one)
		if o != nil {
			if text = str(o["@value"]); text == "" {
				text = str(o["name"])
			}
			if c.o.Language != "" && strings.EqualFold(str(o["@language"]), c.o.Language) {
				return text, nil
			}
		}
		if text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	return all[0], all[1:]
}

func (c *converter) event(path string, o map[string]any, kinds []string, from origin) {
	d := c.draft(path)
	if d == nil {
		return
	}
	name, others := c.pick(o["name"])
	if d.Show.Title = name; len(others) > 0 {
		d.ask(path+".name", "show.title", "Which is its title? The data has several.", append([]string{name}, others...)...)
		d.Show.Title = ""
	}
	d.ID, d.URL = str(o["@id"]), str(o["url"])
	if description, _ := c.pick(o["description"]); description != "" {
		if whole, ok := o["description"].(string); ok {
			description = whole // with its lines
		}
		d.Show.Description = prose(description)
	}
	for _, image := range list(o["image"]) {
		if d.Image == "" {
			if d.Image = str(image); d.Image == "" {
				d.Image = str(at(image, "url"))
			}
		}
	}
	for _, key := range []string{"performer", "performers", "actor", "competitor"} {
		for _, p := range list(o[key]) {
			who, _ := c.pick(p)
			d.Show.Performers = append(d.Show.Performers, who)
		}
	}
	if len(d.Show.Performers) == 0 {
		d.Show.Performers = from.of
	}
	c.doubts(d, o, kinds, from)
	c.location(d, o["location"])
	d.schedule(o)
	d.answerZone(c.o.Zone)
	d.dates(o)
	d.offers(o)
	c.done(d)
}

// doubts asks whether it is an event to be sold at all.
func (c *converter) doubts(d *Draft, o map[string]any, kinds []string, from origin) {
	if from.person != "" {
		d.ask(d.Path, "show", fmt.Sprintf("Is this an event of yours? It was found in one person's %s.", cut(from.person, 60)))
	}
	for _, kind := range kinds {
		if broadcasts[kind] {
			d.ask(d.Path+".@type", "show", fmt.Sprintf("Is there something to attend? It is a %s.", kind))
		}
		if kind == "EventSeries" {
			d.ask(d.Path+".@type", "performances", "Which performances has the series? The data has the series as a whole.")
		}
	}
	status := str(o["eventStatus"])
	for _, bad := range []string{"Cancelled", "Postponed", "Rescheduled", "MovedOnline"} {
		if strings.HasSuffix(status, "Event"+bad) {
			d.ask(d.Path+".eventStatus", "state", fmt.Sprintf("Is it to be sold, and when? The data says that it is %s.", strings.ToLower(bad)))
		}
	}
	if strings.HasSuffix(str(o["eventAttendanceMode"]), "OnlineEventAttendanceMode") {
		d.ask(d.Path+".eventAttendanceMode", "venue.name", "Is there a house? The data says that it takes place online.")
	}
	if has(o, "previousStartDate") && status == "" {
		d.ask(d.Path+".previousStartDate", "performances[0].starts", "Which date holds? The data has an earlier one, too.")
	}
}

// location takes the place. Addresses in one line are not taken apart: they are shown in the question.
func (c *converter) location(d *Draft, value any) {
	path := d.Path + ".location"
	var places []any
	for _, one := range list(value) {
		if !slices.Contains(types(object(one)), "VirtualLocation") {
			places = append(places, one)
		}
	}
	if len(places) == 0 {
		if value != nil {
			d.ask(path, "venue.name", "Is there a house? The data has only a place online.")
		}
		return
	}
	if len(places) > 1 {
		d.ask(path, "venue.name", fmt.Sprintf("In which of %d places is it? The first is here.", len(places)))
	}
	place := object(places[0])
	if place == nil {
		d.ask(path, "venue.name", "What is the house called, and where is it? The data has one line for both.", str(places[0]))
		d.need(&d.Venue.City, c.o.City, "venue.city", fmt.Sprintf("In which city is the house? The data says %s.", quoted(str(places[0]))))
		return
	}
	switch kinds := types(place); {
	case slices.Contains(kinds, "PostalAddress"):
		c.address(d, path, place)
		return
	case slices.Contains(kinds, "City"):
		d.Venue.City, _ = c.pick(place["name"])
	case slices.Contains(kinds, "Country"), slices.Contains(kinds, "State"):
		d.ask(path, "venue.name", "What is the house called? The data has only a country or state.")
	default:
		d.Venue.Name, _ = c.pick(place["name"])
	}
	addresses := list(place["address"])
	if len(addresses) > 1 {
		d.ask(path+".address", "venue.city", fmt.Sprintf("Which of %d addresses holds?", len(addresses)))
	}
	if len(addresses) == 0 {
		return
	}
	if text := str(addresses[0]); text != "" {
		d.need(&d.Venue.City, c.o.City, "venue.city", fmt.Sprintf("In which city is the house? The address is %s.", quoted(text)))
		d.need(&d.Venue.Country, c.o.Country, "venue.country", fmt.Sprintf("In which country is the house? Two letters; the address is %s.", quoted(text)))
		return
	}
	c.address(d, path+".address", object(addresses[0]))
}

func (c *converter) address(d *Draft, path string, a map[string]any) {
	if city, _ := c.pick(a["addressLocality"]); city != "" {
		d.Venue.City = city
	}
	country, _ := c.pick(a["addressCountry"])
	switch {
	case len(country) == 2:
		d.Venue.Country = strings.ToUpper(country)
	case country != "":
		d.ask(path+".addressCountry", "venue.country", fmt.Sprintf("Which country is meant? Two letters; the data says %s.", quoted(country)))
	case str(a["addressRegion"]) != "":
		d.need(&d.Venue.Country, c.o.Country, "venue.country", fmt.Sprintf("In which country is the house? Two letters; the data says only the region %s.", quoted(str(a["addressRegion"]))))
	}
}

// schedule asks for the dates of something that repeats; its zone is taken.
func (d *Draft) schedule(o map[string]any) {
	for i, one := range list(o["eventSchedule"]) {
		s, path := object(one), d.Path+".eventSchedule"
		if i == 0 {
			d.zoneOf(path+".scheduleTimezone", str(s["scheduleTimezone"]))
		} else if zone := str(s["scheduleTimezone"]); zone != "" && zone != d.Venue.Zone {
			d.ask(path, "venue.zone", "In which zone is the house? The schedules name several.", d.Venue.Zone, zone)
			d.Venue.Zone = ""
		}
		d.ask(path, "performances", fmt.Sprintf("Which dates are to be sold? It repeats (%s, at %s, from %s to %s): list the performances.",
			quoted(str(s["repeatFrequency"])), quoted(str(s["startTime"])), quoted(str(s["startDate"])), quoted(str(s["endDate"]))))
	}
}

// dates makes the one performance of an event that does not repeat.
func (d *Draft) dates(o map[string]any) {
	text := str(o["startDate"])
	if text == "" && (has(o, "eventSchedule") || !has(o, "startDate")) {
		return // asked for as performances
	}
	const field = "performances[0].starts"
	var p Performance
	start, ok1 := readMoment(text)
	end, ok2 := readMoment(str(o["endDate"]))
	if ok1 && ok2 && end.wall.Sub(start.wall).Hours() > 24 {
		d.ask(d.Path+".endDate", field, fmt.Sprintf("Is this one performance, and when does it start? It lasts from %s to %s: perhaps each day is one.", quoted(text), quoted(str(o["endDate"]))))
	} else {
		p.Starts = d.when(d.Path+".startDate", field, text)
	}
	p.Doors = d.door(d.Path+".doorTime", "performances[0].doors", str(o["doorTime"]), p.Starts)
	d.Performances = append(d.Performances, p)
}
