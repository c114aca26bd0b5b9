package venue

import (
	"fmt"
	"slices"
	"strings"
)

// seatRef is where a seat of a draft is.
type seatRef struct{ section, row, seat int }

func (d *draft) at(ref seatRef) (*draftSection, *draftRow, *draftSeat) {
	section := &d.sections[ref.section]
	row := &section.rows[ref.row]
	return section, row, &row.seats[ref.seat]
}

// describe says in words where a seat is, and its path.
func (d *draft) describe(ref seatRef) string {
	section, row, seat := d.at(ref)
	words := row.where(seat.place)
	if section.name != "" || row.label != "" {
		words += fmt.Sprintf(" (section %s, row %s)", quoted(section.name), quoted(row.label))
	}
	return words
}

// checkDuplicates reports every seat id, and area id, which the file uses more than once, or renames the seats.
func (d *draft) checkDuplicates(r *report, options ImportOptions) {
	users := map[string][]seatRef{}
	var order []string // ids used more than once, by their second use
	for i := range d.sections {
		for k := range d.sections[i].rows {
			for j := range d.sections[i].rows[k].seats {
				id := d.sections[i].rows[k].seats[j].ID
				if id == "" {
					continue // reported when it was read
				}
				users[id] = append(users[id], seatRef{i, k, j})
				if len(users[id]) == 2 {
					order = append(order, id)
				}
			}
		}
	}
	if options.RenameDuplicates {
		d.renameDuplicates(r, users, order)
	} else {
		for _, id := range order {
			refs := users[id]
			_, row, seat := d.at(refs[1])
			times, others := "twice", ""
			if len(refs) > 2 {
				times, others = fmt.Sprintf("%d times", len(refs)), fmt.Sprintf(" and %d more", len(refs)-2)
			}
			r.errorf(row.where(seat.place), []string{id}, "seat %s is there %s: first at %s, again at %s%s; change the ids, or import with --rename-duplicates",
				id, times, d.describe(refs[0]), d.describe(refs[1]), others)
		}
	}
	d.checkAreaDuplicates(r)
}

func (d *draft) checkAreaDuplicates(r *report) {
	areas := map[string]int{}
	for i := range d.sections {
		for _, area := range d.sections[i].areas {
			if areas[area.ID]++; areas[area.ID] == 2 {
				r.errorf("", nil, "area %s is there more than once; give each area a label of its own", quoted(area.ID))
			}
		}
	}
}

// renameDuplicates gives all seats of a shared id a new one. Where section, or section and row, tell them apart, all of
// them get these in front; else the first keeps the id and the others get ~2, ~3, … in the order of the file. So
// nothing depends on anything but the file.
func (d *draft) renameDuplicates(r *report, users map[string][]seatRef, order []string) {
	taken := make(map[string]bool, len(users))
	for id := range users {
		taken[id] = true
	}
	next := map[string]int{}
	count := 0
	var examples []string
	for _, id := range order {
		refs := users[id]
		names := d.qualified(refs, taken)
		if names == nil {
			names = []string{id}
			for range refs[1:] {
				names = append(names, numbered(id, taken, next))
			}
		}
		for i, ref := range refs {
			_, row, seat := d.at(ref)
			if names[i] == seat.ID {
				continue
			}
			if fault := textFault(names[i]); fault != "" {
				r.errorf(row.where(seat.place), []string{id}, "the new id of seat %s %s; shorten its labels", id, fault)
				return
			}
			count++
			examples = append(examples, fmt.Sprintf("%s → %s", id, names[i]))
			seat.ID = names[i]
			taken[names[i]] = true
		}
	}
	if count > 0 {
		shown := examples[:min(5, len(examples))]
		r.notef("", examples, "%d seats which shared an id with another (%d ids) have new ones: %s%s", count, len(order), strings.Join(shown, ", "), strings.Repeat(", …", min(1, len(examples)-len(shown))))
	}
}

// qualified are ids with the section, or section and row, in front; nil where they do not tell the seats apart.
func (d *draft) qualified(refs []seatRef, taken map[string]bool) []string {
	bySection := func(s *draftSection, row *draftRow, seat *draftSeat) string { return prefixed(s.key, seat.ID) }
	byRow := func(s *draftSection, row *draftRow, seat *draftSeat) string {
		return prefixed(s.key, row.label+"-"+seat.Label)
	}
	for _, name := range []func(*draftSection, *draftRow, *draftSeat) string{bySection, byRow} {
		names := make([]string, len(refs))
		for i, ref := range refs {
			names[i] = name(d.at(ref))
		}
		distinct := slices.Clone(names)
		slices.Sort(distinct)
		free := !slices.ContainsFunc(names, func(name string) bool { return taken[name] || textFault(name) != "" })
		if free && len(slices.Compact(distinct)) == len(names) {
			return names
		}
	}
	return nil
}

func prefixed(prefix, id string) string {
	if prefix == "" || strings.HasPrefix(id, prefix+"-") {
		return id
	}
	return prefix + "-" + id
}
