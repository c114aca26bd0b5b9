package catalog

import (
	"maps"
	"slices"
	"strings"
)

// listedMax is how many names an error lists.
const listedMax = 12

// listed are the names of a map for an error.
func listed[V any](names map[string]V) string {
	all := slices.Sorted(maps.Keys(names))
	if len(all) == 0 {
		return "none"
	}
	if len(all) > listedMax {
		return strings.Join(all[:listedMax], ", ") + ", …"
	}
	return strings.Join(all, ", ")
}

// SearchText is what a query's words are looked for in: lower case, one space between words.
func SearchText(e *Event, s *Show) string {
	return Fold(strings.Join(append([]string{s.Title, e.Title, e.Venue.Name, e.Venue.City}, e.Performers...), " "))
}

// Fold makes texts comparable: lower case, one space between words.
func Fold(text string) string { return strings.Join(strings.Fields(strings.ToLower(text)), " ") }
