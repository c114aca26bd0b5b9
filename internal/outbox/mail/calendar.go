package mail

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"onsale/internal/id"
)

// calendarProduct names the program in calendar files.
const calendarProduct = "-//Onsale//Tickets//EN"

// calendar is the event as an iCalendar file (RFC 5545). The booking's entry has the same UID in every mail, and a SEQUENCE
// that each change raises, so that calendars move the entry instead of making a second one. Times are in the venue's zone,
// whose rules for that year are in the file.
func calendar(site Site, l language, m *Message) Attachment {
	e := &m.Event
	where := location(e.Zone)
	method, status, description := "PUBLISH", "CONFIRMED", "calendar.description"
	if m.Kind == KindEventCancelled {
		method, status, description = "CANCEL", "CANCELLED", "calendar.description.cancelled"
	}
	booking, entry := m.Order.Text(id.Order), m.Order.Text(id.Order)
	if m.Order == 0 && len(m.Tickets) > 0 { // who was given a ticket has nothing to do with the booking
		booking, entry = "", m.Tickets[0].ID.Text(id.Ticket)
	}
	start, end := e.Starts.In(where), e.Starts.In(where).Add(calendarHoursShown*time.Hour)
	var b strings.Builder
	put := func(name, value string) { fold(&b, name+":"+value) }
	put("BEGIN", "VCALENDAR")
	put("VERSION", "2.0")
	put("PRODID", calendarProduct)
	put("CALSCALE", "GREGORIAN")
	put("METHOD", method)
	if where != time.UTC {
		zone(put, where, start)
	}
	put("BEGIN", "VEVENT")
	put("UID", entry+"."+e.ID.Text(id.Event)+"@"+site.Host)
	put("SEQUENCE", fmt.Sprint(m.Changes))
	put("DTSTAMP", stamp(m, e).UTC().Format("20060102T150405Z"))
	moment := func(name string, t time.Time) {
		if where == time.UTC {
			put(name, t.Format("20060102T150405Z"))
			return
		}
		put(name+";TZID="+where.String(), t.Format("20060102T150405"))
	}
	moment("DTSTART", start)
	moment("DTEND", end)
	put("SUMMARY", escape(l.say("calendar.summary", "event", line(e.Title))))
	put("LOCATION", escape(l.place(e)))
	if booking != "" {
		put("DESCRIPTION", escape(l.say(description, "booking", booking)))
	}
	if url := site.link(bookingPath + booking); url != "" && booking != "" {
		put("URL", url)
	}
	put("STATUS", status)
	put("TRANSP", "OPAQUE")
	put("END", "VEVENT")
	put("END", "VCALENDAR")
	return Attachment{Name: "event.ics", Type: "text/calendar; charset=utf-8; method=" + method, Data: []byte(b.String())}
}

// stamp is when the entry was made: of the order, since composing knows no clock; a changed one is newer by its changes.
func stamp(m *Message, e *Event) time.Time {
	made := m.Order.Time()
	if m.Order == 0 {
		made = e.ID.Time()
	}
	return made.Add(time.Duration(m.Changes) * time.Second)
}

// zone writes the rules of a zone that are in force at an instant, with those before and after it.
func zone(put func(name, value string), where *time.Location, at time.Time) {
	put("BEGIN", "VTIMEZONE")
	put("TZID", where.String())
	begin, end := at.ZoneBounds()
	part(put, at, begin)
	if !begin.IsZero() {
		before := begin.Add(-time.Second)
		since, _ := before.ZoneBounds()
		part(put, before, since)
	}
	if !end.IsZero() {
		part(put, end, end)
	}
	put("END", "VTIMEZONE")
}

// part is one stretch of a zone's time: the one of an instant, since a change.
func part(put func(name, value string), at, since time.Time) {
	name, offset := at.Zone()
	from := offset
	start := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	if !since.IsZero() {
		_, from = since.Add(-time.Second).Zone()
		start = since.UTC().Add(time.Duration(from) * time.Second) // the clock's reading before the change
	}
	kind := "STANDARD"
	if at.IsDST() {
		kind = "DAYLIGHT"
	}
	put("BEGIN", kind)
	put("DTSTART", start.Format("20060102T150405"))
	put("TZOFFSETFROM", offsetText(from))
	put("TZOFFSETTO", offsetText(offset))
	put("TZNAME", name)
	put("END", kind)
}

func offsetText(seconds int) string {
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	text := fmt.Sprintf("%c%02d%02d", sign, seconds/3600, seconds/60%60)
	if seconds%60 != 0 {
		text += fmt.Sprintf("%02d", seconds%60)
	}
	return text
}

var escaper = strings.NewReplacer(`\`, `\\`, `;`, `\;`, `,`, `\,`, "\n", `\n`, "\r", "")

func escape(text string) string { return escaper.Replace(text) }

// foldBytes is the most that a line may have, without its end (RFC 5545, 3.1).
const foldBytes = 75

// fold writes a line, broken where it is too long, never inside a character.
func fold(b *strings.Builder, text string) {
	room := foldBytes
	for len(text) > room {
		cut := room
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		b.WriteString(text[:cut])
		b.WriteString("\r\n ")
		text = text[cut:]
		room = foldBytes - 1
	}
	b.WriteString(text)
	b.WriteString("\r\n")
}
