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
	return strconv.FormatInt(c.Starts.UnixMilli(), 36) + "." + strconv.FormatInt(int64(c.Event), 36)
}

// ParseCursor reads what String wrote.
func ParseCursor(text string) (Cursor, error) {
	if text == "" {
		return Cursor{}, nil
	}
	starts, event, _ := strings.Cut(text, ".")
	ms, err1 := strconv.ParseInt(starts, 36, 64)
	number, err2 := strconv.ParseInt(event, 36, 64)
	if err1 != nil || err2 != nil || number < 0 || ms < 0 {
		return Cursor{}, fmt.Errorf("%.40q is not a cursor: take it from the page before", text)
	}
	return Cursor{Starts: time.UnixMilli(ms).UTC(), Event: id.ID(number)}, nil
}

// folded checks the query and makes its texts comparable with those stored.
func (q Query) folded() (Query, error) {
	if bad := CheckText(q.Text+q.City, 2*NameRunesMax); bad != "" {
		return q, &fault.Error{Code: fault.Invalid, Field: "query", Detail: "the text " + bad}
	}
	q.Text, q.City = Fold(q.Text), Fold(q.City)
	if n := len(strings.Fields(q.Text)); n > QueryWordsMax {
		return q, &fault.Error{Code: fault.Invalid, Field: "query", Detail: fmt.Sprintf("%d words are too many: use at most %d", n, QueryWordsMax)}
	}
	if !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To) {
		return q, &fault.Error{Code: fault.Invalid, Field: "to", Detail: "must be after from"}
	}
	switch {
	case q.Max == 0:
		q.Max = QueryDefault
	case q.Max < 0 || q.Max > QueryMax:
		return q, &fault.Error{Code: fault.Invalid, Field: "limit", Detail: fmt.Sprintf("must be 1 to %d", QueryMax)}
	}
	return q, nil
}
