package mail

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // venues have zones, also on machines without a zone database
	"unicode"
	"unicode/utf8"

	"github.com/bojanz/currency"
)

// clean is a text of somebody's as one line: no control characters, none that turn the reading direction of what follows,
// at most max runes.
func clean(s string, max int) string {
	s = strings.ToValidUTF8(s, "�")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x200E, r == 0x200F, r == 0xFEFF:
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) > max {
		s = string([]rune(s)[:max-1]) + "…"
	}
	return s
}

func line(s string) string { return clean(s, TextRunesMax) }

// money is an amount in the currency's form.
func (l language) money(minor int64, code string) string {
	amount, err := currency.NewAmountFromInt64(minor, code)
	if err != nil {
		return fmt.Sprintf("%d %s", minor, line(code)) // no currency that anybody knows: the catalogue refuses these
	}
	return currency.NewFormatter(currency.NewLocale(l.tag)).Format(amount)
}

func (l language) priced(minor int64, code string) string {
	if minor == 0 {
		return l.say("free")
	}
	return l.money(minor, code)
}

var weekdays = [...]string{"日", "一", "二", "三", "四", "五", "六"}

// location is a venue's zone; UTC for one that nobody knows.
func location(zone string) *time.Location {
	if zone == "" || zone == "Local" {
		return time.UTC
	}
	where, err := time.LoadLocation(zone)
	if err != nil {
		return time.UTC
	}
	return where
}

// date is an instant in a venue's zone, with the zone's name.
func (l language) date(t time.Time, zone string) string {
	if t.IsZero() {
		return l.say("none")
	}
	where := location(zone)
	t = t.In(where)
	day := t.Format("Monday, 2 January 2006, 15:04")
	if l.zh {
		day = t.Format("2006年1月2日") + "（周" + weekdays[t.Weekday()] + "）" + t.Format("15:04")
	}
	named := l.say("date.zone", "abbreviation", abbreviation(t), "zone", where.String())
	if where == time.UTC {
		named = l.say("date.utc")
	}
	if !l.zh {
		day += " "
	}
	return day + strings.ReplaceAll(named, " ", noBreak)
}

// noBreak is a space at which no line ends; the text part has plain ones.
const noBreak = "\u00a0"

// clock is the time of day alone, in the venue's zone, where the day is that of another instant.
func (l language) clock(t, day time.Time, zone string) string {
	where := location(zone)
	if !t.IsZero() && t.In(where).Format(time.DateOnly) == day.In(where).Format(time.DateOnly) {
		return t.In(where).Format("15:04")
	}
	return l.date(t, zone)
}

// abbreviation is the zone's short name, or the offset where it has none.
func abbreviation(t time.Time) string {
	name, offset := t.Zone()
	if name == "UTC" || offset != 0 && name != "" && name[0] != '+' && name[0] != '-' {
		return name
	}
	if offset == 0 {
		return name
	}
	return "UTC" + t.Format("-07:00")
}

func (l language) place(e *Event) string {
	switch {
	case e.City == "" || strings.Contains(e.Venue, e.City):
		return line(e.Venue)
	case l.zh:
		return line(e.Venue) + "，" + line(e.City)
	}
	return line(e.Venue) + ", " + line(e.City)
}

// where is how people find a ticket's place.
func (t *Ticket) where(l language) (first, second string) {
	switch {
	case t.Area != "":
		return line(t.Area), ""
	case t.Row != "" && t.Seat != "":
		second = l.say("ticket.seat", "row", line(t.Row), "seat", line(t.Seat))
	default:
		second = l.say("ticket.seatonly", "seat", line(t.Seat))
	}
	if t.Section == "" {
		return second, ""
	}
	return l.section(t.Section), second
}

// section names a section; one whose name says by itself what it is ("Block A", "看台 A 区") stays as it is.
func (l language) section(name string) string {
	name = line(name)
	if utf8.RuneCountInString(name) > 4 || strings.HasSuffix(name, "区") {
		return name
	}
	return l.say("ticket.section", "section", name)
}
