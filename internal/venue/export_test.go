package venue

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// schema is as much of a JSON schema as pretix's uses.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       any               `json:"type"` // a name or a list of names
	Enum       []any             `json:"enum"`
	Required   []string          `json:"required"`
	Properties map[string]schema `json:"properties"`
	Additional *bool             `json:"additionalProperties"`
	Items      *schema           `json:"items"`
	Defined    map[string]schema `json:"definitions"`
}

// faults lists where the value does not keep to the schema.
func (s schema) faults(root *schema, path string, value any) []string {
	if s.Ref != "" {
		return root.Defined[strings.TrimPrefix(s.Ref, "#/definitions/")].faults(root, path, value)
	}
	var faults []string
	kind := map[string]bool{}
	switch v := value.(type) {
	case map[string]any:
		kind["object"] = true
		for _, key := range s.Required {
			if _, there := v[key]; !there {
				faults = append(faults, path+" lacks "+key)
			}
		}
		for key, member := range v {
			property, known := s.Properties[key]
			if !known && s.Additional != nil && !*s.Additional {
				faults = append(faults, path+" has "+key)
			}
			faults = append(faults, property.faults(root, path+"/"+key, member)...)
		}
	case []any:
		kind["array"] = true
		for i, element := range v {
			if s.Items != nil {
				faults = append(faults, s.Items.faults(root, fmt.Sprintf("%s/%d", path, i), element)...)
			}
		}
	case string:
		kind["string"] = true
	case float64:
		kind["number"], kind["integer"] = true, v == float64(int64(v))
	case nil:
		kind["null"] = true
	}
	types, _ := s.Type.([]any)
	if name, one := s.Type.(string); one {
		types = []any{name}
	}
	if len(types) > 0 && !slices.ContainsFunc(types, func(name any) bool { return kind[name.(string)] }) {
		faults = append(faults, fmt.Sprintf("%s is not %v", path, s.Type))
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		faults = append(faults, fmt.Sprintf("%s is %v", path, value))
	}
	return faults
}

// TestExportKeepsToSchema holds what Export writes against pretix's published schema.
func TestExportKeepsToSchema(t *testing.T) {
	var root schema
	if err := json.Unmarshal(realFile(t, "pretix/seating-plan.schema.json"), &root); err != nil {
		t.Fatal(err)
	}
	check := func(data []byte) []string {
		var value any
		if err := json.Unmarshal(data, &value); err != nil {
			t.Fatal(err)
		}
		return root.faults(&root, "", value)
	}
	if faults := check([]byte(`{"name":1,"zones":[{"rows":[],"position":{"x":0},"more":1}],"categories":[],"size":{"width":1.5,"height":1}}`)); len(faults) != 4 {
		t.Fatalf("the check itself is broken: %v", faults)
	}
	pretix, _ := imported(t, "pretix-small.json", ImportOptions{})
	seatsio, _ := imported(t, "seatsio-small.json", ImportOptions{})
	for name, p := range map[string]*Plan{
		"an arena": Generate(GenerateOptions{Seats: 3000}), "a pretix plan": pretix, "a seats.io chart": seatsio,
		"nothing but categories": {Format: 1, Categories: []Category{{Key: "a", Name: "A"}}},
	} {
		data, _, err := ExportPretix(p)
		if err != nil {
			t.Fatal(err)
		}
		if faults := check(data); len(faults) > 0 {
			t.Errorf("%s: %v", name, faults[:min(5, len(faults))])
		}
	}
}

// TestExportMovesIntoSight: pretix draws from 0, 0 on.
func TestExportMovesIntoSight(t *testing.T) {
	p := twoSections() // reaches to -1, -1
	data, notes, err := ExportPretix(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(notes) != 2 || !strings.Contains(notes[0].Message, "moved by 1") || !strings.Contains(notes[1].Message, "5 places in all") {
		t.Errorf("notes are %v", notes)
	}
	back, _, err := Import(data, ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range p.Seats {
		s.X, s.Y = s.X+1, s.Y+1
		if back.Seats[i] != s {
			t.Errorf("seat %d came back as %v, want %v", i, back.Seats[i], s)
		}
	}
}

func TestExportNames(t *testing.T) {
	for _, test := range []struct {
		categories []Category
		want       []string
	}{
		{[]Category{{Key: "1", Name: "A"}, {Key: "2", Name: "B"}}, []string{"A", "B"}},
		{[]Category{{Key: "1", Name: "A"}, {Key: "2", Name: "A"}}, []string{"1", "2"}},
		{[]Category{{Key: "1", Name: "A"}, {Key: "2"}}, []string{"1", "2"}},
	} {
		if got := exportNames(&Plan{Categories: test.categories}); !slices.Equal(got, test.want) {
			t.Errorf("%v are exported as %v, want %v", test.categories, got, test.want)
		}
	}
}
