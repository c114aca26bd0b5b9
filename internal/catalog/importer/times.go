package importer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"onsale/internal/catalog"
)

var (
	offsetLayouts = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z0700"}
	localLayouts  = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}
	clockLayouts  = []string{"15:04:05", "15:04"}
)

const (
	dateLayout  = "2006-01-02"
	localLayout = "2006-01-02T15:04:05"
)

// A moment is a time of the data.
type moment struct {
	wall   time.Time // as the clock shows it, as if in UTC
	offset string    // "+02:00"; "": not said
	date   bool      // only the date is said
}

// written is the moment as the event file has it.
func (m moment) written() string { return m.wall.Format(localLayout) + m.offset }

// readMoment reads a time; false where it is none.
func readMoment(text string) (moment, bool) {
	for _, layout := range offsetLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			_, seconds := t.Zone()
			return moment{wall: t.UTC().Add(time.Duration(seconds) * time.Second).Truncate(time.Second), offset: t.Format("Z07:00")}, true
		}
	}
	for _, layout := range localLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return moment{wall: t.Truncate(time.Second)}, true
		}
	}
	if t, err := time.Parse(dateLayout, text); err == nil {
		return moment{wall: t, date: true}, true
	}
	return moment{}, false
}

// placeholder says of a date that it stands for one that is not known.
func (m moment) placeholder() bool {
	return m.wall.Year() < 2000 || m.wall.Year() > 2090
}

// when reads a time of a draft whose zone is known, or asks; "" where it is not known.
func (d *Draft) when(path, field, text string) string {
	m, ok := readMoment(text)
	switch {
	case text == "":
		d.ask(path, field, "When? The data does not say it.")
	case !ok:
		d.ask(path, field, fmt.Sprintf("When? The data says %s, which is not a time.", quoted(text)))
	case m.placeholder():
		d.ask(path, field, fmt.Sprintf("When? The data says %s, which stands for a date that is not known.", quoted(text)))
	case m.date:
		d.ask(path, field, fmt.Sprintf("At what time on %s? The data has no time of day.", m.wall.Format(dateLayout)), m.wall.Format("2006-01-02T")+"HH:MM")
	default:
		return d.checked(path, field, m)
	}
	return ""
}

// checked asks about a time that the zone contradicts.
func (d *Draft) checked(path, field string, m moment) string {
	zone, err := catalog.LoadZone(d.Venue.Zone)
	if err != nil {
		return m.written() // the zone is asked for; the file is refused until it is there
	}
	at, err := catalog.ParseTime(m.written(), zone)
	var twice *catalog.LocalTimeError
	if errors.As(err, &twice) {
		d.ask(path, field, fmt.Sprintf("Which time is meant? %s is not one time in %s, where clocks change.", m.written(), d.Venue.Zone),
			twice.Readings[0].Format(time.RFC3339), twice.Readings[1].Format(time.RFC3339))
		return ""
	}
	if err != nil {
		d.ask(path, field, fmt.Sprintf("When? The data says %s, which cannot be.", quoted(m.written())))
		return ""
	}
	// In UTC is how systems write instants; any other offset says what the clock on the wall shows.
	if here := at.In(zone).Format("Z07:00"); m.offset != "" && m.offset != "Z" && m.offset != here && m.offset != "+00:00" {
		d.ask(path, field, fmt.Sprintf("Which is right? The data says %s, and in %s clocks show %s then.", m.written(), d.Venue.Zone, at.In(zone).Format(localLayout)),
			m.written(), m.wall.Format(localLayout)+here)
		return ""
	}
	return m.written()
}

// door reads the time at which doors open: a time, or a time of day on the day of the start. "" where it is not to be had.
func (d *Draft) door(path, field, text, starts string) string {
	if text == "" {
		return ""
	}
	for _, layout := range clockLayouts {
		clock, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		m, ok := readMoment(starts)
		if !ok {
			return ""
		}
		m.wall = m.wall.Truncate(24 * time.Hour).Add(time.Duration(clock.Hour())*time.Hour + time.Duration(clock.Minute())*time.Minute)
		if m.offset == "Z" {
			d.ask(path, field, fmt.Sprintf("When do doors open? The data says %s, and the start in UTC.", quoted(text)))
			return ""
		}
		return d.notAfter(path, field, m, starts)
	}
	m, ok := readMoment(text)
	if !ok || m.date || m.placeholder() {
		d.ask(path, field, fmt.Sprintf("When do doors open? The data says %s.", quoted(text)))
		return ""
	}
	return d.notAfter(path, field, m, starts)
}

func (d *Draft) notAfter(path, field string, doors moment, starts string) string {
	start, ok := readMoment(starts)
	if ok && start.offset == doors.offset && doors.wall.After(start.wall) {
		d.ask(path, field, fmt.Sprintf("When do doors open? The data says %s, which is after the start.", doors.written()))
		return ""
	}
	return d.checked(path, field, doors)
}

// performanceKey is a key by the date, where there is one.
func performanceKey(starts string, i int) string {
	if m, ok := readMoment(starts); ok {
		return m.wall.Format("2006-01-02-1504")
	}
	return fmt.Sprint("performance-", i+1)
}

// answerZone takes the answer of the options, before times are read.
func (d *Draft) answerZone(zone string) {
	if d.Venue.Zone == "" && !d.asked("venue.zone") {
		d.Venue.Zone = zone
	}
}

// zoneOf takes a zone that the data names, or asks where it is none.
func (d *Draft) zoneOf(path, name string) {
	name = strings.TrimSpace(name)
	if name == "" {
		return
	}
	if _, err := catalog.LoadZone(name); err != nil {
		d.ask(path, "venue.zone", fmt.Sprintf("Which IANA zone is meant? The data says %s.", quoted(name)))
		return
	}
	d.Venue.Zone = name
}
