package httpapi

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"onsale/internal/fault"
	"onsale/internal/payment/sandbox"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// shownBy is which test has a golden answer: no two have the same.
var shownBy = map[string]string{}

// golden asks, compares the answer with testdata/<route>/<name>.txt, and holds it against the OpenAPI document: status,
// content type, schema, and, of a problem, that the route is said to have that code.
func (w *world) golden(name string, a ask) reply {
	w.t.Helper()
	if by, twice := shownBy[name]; twice && by != w.t.Name() {
		w.t.Errorf("%s is of %s, too", name, by)
	}
	shownBy[name] = w.t.Name()
	w.drain()
	got := w.ask(a)
	route, _, _ := strings.Cut(<-w.answered, " ")
	if folder, _, _ := strings.Cut(name, "/"); folder != route {
		w.t.Fatalf("%s: the route %s answered", name, route)
	}
	w.described(name, route, got)
	text := transcript(a, got)
	file := filepath.Join("testdata", filepath.FromSlash(name)+".txt")
	if *update {
		w.must(os.MkdirAll(filepath.Dir(file), 0o755))
		w.must(os.WriteFile(file, text, 0o644))
	}
	want, err := os.ReadFile(file)
	w.must(err)
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		w.t.Errorf("%s (with -update it is written anew):\n%s", file, diff)
	}
	leaksNothing(w.t, name, got)
	return got
}

// drain forgets which routes have answered so far.
func (w *world) drain() {
	for {
		select {
		case <-w.answered:
		default:
			return
		}
	}
}

// shownHeaders are those that a golden file has, in this order.
var shownHeaders = []string{
	"Allow", "Cache-Control", "Content-Encoding", "Content-Language", "Content-Type", "ETag", "Location", "Retry-After", "Vary", "WWW-Authenticate",
	"Content-Security-Policy", "X-Accel-Buffering", "X-Content-Type-Options", "RateLimit", "RateLimit-Policy", "Set-Cookie",
}

// transcript is a request and its answer as a golden file has them.
func transcript(a ask, got reply) []byte {
	var b bytes.Buffer
	method := a.method
	if method == "" {
		method = "GET"
	}
	fmt.Fprintf(&b, "%s %s\n", method, shortened(a.path))
	for _, name := range []string{"Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "If-None-Match", "Last-Event-Id"} {
		if value := a.header[name]; len(value) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", name, value[0])
		}
	}
	if a.customer != "" {
		fmt.Fprintf(&b, "Authorization: Bearer (%s)\n", a.customer)
	}
	if a.key != "" {
		fmt.Fprintf(&b, "Idempotency-Key: %s\n", shortened(a.key))
	}
	if a.body != "" && !a.quiet {
		fmt.Fprintf(&b, "\n%s\n", shortened(a.body))
	}
	fmt.Fprintf(&b, "\n%d %s\n", got.status, http.StatusText(got.status))
	for _, name := range shownHeaders {
		for _, value := range got.header.Values(name) {
			if value == contentPolicy { // nearly all have it: leaksNothing looks
				continue
			}
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	if len(got.body) > 0 {
		fmt.Fprintf(&b, "\n%s\n", shownBody(got))
	}
	return normalised(b.Bytes())
}

func shortened(text string) string {
	const most = 500
	if len(text) > most {
		return fmt.Sprintf("%s… (%d bytes)", text[:40], len(text))
	}
	return text
}

func shownBody(got reply) string {
	kind := got.header.Get("Content-Type")
	switch {
	case got.header.Get("Content-Encoding") != "" || kind == "image/png" || strings.HasPrefix(kind, "text/html"):
		return "(" + kind + ")"
	case kind == octets:
		return hex.Dump(got.body)
	case bytes.Contains(got.body, []byte(`"rows":`)):
		return "(a plan)"
	case bytes.Contains(got.body, []byte(`"openapi":`)):
		return "(the document)"
	case strings.HasSuffix(kind, "json"):
		var b bytes.Buffer
		if json.Indent(&b, bytes.TrimSpace(got.body), "", "  ") == nil {
			return b.String()
		}
	}
	return string(got.body)
}

var (
	idShape  = regexp.MustCompile(`\b(blk|wsh|evt|show|org|cus|hold|ord|tkt|rfd|ses|inv|log|whe)_[0-9A-HJKMNP-TV-Z]{13}\b`)
	volatile = []struct {
		shape *regexp.Regexp
		text  string
	}{
		{regexp.MustCompile(`"request_id": "[^"]*"`), `"request_id": "…"`},
		{regexp.MustCompile(`"qr_text": "[^"]*"`), `"qr_text": "…"`},
		{regexp.MustCompile(`(Set-Cookie: \w+=)[^;]+`), `${1}…`},
		{regexp.MustCompile(`"secret": "[^"]*"`), `"secret": "…"`},
		{regexp.MustCompile(`"payment_id": "[^"]*"`), `"payment_id": "…"`},
		{regexp.MustCompile(`"next_cursor": "[^"]*"`), `"next_cursor": "…"`},
		{regexp.MustCompile(`\b[0-9a-f]{64}\b`), `…hash…`},
	}
)

// normalised numbers ids in the order in which they come, and takes out what differs from run to run. Times stay: the
// world's clock is ours.
func normalised(text []byte) []byte {
	known, counts := map[string]string{}, map[string]int{}
	text = idShape.ReplaceAllFunc(text, func(found []byte) []byte {
		name, ok := known[string(found)]
		if !ok {
			prefix, _, _ := strings.Cut(string(found), "_")
			counts[prefix]++
			name = prefix + "_" + strconv.Itoa(counts[prefix])
			known[string(found)] = name
		}
		return []byte(name)
	})
	for _, v := range volatile {
		text = v.shape.ReplaceAll(text, []byte(v.text))
	}
	return text
}

// described holds an answer against the document.
func (w *world) described(name, id string, got reply) {
	w.t.Helper()
	i := slices.IndexFunc(w.api.routes, func(r route) bool { return r.ID == id })
	if i < 0 || w.api.routes[i].Hidden {
		return
	}
	r := w.api.routes[i]
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.Map()["Problem"] = huma.SchemaFromType(registry, problemKind)
	op := operation(registry, r)
	if got.status == http.StatusNotModified || len(got.body) == 0 && slices.Contains(r.statuses(), got.status) {
		return
	}
	said, ok := op.Responses[strconv.Itoa(got.status)]
	if !ok {
		w.t.Errorf("%s: the document has no status %d", name, got.status)
		return
	}
	kind, _, _ := strings.Cut(got.header.Get("Content-Type"), ";")
	content, ok := said.Content[kind]
	if !ok {
		w.t.Errorf("%s: the document has no %s for status %d", name, kind, got.status)
		return
	}
	if !strings.HasSuffix(kind, "json") || got.header.Get("Content-Encoding") != "" {
		return
	}
	var v any
	w.must(json.Unmarshal(got.body, &v))
	result := &huma.ValidateResult{}
	huma.Validate(registry, content.Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, result)
	for _, err := range result.Errors {
		w.t.Errorf("%s: the answer is not what the document says: %v\n%s", name, err, got.body)
	}
	if kind == problemType {
		var p Problem
		w.must(json.Unmarshal(got.body, &p))
		if !slices.Contains(r.faults(), fault.Code(p.Code)) {
			w.t.Errorf("%s: the route %s is not said to answer %s", name, id, p.Code)
		}
	}
}

// internals are words that no answer may have: they are of what is behind it.
var internals = regexp.MustCompile(`(?i)sqlite|postgres|select |insert |goroutine|panic|\.go\b|runtime|/tmp|/root|/home|onsale/internal|json:|httpapi|booking:|ledger:|payment:|context (canceled|deadline)|0x[0-9a-f]{6}`)

// leaksNothing looks for internals, and whether a problem is whole.
func leaksNothing(t testing.TB, name string, got reply) {
	t.Helper()
	if got.header.Get("X-Request-Id") == "" {
		t.Errorf("%s: no request id", name)
	}
	looksSecure(t, name, got)
	if got.status < 400 {
		return
	}
	if found := internals.Find(got.body); found != nil {
		t.Errorf("%s: %q is in the answer: %s", name, found, got.body)
	}
	var p Problem
	if err := json.Unmarshal(got.body, &p); err != nil {
		t.Errorf("%s: %v: %s", name, err, got.body)
		return
	}
	entry := fault.Lookup(fault.Code(p.Code))
	if string(entry.Code) != p.Code || p.Status != got.status || entry.Status != p.Status || p.Title == "" || p.Type != "/docs#"+p.Code ||
		p.RequestID != got.header.Get("X-Request-Id") || p.Retry != entry.Retry {
		t.Errorf("%s: not a problem of the catalogue: %s", name, got.body)
	}
	if got.header.Get("Cache-Control") != "no-store" || got.header.Get("Content-Type") != problemType {
		t.Errorf("%s: a problem may be cached, or is a %s", name, got.header.Get("Content-Type"))
	}
	if retry := got.header.Get("Retry-After"); (got.status == 503 || got.status == 429) && retry == "" {
		t.Errorf("%s: status %d without Retry-After", name, got.status)
	}
}

// unreachable are the faults that no request can bring about by itself in a test, by route and code; "*" is any route.
var unreachable = map[string]string{
	"booking_exchange limit_reached":      "as booking_make has it",
	"hold_make not_admitted":              "TestNoWayIn",
	"hold_make admission_expired":         "TestNoWayIn",
	"hold_make hold_rest":                 "the ledger's tests",
	"hold_make blocked":                   "TestBlocked",
	"queue_claim blocked":                 "as queue_join has it",
	"session_leave outcome_unknown":       "as queue_claim has it",
	"room_change outcome_unknown":         "as event_change has it",
	"room_change conflict":                "as event_change has it",
	"room_open outcome_unknown":           "as event_open has it",
	"room_pause outcome_unknown":          "as event_change has it",
	"room_resume outcome_unknown":         "as event_change has it",
	"room_close outcome_unknown":          "as event_change has it",
	"room_open invalid":                   "nothing is said with it",
	"room_pause invalid":                  "nothing is said with it",
	"room_resume invalid":                 "nothing is said with it",
	"room_close invalid":                  "nothing is said with it",
	"block_make limit_reached":            "needs a full list: guard's tests",
	"hold_make sold_out":                  "needs a whole hall: TestSoldOut",
	"* internal":                          "TestInternalSaysNothing, for all routes alike",
	"payment_webhook payment_unavailable": "needs a provider that answers Lookup and fails Cancel: booking's tests",
	"event_cancel conflict":               "an event of any state can be cancelled; others that keep changing it: catalog's tests",
	"* busy":                              "holds and bookings have it; for the others it is our limit of time: TestOurTimeIsUp",
	"* too_many_requests":                 "TestLimits, for all routes alike",
	"* body_too_large":                    "TestBodies, for all routes alike",
	"* unsupported_media_type":            "TestBodies, for all routes alike",
	"* cross_origin":                      "TestCrossOrigin, for all routes alike",
	"* bad_request":                       "query too long, for all routes alike: TestQueries",
}

// unshown are routes whose answers differ from run to run, with what tests them instead.
func unshown(r route) bool {
	switch r.ID {
	case "queue_stream", "queue_turn": // TestStreamOfALine
	case "queue_challenge": // TestThroughTheRoom
	case "person_picture", "person_sound": // TestThePersonCheck
	case "waitlist_join", "waitlist_get", "waitlist_leave": // TestTheWaitlist
	default:
		return false
	}
	return true
}

// Every fault that a route is said to have has a golden answer.
func TestEveryFaultIsShown(t *testing.T) {
	a := &api{}
	for _, r := range a.table() {
		if r.Hidden || unshown(r) {
			continue
		}
		files, err := filepath.Glob(filepath.Join("testdata", r.ID, "*.txt"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no golden answers (%v)", r.ID, err)
		}
		var all []byte
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		for _, status := range r.statuses() {
			if !bytes.Contains(all, fmt.Appendf(nil, "\n%d %s\n", status, http.StatusText(status))) {
				t.Errorf("%s: no golden answer has the status %d", r.ID, status)
			}
		}
		for _, code := range r.faults() {
			if slices.Contains(r.Who.faults(), code) { // TestWhoMayDoWhat, for all routes alike
				continue
			}
			if unreachable[r.ID+" "+string(code)] != "" || unreachable["* "+string(code)] != "" {
				continue
			}
			if !bytes.Contains(all, fmt.Appendf(nil, `"code": %q`, code)) {
				t.Errorf("%s: no golden answer has the code %s", r.ID, code)
			}
		}
	}
}

// declined is a token for which the sandbox says no.
var problemKind = reflect.TypeFor[Problem]()

var declined = sandbox.Token(sandbox.FaultDeclined)

var pendingToken = sandbox.Token(sandbox.FaultPending)
