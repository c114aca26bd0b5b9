package httpapi

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"onsale/internal/fault"
)

func document(t *testing.T) map[string]any {
	t.Helper()
	text, err := OpenAPI("v1")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// at follows keys into a document; nil where there is nothing.
func at(v any, keys ...string) any {
	for _, key := range keys {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

func TestDocumentIsWhatLiesInDocs(t *testing.T) {
	text, err := OpenAPI("v1")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, kept) {
		t.Error("docs/openapi.json is not what the program serves: make generate")
	}
}

func TestDocumentHasEveryRouteAndFault(t *testing.T) {
	doc := document(t)
	if at(doc, "openapi") != "3.1.0" || at(doc, "info", "version") != "v1" {
		t.Errorf("openapi %v of version %v", at(doc, "openapi"), at(doc, "info", "version"))
	}
	operations := 0
	for _, r := range (&api{}).table() {
		op := at(doc, "paths", r.Path, strings.ToLower(r.Method))
		if r.Hidden {
			if op != nil {
				t.Errorf("%s is hidden and in the document", r.ID)
			}
			continue
		}
		operations++
		if at(op, "operationId") != r.ID || at(op, "summary") == nil || r.Summary == "" || r.Tag == "" {
			t.Errorf("%s is %v, %v", r.ID, at(op, "operationId"), at(op, "summary"))
		}
		if (at(op, "security") != nil) != r.Who.signedIn() || (at(op, "requestBody") != nil) != (r.Body != nil || r.BodyType != "") {
			t.Errorf("%s: security and body are not those of the table", r.ID)
		}
		checkParameters(t, r, op)
		for _, status := range r.statuses() {
			if said := at(op, "responses", strconv.Itoa(status)); said == nil || at(said, "content") == nil && (r.Answer != nil || r.AnswerType != "") {
				t.Errorf("%s: no answer for %d", r.ID, status)
			}
		}
		for _, code := range r.faults() {
			answer := at(op, "responses", strconv.Itoa(fault.Lookup(code).Status))
			said, _ := at(answer, "description").(string)
			if !strings.Contains(said, "`"+string(code)+"`") || at(answer, "content", problemType, "schema", "$ref") != "#/components/schemas/Problem" {
				t.Errorf("%s: %s is not in %v", r.ID, code, answer)
			}
		}
	}
	count := 0
	paths, _ := at(doc, "paths").(map[string]any)
	for _, item := range paths {
		methods, _ := item.(map[string]any)
		count += len(methods)
	}
	if count != operations {
		t.Errorf("the document has %d operations, the table %d", count, operations)
	}
}

func checkParameters(t *testing.T, r route, op any) {
	t.Helper()
	var names []string
	list, _ := at(op, "parameters").([]any)
	for _, p := range list {
		name, _ := at(p, "name").(string)
		names = append(names, name)
		if at(p, "schema", "type") == nil {
			t.Errorf("%s: %s has no type", r.ID, name)
		}
		if name == "Idempotency-Key" && (at(p, "required") == true) != (r.Key == keyRequired) {
			t.Errorf("%s: the key is required: %v", r.ID, at(p, "required"))
		}
	}
	for _, q := range r.Query {
		if !slices.Contains(names, q.Name) {
			t.Errorf("%s: no parameter %s", r.ID, q.Name)
		}
	}
	if slices.Contains(names, "Idempotency-Key") != (r.Key != keyNone) {
		t.Errorf("%s: parameters are %v", r.ID, names)
	}
	for _, m := range pathParameter.FindAllStringSubmatch(r.Path, -1) {
		if !slices.Contains(names, m[1]) {
			t.Errorf("%s: no parameter %s", r.ID, m[1])
		}
	}
}

func TestReferencesLeadSomewhere(t *testing.T) {
	doc := document(t)
	count := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				count++
				rest, inside := strings.CutPrefix(ref, "#/")
				if !inside || at(doc, strings.Split(rest, "/")...) == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(doc)
	if count < 50 {
		t.Errorf("only %d references were found", count)
	}
}

// The readable page has a place for every code and every call: problem answers link to it.
func TestReadablePageHasEveryAnchor(t *testing.T) {
	w := newWorld(t)
	page := string(w.ask(ask{path: "/docs"}).body)
	for _, e := range fault.Catalogue {
		if !strings.Contains(page, `id="`+string(e.Code)+`"`) {
			t.Errorf("no anchor for %s", e.Code)
		}
	}
	for _, r := range w.api.routes {
		if !r.Hidden && !strings.Contains(page, `id="`+r.ID+`"`) {
			t.Errorf("no anchor for %s", r.ID)
		}
	}
}

// Fields are shown in the words of JSON: nobody has to know what the program calls their types.
func TestBodiesAreShownWithoutTypesOfTheProgram(t *testing.T) {
	for _, r := range (&api{}).table() {
		if r.Body == nil {
			continue
		}
		text, err := json.Marshal(bodyFields(reflect.TypeOf(r.Body)))
		if err != nil {
			t.Fatal(err)
		}
		if bad := regexp.MustCompile(`(catalog|ledger|venue|httpapi|time)\.[A-Z]|"\[\]|int64|bool\b|"":`).FindString(string(text)); bad != "" {
			t.Errorf("%s shows %s: %s", r.ID, bad, text)
		}
	}
}
