package venue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// What Export writes: a plan that keeps to pretix's published schema, so only its keys.
type (
	exportFile struct {
		Name       string           `json:"name"`
		Categories []exportCategory `json:"categories"`
		Zones      []exportZone     `json:"zones"`
		Size       exportSize       `json:"size"`
	}
	exportCategory struct {
		Name  string `json:"name"`
		Color string `json:"color,omitempty"`
	}
	exportSize struct {
		Width  int `json:"width"`
		Height int `json:"height"`
	}
	exportZone struct {
		Name     string       `json:"name"`
		ZoneID   string       `json:"zone_id"`
		Position exportPoint  `json:"position"`
		Rows     []exportRow  `json:"rows"`
		Areas    []exportArea `json:"areas"`
	}
	exportPoint struct {
		X float64 `json:"x"`
		Y float64 `json:"y"`
	}
	exportRow struct {
		Number   string       `json:"row_number"`
		Position exportPoint  `json:"position"`
		Seats    []exportSeat `json:"seats"`
	}
	exportSeat struct {
		GUID     string      `json:"seat_guid"`
		Number   string      `json:"seat_number"`
		Category string      `json:"category"`
		Position exportPoint `json:"position"`
		UUID     string      `json:"uuid,omitempty"`
	}
	exportArea struct {
		Shape    string         `json:"shape"`
		Color    string         `json:"color,omitempty"`
		UUID     string         `json:"uuid,omitempty"`
		Position exportPoint    `json:"position"`
		Polygon  *exportPolygon `json:"polygon,omitempty"`
		Circle   *exportCircle  `json:"circle,omitempty"`
		Text     *exportText    `json:"text,omitempty"`
	}
	exportPolygon struct {
		Points []exportPoint `json:"points"`
	}
	exportCircle struct {
		Radius int `json:"radius"`
	}
	exportText struct {
		Text     string      `json:"text"`
		Position exportPoint `json:"position"`
	}
)

// ExportPretix writes the plan as a pretix seating plan which keeps to its schema. Importing the result gives the same
// seats: ids, labels, rows, categories, positions, flags, and the same indexes where sections share one focal point. The
// notes say what a pretix plan cannot hold. The plan must be valid.
func ExportPretix(p *Plan) ([]byte, []Problem, error) {
	r := &report{}
	// pretix draws from 0, 0 on: what lies left of or above it is moved into sight.
	shift := exportPoint{max(0, -math.Floor(float64(p.Bounds.Min.X))), max(0, -math.Floor(float64(p.Bounds.Min.Y)))}
	if shift != (exportPoint{}) {
		r.notef("", nil, "everything is moved by %v to the right and %v down, since pretix draws from 0, 0 on", shift.X, shift.Y)
	}
	file := exportFile{Name: p.Name, Size: exportSize{
		Width:  int(math.Ceil(max(0, float64(p.Bounds.Max.X)+shift.X))),
		Height: int(math.Ceil(max(0, float64(p.Bounds.Max.Y)+shift.Y))),
	}}
	names := exportNames(p)
	for i, c := range p.Categories {
		file.Categories = append(file.Categories, exportCategory{names[i], c.Color})
	}
	for i := range p.Sections {
		file.Zones = append(file.Zones, exportSection(p, i, names))
	}
	drawn := exportZone{Name: "drawing", ZoneID: "onsale-drawing", Rows: []exportRow{}, Areas: exportDrawing(p)}
	if len(file.Zones) > 0 {
		file.Zones[0].Areas = append(file.Zones[0].Areas, drawn.Areas...)
	} else {
		file.Zones = append(file.Zones, drawn)
	}
	for i := range file.Zones {
		file.Zones[i].Position = shift
	}
	exportNotes(r, p)
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(file); err != nil {
		return nil, nil, fmt.Errorf("write pretix plan: %w", err)
	}
	return b.Bytes(), r.problems(), nil
}

// exportNames are the categories' names; pretix knows them by nothing else, so unless they are all there and all different,
// their keys.
func exportNames(p *Plan) []string {
	names, keys := make([]string, len(p.Categories)), make([]string, len(p.Categories))
	seen := map[string]bool{"": true}
	distinct := true
	for i, c := range p.Categories {
		names[i], keys[i] = c.Name, c.Key
		distinct = distinct && !seen[c.Name]
		seen[c.Name] = true
	}
	if distinct {
		return names
	}
	return keys
}

func exportSection(p *Plan, i int, categories []string) exportZone {
	section := &p.Sections[i]
	zone := exportZone{Name: section.Name, ZoneID: section.Key, Rows: []exportRow{}, Areas: []exportArea{}}
	for row := section.RowFirst; row < section.RowFirst+section.RowCount; row++ {
		r := &p.Rows[row]
		out := exportRow{Number: r.Label, Seats: make([]exportSeat, 0, r.SeatCount)}
		for k := r.SeatFirst; k < r.SeatFirst+r.SeatCount; k++ {
			s := &p.Seats[k]
			seat := exportSeat{GUID: s.ID, Number: s.Label, Category: categories[s.Category], Position: exportPoint{float64(s.X), float64(s.Y)}}
			if s.Flags != 0 {
				seat.UUID = flagsUUID + flagsText(s.Flags) + ":" + s.ID
			}
			out.Seats = append(out.Seats, seat)
		}
		zone.Rows = append(zone.Rows, out)
	}
	for _, area := range p.Areas {
		if area.Section == i && len(area.Outline) > 0 {
			zone.Areas = append(zone.Areas, polygonArea(area.Outline, "#dddddd", area.Name))
		}
	}
	return zone
}

// flagsText names the flags as flagsOf reads them.
func flagsText(flags SeatFlags) string {
	var names []string
	for _, flag := range []SeatFlags{Accessible, Companion, RestrictedView} {
		if flags&flag != 0 {
			names = append(names, flagNames[flag])
		}
	}
	return strings.Join(names, "+")
}

// exportDrawing is what is drawn, and a point too small to see at what the seats look at.
func exportDrawing(p *Plan) []exportArea {
	areas := []exportArea{{
		Shape: "circle", Color: "transparent", UUID: focalUUID, Circle: &exportCircle{},
		Position: exportPoint{float64(p.Focal.X), float64(p.Focal.Y)},
	}}
	for _, s := range p.Shapes {
		if len(s.Points) == 0 {
			continue
		}
		at := exportPoint{float64(s.Points[0].X), float64(s.Points[0].Y)}
		switch s.Kind {
		case ShapePolygon:
			areas = append(areas, polygonArea(s.Points, s.Color, s.Text))
		case ShapeCircle:
			radius := int(math.Round(float64(s.Radius)))
			areas = append(areas, exportArea{Shape: "circle", Color: s.Color, Position: at, Circle: &exportCircle{radius}, Text: textOf(s.Text)})
		case ShapeText:
			areas = append(areas, exportArea{Shape: "text", Color: s.Color, Position: at, Text: textOf(s.Text)})
		}
	}
	return areas
}

// polygonArea is a polygon with words in its middle. Positions inside an area are relative to the area's.
func polygonArea(points []Point, color, words string) exportArea {
	box := boxOf(points)
	at := exportPoint{(float64(box.Min.X) + float64(box.Max.X)) / 2, (float64(box.Min.Y) + float64(box.Max.Y)) / 2}
	area := exportArea{Shape: "polygon", Color: color, Position: at, Polygon: &exportPolygon{}, Text: textOf(words)}
	for _, point := range points {
		area.Polygon.Points = append(area.Polygon.Points, exportPoint{float64(point.X) - at.X, float64(point.Y) - at.Y})
	}
	return area
}

func textOf(words string) *exportText {
	if words == "" {
		return nil
	}
	return &exportText{Text: words}
}

// exportNotes says what is lost.
func exportNotes(r *report, p *Plan) {
	places := 0
	for _, area := range p.Areas {
		places += area.Capacity
	}
	if len(p.Areas) > 0 {
		r.notef("", nil, "pretix areas are drawings: they say nothing of capacity (here %d places in all)", places)
	}
	floors, focals := false, false
	for _, s := range p.Sections {
		floors = floors || s.Floor != ""
		focals = focals || s.Focal != nil
	}
	if floors {
		r.notef("", nil, "pretix plans have no floors: sections of different floors lie over each other in the file")
	}
	if focals {
		r.notef("", nil, "pretix plans have no focal points of sections: read back, rows may come in another order")
	}
}
