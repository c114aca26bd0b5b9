package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// LoadZone finds an IANA zone.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, errors.New(`a zone is needed, such as "Europe/Berlin" or "Asia/Shanghai"`)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf(`%q is not an IANA zone: write it as in "Europe/Berlin" or "Asia/Shanghai"`, name)
	}
	return zone, nil
}

// A LocalTimeError says that a local time is not one instant, and which readings there are (F3).
type LocalTimeError struct {
	Text     string
	Zone     string
	Exists   bool         // it exists twice; else never
	Readings [2]time.Time // in the zone
}

func (e *LocalTimeError) Error() string {
	why := "does not exist"
	if e.Exists {
		why = "exists twice"
	}
	return fmt.Sprintf("%s %s in %s, where clocks change: write %s or %s", e.Text, why, e.Zone,
		e.Readings[0].Format(time.RFC3339), e.Readings[1].Format(time.RFC3339))
}

var localLayouts = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"}

// ParseTime reads an RFC 3339 time with an offset, or a local time of a zone. A local time that is not exactly one
// instant is a *LocalTimeError.
func ParseTime(text string, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return inYears(text, t.UTC())
	}
	for _, layout := range localLayouts {
		if wall, err := time.Parse(layout, text); err == nil {
			if _, err := inYears(text, wall); err != nil {
				return time.Time{}, err
			}
			return localTime(text, wall, zone)
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write 2027-06-12T19:30 (the venue's time) or 2027-06-12T19:30:00+02:00", text)
}

// inYears keeps what is stored as milliseconds, and shown, sensible.
func inYears(text string, t time.Time) (time.Time, error) {
	if t.Year() < 2000 || t.Year() > 2090 {
		return time.Time{}, fmt.Errorf("%q is not between the years 2000 and 2090", text)
	}
	return t.Truncate(time.Millisecond), nil
}

// localTime finds the instant at which clocks in the zone show wall (given as if in UTC).
func localTime(text string, wall time.Time, zone *time.Location) (time.Time, error) {
	// No zone is further than a day from UTC, so every offset that may apply is in force within a day of wall.
	var offsets []int
	for t := wall.Add(-24 * time.Hour); !t.After(wall.Add(24 * time.Hour)); {
		_, offset := t.In(zone).Zone()
		if !slices.Contains(offsets, offset) {
			offsets = append(offsets, offset)
		}
		_, end := t.In(zone).ZoneBounds()
		if end.IsZero() {
			break
		}
		t = end
	}
	var candidates, readings []time.Time
	for _, offset := range offsets {
		t := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		candidates = append(candidates, t)
		if _, o := t.Zone(); o == offset {
			readings = append(readings, t)
		}
	}
	switch {
	case len(readings) == 1:
		return readings[0].UTC(), nil
	case len(readings) == 0:
		readings = candidates
	}
	slices.SortFunc(readings, time.Time.Compare)
	exists := len(candidates) > 0 && sameWall(readings[0], wall)
	return time.Time{}, &LocalTimeError{Text: text, Zone: zone.String(), Exists: exists,
		Readings: [2]time.Time{readings[0], readings[len(readings)-1]}}
}

func sameWall(t, wall time.Time) bool {
	return t.Format(localLayouts[3]) == wall.Format(localLayouts[3])
}
