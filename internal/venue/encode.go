package venue

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode is the plan as JSON, in its canonical form: equal plans give equal bytes, on every machine. It fails only on a
// plan which Validate refuses (a coordinate which is not a number).
func (p *Plan) Encode() ([]byte, error) {
	var b bytes.Buffer
	b.Grow(1024 + 96*len(p.Seats))
	if err := p.encodeTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Hash is the plan's name: the SHA-256 of its canonical JSON, in hex (64 characters). Empty for a plan which cannot be
// encoded. It is computed at each call; keep it beside the plan.
func (p *Plan) Hash() string {
	h := sha256.New()
	if p.encodeTo(h) != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (p *Plan) encodeTo(w io.Writer) error {
	// A list is never null, so that a plan and its copy read back from JSON have the same hash.
	canonical := struct {
		*Plan
		Categories []Category `json:"categories"`
		Sections   []Section  `json:"sections"`
		Rows       []Row      `json:"rows"`
		Seats      []Seat     `json:"seats"`
	}{p, notNil(p.Categories), notNil(p.Sections), notNil(p.Rows), notNil(p.Seats)}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(canonical); err != nil {
		return fmt.Errorf("encode seating plan: %w", err)
	}
	return nil
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Decode reads what Encode wrote, and validates it: the plan that it returns has no error in Validate. Unknown keys are
// ignored. What does not hold is a *RefusedError with all problems. Foreign files are for Import.
func Decode(data []byte) (*Plan, error) {
	r := &report{}
	data, ok := scan(r, data, nil)
	if !ok {
		return nil, r.refusal()
	}
	p := decodeOwn(r, data)
	if r.failed() {
		return nil, r.refusal()
	}
	return p, nil
}

// decodeOwn reads a plan in our own format from a file that was scanned; nil when the report has an error.
func decodeOwn(r *report, data []byte) *Plan {
	p := &Plan{}
	if !unmarshal(r, data, p) {
		return nil
	}
	for _, problem := range p.Validate() {
		r.errorf(problem.Path, problem.Seats, "%s", problem.Message)
	}
	if r.failed() {
		return nil
	}
	return p
}

// unmarshal is json.Unmarshal whose error is reported with its place in the file.
func unmarshal(r *report, data []byte, into any) bool {
	err := json.Unmarshal(data, into)
	if err == nil {
		return true
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		r.errorf("", nil, "the file is not valid JSON: %v at %s; it may have been cut off or edited by hand", err, place(data, syntax.Offset))
	case errors.As(err, &kind):
		r.errorf("", nil, "a %s stands where a %s belongs: %s at %s", kind.Value, kind.Type, quoted(kind.Field), place(data, kind.Offset))
	default:
		r.errorf("", nil, "the file cannot be read: %v", err)
	}
	return false
}

// place turns an offset into "line 3, column 7".
func place(data []byte, offset int64) string {
	before := data[:min(max(offset, 0), int64(len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return fmt.Sprintf("line %d, column %d", line, max(column, 1))
}
