package venue

import (
	"fmt"
	"strings"
)

// Areas and seats which Export marks so that reading its file back gives what was written. The mark is a uuid, the one
// free text that the schema has there: a file with keys of our own would be refused by pretix.
const (
	focalUUID = "onsale-focal"
	flagsUUID = "onsale-flags:" // then names joined by +, a colon and the seat id
)

// A pretix seating plan, as far as it says what a plan needs. Coordinates nest: a seat is at zone + row + seat.
type (
	pretixFile struct {
		Name       text             `json:"name"`
		Categories []pretixCategory `json:"categories"`
		Zones      []pretixZone     `json:"zones"`
	}
	pretixCategory struct {
		Name  text `json:"name"`
		Color text `json:"color"`
	}
	pretixZone struct {
		Name     text         `json:"name"`
		ZoneID   text         `json:"zone_id"`
		Position position     `json:"position"`
		Rows     []pretixRow  `json:"rows"`
		Areas    []pretixArea `json:"areas"`
	}
	pretixRow struct {
		Number   text         `json:"row_number"`
		Label    text         `json:"row_label"`
		Position position     `json:"position"`
		Seats    []pretixSeat `json:"seats"`
	}
	pretixSeat struct {
		GUID     text     `json:"seat_guid"`
		Number   text     `json:"seat_number"`
		Category text     `json:"category"`
		UUID     text     `json:"uuid"`
		Position position `json:"position"`
	}
	pretixArea struct {
		Shape    text     `json:"shape"`
		Color    text     `json:"color"`
		UUID     text     `json:"uuid"`
		Rotation number   `json:"rotation"`
		Position position `json:"position"`
		Polygon  struct {
			Points []position `json:"points"`
		} `json:"polygon"`
		Rectangle struct {
			Width  number `json:"width"`
			Height number `json:"height"`
		} `json:"rectangle"`
		Ellipse struct {
			Radius position `json:"radius"`
		} `json:"ellipse"`
		Circle struct {
			Radius number `json:"radius"`
		} `json:"circle"`
		Text struct {
			Text     text     `json:"text"`
			Color    text     `json:"color"`
			Position position `json:"position"`
		} `json:"text"`
	}
)

// pretixReader turns a pretix file into a draft.
type pretixReader struct {
	r          *report
	d          *draft
	categories map[string]int16
	stages     []int // shapes that are the stage
	focal      *Point
}

func readPretix(r *report, data []byte, d *draft) bool {
	var file pretixFile
	if !unmarshal(r, data, &file) {
		return false
	}
	p := &pretixReader{r: r, d: d, categories: map[string]int16{}}
	d.name = label(r, "/name", "name of the plan", file.Name, true)
	if !p.readCategories(file.Categories) {
		return false
	}
	for i := range file.Zones {
		p.zone(i, &file.Zones[i])
	}
	if p.focal == nil {
		focal := d.findFocal(p.stages)
		p.focal = &focal
	}
	d.focal = *p.focal
	return true
}

func (p *pretixReader) readCategories(list []pretixCategory) bool {
	if len(list) > CategoriesMax {
		p.r.errorf("/categories", nil, "%d categories; at most %d are allowed", len(list), CategoriesMax)
		return false
	}
	for i, c := range list {
		path := fmt.Sprintf("/categories/%d", i)
		name := label(p.r, path+"/name", "name of the category", c.Name, false)
		if _, twice := p.categories[name]; twice {
			p.r.notef(path+"/name", nil, "category %s is listed twice; they are taken as one", quoted(name))
			continue
		}
		p.categories[name] = int16(len(p.d.categories))
		p.d.categories = append(p.d.categories, Category{Key: name, Name: name, Color: label(p.r, path+"/color", "color", c.Color, true)})
	}
	return true
}

func (p *pretixReader) zone(i int, zone *pretixZone) {
	path := fmt.Sprintf("/zones/%d", i)
	s := draftSection{
		name: label(p.r, path+"/name", "name of the zone", zone.Name, true),
		key:  label(p.r, path+"/zone_id", "zone_id", zone.ZoneID, true),
	}
	if s.key == "" {
		s.key = s.name
	}
	if s.key == "" {
		s.key = fmt.Sprintf("zone-%d", i+1)
	}
	origin := zone.Position.plus(vector{})
	for k := range zone.Rows {
		s.rows = append(s.rows, p.row(fmt.Sprintf("%s/rows/%d", path, k), &zone.Rows[k], origin))
	}
	for k := range zone.Areas {
		p.area(fmt.Sprintf("%s/areas/%d", path, k), &zone.Areas[k], origin)
	}
	p.d.sections = append(p.d.sections, s)
}

func (p *pretixReader) row(path string, row *pretixRow, origin vector) draftRow {
	d := draftRow{path: path + "/seats", seats: make([]draftSeat, 0, len(row.Seats))}
	d.label = label(p.r, path+"/row_number", "row_number", row.Number, true)
	if d.label == "" {
		d.label = label(p.r, path+"/row_label", "row_label", row.Label, true)
	}
	origin = row.Position.plus(origin)
	for i := range row.Seats {
		d.seats = append(d.seats, p.seat(&d, i, &row.Seats[i], origin))
	}
	return d
}

func (p *pretixReader) seat(row *draftRow, i int, seat *pretixSeat, origin vector) draftSeat {
	s := draftSeat{place: i}
	if clean(seat.GUID) && clean(seat.Number) {
		s.ID, s.Label = seat.GUID.value, seat.Number.value
	} else {
		s.ID = label(p.r, row.where(i)+"/seat_guid", "seat_guid", seat.GUID, false)
		s.Label = label(p.r, row.where(i)+"/seat_number", "seat_number", seat.Number, true)
	}
	if s.Label == "" {
		s.Label = s.ID
	}
	category, known := p.categories[seat.Category.value]
	switch {
	case known:
		s.Category = category
	case seat.Category.value == "":
		p.r.errorf(row.where(i)+"/category", []string{s.ID}, "seat %s has no category; give it one of the file's categories", s.ID)
	default:
		p.r.errorf(row.where(i)+"/category", []string{s.ID}, "seat %s is of category %s, which is not among the file's categories", s.ID, quoted(seat.Category.value))
	}
	at := seat.Position.plus(origin)
	switch fault := at.fault(); {
	case !seat.Position.set():
		p.r.errorf(row.where(i)+"/position", []string{s.ID}, "seat %s has no position; give it x and y", s.ID)
	case fault != "":
		p.r.errorf(row.where(i)+"/position", []string{s.ID}, "position of seat %s: %s", s.ID, fault)
	default:
		point := at.point()
		s.X, s.Y = point.X, point.Y
	}
	if names, marked := strings.CutPrefix(seat.UUID.value, flagsUUID); marked {
		s.Flags = flagsOf(names)
	}
	return s
}

// flagsOf reads flags as Export writes them.
func flagsOf(names string) SeatFlags {
	var flags SeatFlags
	names, _, _ = strings.Cut(names, ":")
	for name := range strings.SplitSeq(names, "+") {
		for flag, known := range flagNames {
			if name == known {
				flags |= flag
			}
		}
	}
	return flags
}

var flagNames = map[SeatFlags]string{Accessible: "accessible", Companion: "companion", RestrictedView: "restricted-view"}

// area makes shapes of a drawing: what is sold in pretix are seats, its areas have no capacity.
func (p *pretixReader) area(path string, a *pretixArea, origin vector) {
	at := a.Position.plus(origin)
	if a.UUID.value == focalUUID && at.fault() == "" {
		point := at.point()
		p.focal = &point
		return
	}
	shape := Shape{Color: label(p.r, path+"/color", "color", a.Color, true)}
	words := label(p.r, path+"/text", "text", a.Text.Text, true)
	var corners []vector
	switch a.Shape.value {
	case "polygon":
		for _, corner := range a.Polygon.Points {
			corners = append(corners, corner.plus(at).turned(at, a.Rotation.value))
		}
	case "rectangle":
		middle := vector{at.x + a.Rectangle.Width.value/2, at.y + a.Rectangle.Height.value/2}
		corners = rectangle(middle, a.Rectangle.Width.value, a.Rectangle.Height.value, 0)
		for i := range corners {
			corners[i] = corners[i].turned(at, a.Rotation.value)
		}
	case "ellipse":
		corners = ellipse(at, a.Ellipse.Radius.X.value, a.Ellipse.Radius.Y.value, a.Rotation.value)
	case "circle":
		if fault := coordinateFault(a.Circle.Radius.value, 0); fault != "" || a.Circle.Radius.value < 0 {
			p.r.errorf(path+"/circle/radius", nil, "the radius is not a length")
			return
		}
		shape.Kind, shape.Radius = ShapeCircle, float32(a.Circle.Radius.value)
		shape.Points = outline(p.r, path, []vector{at})
	}
	if len(corners) > 0 {
		shape.Kind = ShapePolygon
		shape.Points = outline(p.r, path, corners)
	}
	if len(shape.Points) > 0 {
		if isStage(words) {
			p.stages = append(p.stages, len(p.d.shapes))
		}
		p.d.shapes = append(p.d.shapes, shape)
	}
	if words == "" {
		return
	}
	written := Shape{Kind: ShapeText, Text: words, Color: label(p.r, path+"/text/color", "color", a.Text.Color, true)}
	written.Points = outline(p.r, path+"/text", []vector{a.Text.Position.plus(at).turned(at, a.Rotation.value)})
	if isStage(words) && len(shape.Points) == 0 {
		p.stages = append(p.stages, len(p.d.shapes))
	}
	p.d.shapes = append(p.d.shapes, written)
}

// clean says that label would report nothing.
func clean(t text) bool { return t.value != "" && textFault(t.value) == "" }

// label is the text, or "" after a report of what is wrong with it.
func label(r *report, path, what string, t text, mayBeEmpty bool) string {
	fault := textFault(t.value)
	switch {
	case t.wrong:
		r.errorf(path, nil, "the %s is not a text", what)
	case t.value == "" && !mayBeEmpty:
		r.errorf(path, nil, "the %s is missing or empty", what)
	case fault != "":
		r.errorf(path, nil, "the %s %s %s", what, quoted(t.value), fault)
	default:
		return t.value
	}
	return ""
}
