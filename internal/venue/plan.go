// Package venue holds seating plans: what a hall looks like, which seats it has, which of them are neighbours and how
// good each one is.
//
// The one idea: a plan is immutable and named by the hash of its content, and every seat of it has a dense number, its
// seat index, given section by section, row by row, along the row. So a set of seats is a bitmap, a run of neighbours is
// a run of numbers, and everything that sells speaks of numbers only. Labels are for people.
//
// Start reading at Plan, then at Layout (quality.go), which is what selling uses. import.go turns files into plans,
// generate.go makes arenas, validate.go holds every rule that a plan keeps.
package venue

import "sync/atomic"

// SeatIndex is the dense number 0…n-1 of a seat in its plan.
type SeatIndex = int32

// Limits of what is accepted as a plan.
const (
	SeatsMax        = 200_000
	FileBytesMax    = 64 << 20
	LabelMax        = 120 // runes of any label or name
	CategoriesMax   = 100
	SectionsMax     = 2_000
	AreasMax        = 1_000
	ShapesMax       = 5_000
	PointsMax       = 2_000      // of one outline or shape
	CapacityMax     = 1_000_000  // of one area
	CoordinateMax   = 10_000_000 // greatest magnitude of any coordinate, plan units
	AdjoiningMax    = 12         // sections listed as beside one
	NestingMax      = 64         // levels of arrays and objects in a file
	FileElementsMax = 1_000_000  // elements of all arrays of a file together; twice as many objects and arrays
)

// FormatVersion is the version of the JSON that Encode writes and Decode reads.
const FormatVersion = 1

// A Plan is a venue's seating, static and versioned by the hash of its content.
// Seats, Rows and Sections are ordered so that Seats[i] is the seat with index i, the seats of a row are contiguous and
// ordered along the row, the rows of a section are contiguous, front (nearest to the focal point) to back.
type Plan struct {
	Format     int        `json:"format"` // version of this layout of the JSON, 1
	Name       string     `json:"name"`
	Venue      string     `json:"venue,omitempty"`
	Categories []Category `json:"categories"`
	Sections   []Section  `json:"sections"`
	Rows       []Row      `json:"rows"`
	Seats      []Seat     `json:"seats"`
	Areas      []Area     `json:"areas,omitempty"`
	Focal      Point      `json:"focal"` // what the seats look at: stage, centre of the floor
	Shapes     []Shape    `json:"shapes,omitempty"`
	Bounds     Rect       `json:"bounds"`

	layout atomic.Pointer[Layout] // see Layout
}

// A Category is a price level.
type Category struct {
	Key   string `json:"key"`  // unique in the plan
	Name  string `json:"name"` // for people
	Color string `json:"color,omitempty"`
}

// A Section is a block of rows, or the home of standing areas.
type Section struct {
	Key       string  `json:"key"`
	Name      string  `json:"name"`
	RowFirst  int     `json:"row_first"` // rows [RowFirst, RowFirst+RowCount)
	RowCount  int     `json:"row_count"`
	SeatFirst int     `json:"seat_first"` // seats [SeatFirst, SeatFirst+SeatCount)
	SeatCount int     `json:"seat_count"`
	Adjoining []int   `json:"adjoining,omitempty"` // indexes of sections beside it, nearest first
	Outline   []Point `json:"outline,omitempty"`
	Floor     string  `json:"floor,omitempty"`
	Focal     *Point  `json:"focal,omitempty"` // what its seats look at, where that is not the plan's focal point
}

// A Row is a line of seats; its seats are [SeatFirst, SeatFirst+SeatCount).
type Row struct {
	Section   int    `json:"section"`
	Label     string `json:"label"`
	SeatFirst int    `json:"seat_first"`
	SeatCount int    `json:"seat_count"`
	// Breaks are the seat indexes i of this row for which i-1 and i are not neighbours although both are in the row
	// (an aisle lies between them), ascending.
	Breaks []SeatIndex `json:"breaks,omitempty"`
}

// A Seat's ID is its public label, unique in the plan.
type Seat struct {
	ID       string    `json:"id"`
	Label    string    `json:"label"` // within its row
	Row      int32     `json:"row"`
	Category int16     `json:"category"`
	X        float32   `json:"x"`
	Y        float32   `json:"y"`
	Flags    SeatFlags `json:"flags,omitempty"`
}

// SeatFlags says what is special about a seat.
type SeatFlags uint8

// The flags of a seat.
const (
	Accessible     SeatFlags = 1 << iota // a wheelchair place or one reserved for who needs it
	Companion                            // beside an accessible one
	RestrictedView                       // sold with a warning
)

// An Area is general admission: a capacity, no seats.
type Area struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Section  int     `json:"section"` // index of the section it belongs to
	Category int16   `json:"category"`
	Capacity int     `json:"capacity"`
	Outline  []Point `json:"outline,omitempty"`
}

// The kinds of shapes.
const (
	ShapePolygon = "polygon" // Points is its outline, Text what is written in the middle of it
	ShapeCircle  = "circle"  // Points is its centre
	ShapeText    = "text"    // Points is where the middle of the text is
)

// A Shape is drawn and has no other meaning: stage, bar, text.
type Shape struct {
	Kind   string  `json:"kind"` // one of the kinds above
	Points []Point `json:"points,omitempty"`
	Radius float32 `json:"radius,omitempty"`
	Text   string  `json:"text,omitempty"`
	Color  string  `json:"color,omitempty"`
}

// A Point is in plan units: x to the right, y down.
type Point struct {
	X float32 `json:"x"`
	Y float32 `json:"y"`
}

// A Rect holds everything that is drawn.
type Rect struct {
	Min Point `json:"min"`
	Max Point `json:"max"`
}

// SectionOf is the index of the section of a seat.
func (p *Plan) SectionOf(seat SeatIndex) int { return p.Rows[p.Seats[seat].Row].Section }
