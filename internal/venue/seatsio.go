package venue

import (
	"fmt"
	"math"
)

// A seats.io chart, as far as it says what a plan needs. The chart, each floor and each section hold the same kind of
// sub-chart; coordinates inside a section start at its top left corner.
type (
	seatsioFile struct {
		Name       text `json:"name"`
		Categories struct {
			List []seatsioCategory `json:"list"`
		} `json:"categories"`
		Zones struct {
			List []seatsioZone `json:"list"`
		} `json:"zones"`
		SubChart       *seatsioChart  `json:"subChart"`
		SubChartFloors []seatsioChart `json:"subChartFloors"`
	}
	seatsioCategory struct {
		Key        text `json:"key"`
		Label      text `json:"label"`
		Color      text `json:"color"`
		Accessible flag `json:"accessible"`
	}
	seatsioZone struct {
		Key        text      `json:"key"`
		FocalPoint *position `json:"focalPoint"`
	}
	seatsioChart struct {
		Rows             []seatsioRow     `json:"rows"`
		Tables           []seatsioRow     `json:"tables"`
		Sections         []seatsioSection `json:"sections"`
		Areas            []seatsioObject  `json:"generalAdmissionAreas"`
		Booths           []seatsioObject  `json:"booths"`
		Shapes           []seatsioObject  `json:"shapes"`
		Texts            []seatsioObject  `json:"texts"`
		FocalPoint       *position        `json:"focalPoint"`
		FloorName        text             `json:"floorName"`
		FloorDisplayName text             `json:"floorDisplayName"`
	}
	seatsioSection struct {
		Label         text          `json:"label"`
		Zone          text          `json:"zone"`
		CategoryKey   text          `json:"categoryKey"`
		CategoryLabel text          `json:"categoryLabel"`
		TopLeft       position      `json:"topLeft"`
		Points        []position    `json:"points"`
		SubChart      *seatsioChart `json:"subChart"`
	}
	// A seatsioRow is a row or a table.
	seatsioRow struct {
		Label        text          `json:"label"`
		SectionLabel text          `json:"sectionLabel"`
		BookAsAWhole flag          `json:"bookAsAWhole"`
		Seats        []seatsioSeat `json:"seats"`
	}
	seatsioSeat struct {
		position
		Label              text `json:"label"`
		CategoryKey        text `json:"categoryKey"`
		CategoryLabel      text `json:"categoryLabel"`
		CategoryAccessible flag `json:"categoryAccessible"`
		Accessible         flag `json:"accessible"`
		SemiAmbulatory     flag `json:"semiAmbulatorySeat"`
		Companion          flag `json:"companionSeat"`
		RestrictedView     flag `json:"restrictedView"`
	}
	// A seatsioObject is an area, a booth, a shape or a text.
	seatsioObject struct {
		Label         text       `json:"label"`
		Text          text       `json:"text"`
		SmartType     text       `json:"smartType"`
		Type          text       `json:"type"`
		FillColor     text       `json:"fillColor"`
		CategoryKey   text       `json:"categoryKey"`
		CategoryLabel text       `json:"categoryLabel"`
		Capacity      number     `json:"capacity"`
		Center        *position  `json:"center"`
		Points        []position `json:"points"`
		Width         number     `json:"width"`
		Height        number     `json:"height"`
		Radius1       number     `json:"radius1"`
		Radius2       number     `json:"radius2"`
		RotationAngle number     `json:"rotationAngle"`
	}
)

// seatsioReader turns a seats.io chart into a draft.
type seatsioReader struct {
	r          *report
	d          *draft
	byKey      map[string]int16
	byLabel    map[string]int16
	accessible []bool // by category
	zones      map[string]*Point
	homes      map[[2]string]int // sections made for what is outside of sections, by floor and name
	stages     []int             // shapes that are the stage
	focal      *Point
}

// A scope is where in the chart the reader is.
type scope struct {
	path     string
	origin   vector
	floor    string
	prefix   string // of the ids inside: the section's label
	section  int    // in the draft, -1 outside of sections
	category text   // the section's: its seats' own may be missing
	catLabel text
}

func readSeatsio(r *report, data []byte, d *draft) bool {
	var file seatsioFile
	if !unmarshal(r, data, &file) {
		return false
	}
	s := &seatsioReader{
		r: r, d: d, byKey: map[string]int16{}, byLabel: map[string]int16{}, zones: map[string]*Point{}, homes: map[[2]string]int{},
	}
	d.name = label(r, "/name", "name of the chart", file.Name, true)
	if !s.readCategories(file.Categories.List) {
		return false
	}
	for i, zone := range file.Zones.List {
		s.zones[zone.Key.value] = s.focus(fmt.Sprintf("/zones/list/%d/focalPoint", i), zone.FocalPoint)
	}
	if file.SubChart != nil {
		s.chart(file.SubChart, scope{path: "/subChart", section: -1})
	}
	for i := range file.SubChartFloors {
		floor := &file.SubChartFloors[i]
		path := fmt.Sprintf("/subChartFloors/%d", i)
		name := label(r, path+"/floorDisplayName", "name of the floor", floor.FloorDisplayName, true)
		if name == "" {
			name = label(r, path+"/floorName", "name of the floor", floor.FloorName, true)
		}
		if name == "" {
			name = fmt.Sprintf("Floor %d", i+1)
		}
		s.chart(floor, scope{path: path, floor: name, section: -1})
	}
	if s.focal == nil {
		focal := d.findFocal(s.stages)
		s.focal = &focal
	}
	d.focal = *s.focal
	return true
}

func (s *seatsioReader) readCategories(list []seatsioCategory) bool {
	if len(list) > CategoriesMax {
		s.r.errorf("/categories/list", nil, "%d categories; at most %d are allowed", len(list), CategoriesMax)
		return false
	}
	for i, c := range list {
		path := fmt.Sprintf("/categories/list/%d", i)
		category := Category{
			Key:   label(s.r, path+"/key", "key of the category", c.Key, false),
			Name:  label(s.r, path+"/label", "label of the category", c.Label, true),
			Color: label(s.r, path+"/color", "color", c.Color, true),
		}
		if _, twice := s.byKey[category.Key]; twice {
			s.r.errorf(path+"/key", nil, "category key %s is used twice", quoted(category.Key))
			continue
		}
		if category.Name == "" {
			category.Name = category.Key
		}
		s.byKey[category.Key] = int16(len(s.d.categories))
		if _, twice := s.byLabel[category.Name]; !twice {
			s.byLabel[category.Name] = int16(len(s.d.categories))
		}
		s.d.categories = append(s.d.categories, category)
		s.accessible = append(s.accessible, bool(c.Accessible))
	}
	return true
}

// focus is a focal point of the file; nil where it has none.
func (s *seatsioReader) focus(path string, at *position) *Point {
	if at == nil || !at.set() {
		return nil
	}
	v := at.plus(vector{})
	if fault := v.fault(); fault != "" {
		s.r.errorf(path, nil, "%s", fault)
		return nil
	}
	point := v.point()
	return &point
}

// chart reads a sub-chart: the whole, a floor, or the inside of a section.
func (s *seatsioReader) chart(c *seatsioChart, in scope) {
	if s.focal == nil {
		s.focal = s.focus(in.path+"/focalPoint", c.FocalPoint)
	}
	for i := range c.Rows {
		s.row(&c.Rows[i], in, fmt.Sprintf("%s/rows/%d", in.path, i), "row")
	}
	for i := range c.Tables {
		s.row(&c.Tables[i], in, fmt.Sprintf("%s/tables/%d", in.path, i), "table")
	}
	for i := range c.Areas {
		s.area(&c.Areas[i], in, fmt.Sprintf("%s/generalAdmissionAreas/%d", in.path, i))
	}
	for i := range c.Booths {
		path := fmt.Sprintf("%s/booths/%d", in.path, i)
		c.Booths[i].Capacity = number{value: 1, set: true}
		s.r.notef(path, nil, "booth %s is taken as an area with one place", quoted(c.Booths[i].Label.value))
		s.area(&c.Booths[i], in, path)
	}
	for i := range c.Shapes {
		s.shape(&c.Shapes[i], in, fmt.Sprintf("%s/shapes/%d", in.path, i))
	}
	for i := range c.Texts {
		s.text(&c.Texts[i], in, fmt.Sprintf("%s/texts/%d", in.path, i))
	}
	for i := range c.Sections {
		s.section(&c.Sections[i], in, fmt.Sprintf("%s/sections/%d", in.path, i))
	}
}

func (s *seatsioReader) section(section *seatsioSection, in scope, path string) {
	name := s.named(path, "section", section.Label)
	inside := scope{
		path: path + "/subChart", origin: section.TopLeft.plus(in.origin), floor: in.floor, prefix: joined(in.prefix, name),
		section: len(s.d.sections), category: section.CategoryKey, catLabel: section.CategoryLabel,
	}
	corners := make([]vector, 0, min(len(section.Points), PointsMax+1))
	for _, point := range section.Points {
		corners = append(corners, point.plus(in.origin))
	}
	s.d.sections = append(s.d.sections, draftSection{
		key: inside.prefix, name: name, floor: in.floor, focal: s.zones[section.Zone.value],
		outline: outline(s.r, path+"/points", corners),
	})
	if section.SubChart != nil {
		s.chart(section.SubChart, inside)
	}
}

// home is the section of the draft for what is in the scope; outside of sections one is made, for the floor and, where
// rows name one, for their section label.
func (s *seatsioReader) home(in scope, name string) int {
	if in.section >= 0 {
		return in.section
	}
	if name == "" {
		name = in.floor
	}
	if name == "" {
		name = "Main"
	}
	key := [2]string{in.floor, name}
	if i, made := s.homes[key]; made {
		return i
	}
	s.homes[key] = len(s.d.sections)
	s.d.sections = append(s.d.sections, draftSection{key: name, name: name, floor: in.floor})
	return len(s.d.sections) - 1
}

// named is the label of something; a missing one and seats.io's mark for one, the question mark, are reported.
func (s *seatsioReader) named(path, what string, t text) string {
	if t.value == "?" {
		s.r.errorf(path+"/label", nil, "the %s has the label \"?\", which stands for a missing one; label it", what)
		return ""
	}
	return label(s.r, path+"/label", "label of the "+what, t, false)
}

// joined is a label inside of another, as ids are made.
func joined(prefix, label string) string {
	if prefix == "" || label == "" {
		return label
	}
	return prefix + "-" + label
}

func (s *seatsioReader) row(row *seatsioRow, in scope, path, what string) {
	sectionLabel := label(s.r, path+"/sectionLabel", "sectionLabel", row.SectionLabel, true)
	if in.section < 0 && sectionLabel != "" {
		in.prefix = sectionLabel
	}
	d := draftRow{label: s.named(path, what, row.Label), path: path + "/seats", ring: what == "table", seats: make([]draftSeat, 0, len(row.Seats))}
	prefix := joined(in.prefix, d.label)
	for i := range row.Seats {
		d.seats = append(d.seats, s.seat(&row.Seats[i], in, &d, i, prefix))
	}
	if row.BookAsAWhole && what == "table" {
		s.r.notef(path, nil, "table %s is booked as a whole in the chart; here its %d seats can be sold one by one", quoted(d.label), len(d.seats))
	}
	home := s.home(in, sectionLabel)
	s.d.sections[home].rows = append(s.d.sections[home].rows, d)
}

func (s *seatsioReader) seat(seat *seatsioSeat, in scope, row *draftRow, i int, prefix string) draftSeat {
	d := draftSeat{place: i}
	path := row.where(i)
	shown := joined(prefix, seat.Label.value)
	if seat.Label.value == "?" {
		s.r.errorf(path+"/label", []string{shown}, "seat %s has the label \"?\", which stands for a missing one; label it", shown)
	} else if d.Label = label(s.r, path+"/label", "label of the seat", seat.Label, false); d.Label != "" && row.label != "" {
		d.ID = shown
		if fault := textFault(shown); fault != "" {
			s.r.errorf(path, []string{shown}, "the seat id %s %s; shorten the labels it is made of", quoted(shown), fault)
		}
	}
	if category, ok := s.category(path, "seat "+shown, []string{shown}, in, seat.CategoryKey, seat.CategoryLabel); ok {
		d.Category = category
		if s.accessible[category] {
			d.Flags |= Accessible
		}
	}
	at := seat.plus(in.origin)
	switch fault := at.fault(); {
	case !seat.set():
		s.r.errorf(path, []string{shown}, "seat %s has no position; give it x and y", shown)
	case fault != "":
		s.r.errorf(path, []string{shown}, "position of seat %s: %s", shown, fault)
	default:
		point := at.point()
		d.X, d.Y = point.X, point.Y
	}
	if seat.Accessible || seat.CategoryAccessible || seat.SemiAmbulatory {
		d.Flags |= Accessible
	}
	if seat.Companion {
		d.Flags |= Companion
	}
	if seat.RestrictedView {
		d.Flags |= RestrictedView
	}
	return d
}

// category finds the category by key, by label, by the section's key and label.
func (s *seatsioReader) category(path, what string, seats []string, in scope, key, name text) (int16, bool) {
	if key.value == "" && name.value == "" {
		key, name = in.category, in.catLabel
	}
	if category, ok := s.byKey[key.value]; ok {
		return category, true
	}
	if category, ok := s.byLabel[name.value]; ok && key.value == "" {
		return category, true
	}
	if key.value == "" && name.value == "" {
		hint := "give it one"
		if in.section >= 0 {
			hint = "nor has its section; give one of them a category"
		}
		s.r.errorf(path, seats, "%s has no category; %s", what, hint)
	} else {
		s.r.errorf(path, seats, "%s is of category %s %s, which is not among the chart's categories", what, quoted(key.value), quoted(name.value))
	}
	return 0, false
}

func (s *seatsioReader) area(o *seatsioObject, in scope, path string) {
	area := Area{Name: s.named(path, "area", o.Label)}
	area.ID = joined(in.prefix, area.Name)
	if fault := textFault(area.ID); fault != "" {
		s.r.errorf(path, nil, "the area id %s %s; shorten the labels it is made of", quoted(area.ID), fault)
	}
	area.Category, _ = s.category(path, "area "+quoted(area.ID), nil, in, o.CategoryKey, o.CategoryLabel)
	capacity := o.Capacity.value
	switch {
	case !o.Capacity.set:
		s.r.errorf(path+"/capacity", nil, "area %s has no capacity; say how many people it holds", quoted(area.ID))
	case capacity != math.Trunc(capacity) || !(capacity >= 1 && capacity <= CapacityMax):
		s.r.errorf(path+"/capacity", nil, "capacity %v of area %s is not a whole number of 1…%d", capacity, quoted(area.ID), CapacityMax)
	default:
		area.Capacity = int(capacity)
	}
	area.Outline = outline(s.r, path, o.corners(in.origin))
	home := s.home(in, "")
	s.d.sections[home].areas = append(s.d.sections[home].areas, area)
}

// corners is the outline of an object; none where the file does not say.
func (o *seatsioObject) corners(origin vector) []vector {
	if len(o.Points) > 0 {
		corners := make([]vector, len(o.Points))
		for i, point := range o.Points {
			corners[i] = point.plus(origin)
		}
		return corners
	}
	if o.Center == nil {
		return nil
	}
	centre := o.Center.plus(origin)
	if o.Radius1.set {
		second := o.Radius2
		if !second.set {
			second = o.Radius1
		}
		return ellipse(centre, o.Radius1.value, second.value, o.RotationAngle.value)
	}
	return rectangle(centre, o.Width.value, o.Height.value, o.RotationAngle.value)
}

func (s *seatsioReader) shape(o *seatsioObject, in scope, path string) {
	shape := Shape{
		Kind: ShapePolygon, Points: outline(s.r, path, o.corners(in.origin)),
		Text: label(s.r, path+"/label", "label of the shape", o.Label, true), Color: label(s.r, path+"/fillColor", "color", o.FillColor, true),
	}
	if len(shape.Points) == 0 {
		return
	}
	if isStage(o.SmartType.value) || isStage(shape.Text) {
		s.stages = append(s.stages, len(s.d.shapes))
	}
	s.d.shapes = append(s.d.shapes, shape)
}

func (s *seatsioReader) text(o *seatsioObject, in scope, path string) {
	words := label(s.r, path+"/text", "text", o.Text, true)
	if words == "" {
		words = label(s.r, path+"/label", "text", o.Label, true)
	}
	if words == "" || o.Center == nil {
		return
	}
	s.d.shapes = append(s.d.shapes, Shape{Kind: ShapeText, Text: words, Points: outline(s.r, path, []vector{o.Center.plus(in.origin)})})
}
