package venue

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// twoSections is a valid plan: section 0 with rows of 3 and 2 seats, section 1 with one row of 4 and an area.
func twoSections() *Plan {
	seats := func(id string, y float32, count int) []draftSeat {
		var list []draftSeat
		for i := range count {
			seat := draftSeat{place: i}
			seat.ID, seat.Label = fmt.Sprint(id, i), fmt.Sprint(i)
			seat.X, seat.Y = float32(10*i), y
			list = append(list, seat)
		}
		return list
	}
	return assemble(&draft{
		name: "Two", categories: []Category{{Key: "a", Name: "A"}, {Key: "b", Name: "B"}},
		shapes: []Shape{{Kind: ShapeCircle, Points: []Point{{0, 0}}, Radius: 1}},
		sections: []draftSection{
			{key: "one", rows: []draftRow{{label: "1", seats: seats("x", 10, 3)}, {label: "2", seats: seats("y", 20, 2)}}},
			{key: "two", rows: []draftRow{{label: "1", seats: seats("z", 30, 4)}}, areas: []Area{{ID: "floor", Capacity: 5}}},
		},
	})
}

func TestValidate(t *testing.T) {
	if problems := twoSections().Validate(); len(problems) > 0 {
		t.Fatalf("the plan that all others are made from: %v", problems)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, test := range []struct {
		name   string
		change func(p *Plan)
		want   string // beginning of the first problem
	}{
		{"format", func(p *Plan) { p.Format = 2 }, "/format: format is 2"},
		{"name", func(p *Plan) { p.Name = "a\tb" }, "/name: name of the plan"},
		{"name with a blank behind", func(p *Plan) { p.Name = "Two " }, "/name: name of the plan \"Two \" begins or ends with a blank"},
		{"no seats", func(p *Plan) { *p = Plan{Format: 1} }, "the plan has neither seats nor areas"},
		{"category key twice", func(p *Plan) { p.Categories[1].Key = "a" }, "/categories/1/key: category key \"a\" is used twice"},
		{"category without key", func(p *Plan) { p.Categories[1].Key = "" }, "/categories/1/key: the key of the category is empty"},
		{"too many categories", func(p *Plan) {
			for i := range CategoriesMax {
				p.Categories = append(p.Categories, Category{Key: fmt.Sprint(i)})
			}
		}, "/categories: 102 categories"},
		{"section key twice", func(p *Plan) { p.Sections[1].Key = "one" }, "/sections/1/key: section key \"one\" is used twice"},
		{"rows overlap", func(p *Plan) { p.Sections[1].RowFirst = 1 }, "/sections/1: rows 1+1 do not follow"},
		{"rows beyond the end", func(p *Plan) { p.Sections[1].RowCount = 2 }, "/sections/1: rows 2+2 do not follow"},
		{"seats overlap", func(p *Plan) { p.Sections[1].SeatFirst = 4 }, "/sections/1: seats 4+4 do not follow"},
		{"a section too short", func(p *Plan) { p.Sections[1].SeatCount = 3 }, "/sections: the sections hold 3 rows and 8 seats, the plan 3 and 9"},
		{"seats in the wrong section", func(p *Plan) {
			p.Sections[0].SeatCount, p.Sections[1].SeatFirst, p.Sections[1].SeatCount = 6, 6, 3
		}, "/rows/1: the rows of section 0 end at seat 5, the section at 6"},
		{"adjoining itself", func(p *Plan) { p.Sections[0].Adjoining = []int{0} }, "/sections/0/adjoining/0: 0 is not another section"},
		{"adjoining nothing", func(p *Plan) { p.Sections[0].Adjoining = []int{1, 2} }, "/sections/0/adjoining/1: 2 is not another section"},
		{"adjoining twice", func(p *Plan) { p.Sections[0].Adjoining = []int{1, 1} }, "/sections/0/adjoining/1: 1 is not another section"},
		{"focal point of a section", func(p *Plan) { p.Sections[0].Focal = &Point{inf, 0} }, "/sections/0/focal: coordinate +Inf"},
		{"row of another section", func(p *Plan) { p.Rows[1].Section = 1 }, "/rows/1/section: row 1 says that it is of section 1"},
		{"row without seats", func(p *Plan) { p.Rows[0].SeatCount = 0 }, "/rows/0: seats 0+0 do not follow"},
		{"row too long", func(p *Plan) { p.Rows[2].SeatCount = 5 }, "/rows/2: seats 5+5 do not follow"},
		{"break at the first seat", func(p *Plan) { p.Rows[1].Breaks = []SeatIndex{3} }, "/rows/1/breaks/0: break 3 is not inside"},
		{"break behind the last seat", func(p *Plan) { p.Rows[0].Breaks = []SeatIndex{3} }, "/rows/0/breaks/0: break 3 is not inside"},
		{"breaks not ascending", func(p *Plan) { p.Rows[2].Breaks = []SeatIndex{7, 7} }, "/rows/2/breaks/1: break 7 is not inside"},
		{"rows back to front", func(p *Plan) { p.Focal = Point{10, 1000} }, "/rows/1: row \"2\" of section \"one\" is nearer"},
		{"seat id twice", func(p *Plan) { p.Seats[8].ID = "x0" }, "/seats/8/id: seat id \"x0\" is used twice, first at /seats/0"},
		{"seat without id", func(p *Plan) { p.Seats[8].ID = "" }, "/seats/8/id: the seat id is empty"},
		{"seat id too long", func(p *Plan) { p.Seats[8].ID = strings.Repeat("é", LabelMax+1) }, "/seats/8/id: seat id"},
		{"seat id not UTF-8", func(p *Plan) { p.Seats[8].ID = "\xff" }, "/seats/8/id: seat id \"\uFFFD\" is not valid UTF-8"},
		{"seat of another row", func(p *Plan) { p.Seats[8].Row = 1 }, "/seats/8/row: seat \"z3\" says that it is of row 1"},
		{"seat of no category", func(p *Plan) { p.Seats[8].Category = 2 }, "/seats/8/category: seat \"z3\" is of category 2"},
		{"seat of a negative category", func(p *Plan) { p.Seats[8].Category = -1 }, "/seats/8/category: seat \"z3\" is of category -1"},
		{"seat nowhere", func(p *Plan) { p.Seats[8].X = nan }, "/seats/8: position of seat \"z3\": coordinate NaN"},
		{"seat far away", func(p *Plan) { p.Seats[8].Y = 2 * CoordinateMax }, "/seats/8: position of seat \"z3\": coordinate 2e+07"},
		{"unknown flag", func(p *Plan) { p.Seats[8].Flags = 8 }, "/seats/8/flags: flags 8"},
		{"seat out of bounds", func(p *Plan) { p.Bounds.Max.X = 20 }, "/bounds: the bounds do not hold seat \"z3\""},
		{"area without capacity", func(p *Plan) { p.Areas[0].Capacity = 0 }, "/areas/0/capacity: capacity of area \"floor\" is 0"},
		{"area of no section", func(p *Plan) { p.Areas[0].Section = 2 }, "/areas/0/section: area \"floor\" is of section 2"},
		{"area of no category", func(p *Plan) { p.Areas[0].Category = 2 }, "/areas/0/category: area \"floor\" is of category 2"},
		{"area id twice", func(p *Plan) { p.Areas = append(p.Areas, p.Areas[0]) }, "/areas/1/id: area id \"floor\" is used twice"},
		{"outline", func(p *Plan) { p.Areas[0].Outline = []Point{{}, {nan, 0}} }, "/areas/0/outline/1: coordinate NaN"},
		{"outline too long", func(p *Plan) { p.Areas[0].Outline = make([]Point, PointsMax+1) }, "/areas/0/outline: 2001 points"},
		{"kind of shape", func(p *Plan) { p.Shapes[0].Kind = "star" }, "/shapes/0/kind: \"star\" is not a kind"},
		{"radius", func(p *Plan) { p.Shapes[0].Radius = -1 }, "/shapes/0/radius: radius -1"},
		{"focal point", func(p *Plan) { p.Focal.X = nan }, "/focal: coordinate NaN"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := twoSections()
			test.change(p)
			problems := p.Validate()
			if len(problems) == 0 || !strings.HasPrefix(problems[0].String(), test.want) {
				t.Errorf("problems are %v, want %s", problems, test.want)
			}
		})
	}
}

// TestValidateTellsAll: several faults at once come at once.
func TestValidateTellsAll(t *testing.T) {
	p := twoSections()
	p.Name, p.Seats[1].Category, p.Seats[2].ID, p.Areas[0].Capacity = "\x00", 7, "x0", -1
	if problems := p.Validate(); len(problems) != 4 {
		t.Errorf("%d problems of 4: %v", len(problems), problems)
	}
}
