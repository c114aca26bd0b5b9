package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// String is the cursor as clients carry it, "" for the zero one.
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return ""
	}
	place := strconv.FormatInt(c.Starts.UnixMilli(), 36) + "." + strconv.FormatInt(int64(c.Event), 36)
	if c.Rank == 0 {
		return place
	}
	return place + "." + strconv.FormatInt(int64(c.Rank), 36) + "." + strconv.FormatInt(int64(c.Words), 36)
}

// ParseCursor reads what String wrote.
func ParseCursor(text string) (Cursor, error) {
	if text == "" {
		return Cursor{}, nil
	}
	parts := strings.SplitN(text, ".", 5)
	bits := [4]int{63, 63, 31, 32} // of start, event, rank, words
	var numbers [4]int64
	good := len(parts) == 2 || len(parts) == 4
	for i := 0; good && i < len(parts); i++ {
		n, err := strconv.ParseUint(parts[i], 36, bits[i])
		numbers[i], good = int64(n), err == nil
	}
	if !good || len(parts) == 4 && numbers[2] == 0 {
		return Cursor{}, fmt.Errorf("%.40q is not a cursor: take it from the page before", text)
	}
	return Cursor{Starts: time.UnixMilli(numbers[0]).UTC(), Event: id.ID(numbers[1]), Rank: int(numbers[2]), Words: uint32(numbers[3])}, nil
}

// folded checks the query and makes its texts comparable with those stored.
func (q Query) folded() (Query, error) {
	if bad := CheckText(q.Text+q.City, 2*NameRunesMax); bad != "" {
		return q, &fault.Error{Code: fault.Invalid, Field: "query", Detail: "the text " + bad}
	}
	q.Text, q.City = Fold(q.Text), Fold(q.City)
	if !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To) {
		return q, &fault.Error{Code: fault.Invalid, Field: "to", Detail: "must be after from"}
	}
	switch q.Availability {
	case AnyAvailability, SellingNow, Available:
	default:
		return q, &fault.Error{Code: fault.Invalid, Field: "availability", Detail: fmt.Sprintf("must be %s or %s", SellingNow, Available)}
	}
	switch {
	case q.Max == 0:
		q.Max = QueryDefault
	case q.Max < 0 || q.Max > QueryMax:
		return q, &fault.Error{Code: fault.Invalid, Field: "limit", Detail: fmt.Sprintf("must be 1 to %d", QueryMax)}
	}
	return q, nil
}
