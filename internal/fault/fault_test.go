package fault

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"unicode"
)

// declared are the codes that the source declares, by name.
func declared(t *testing.T) map[string]Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]Code{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		for i, name := range spec.Names {
			value, ok := spec.Values[i].(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s is no plain text", name.Name)
			}
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes[name.Name] = Code(text)
		}
		return true
	})
	return codes
}

func TestEveryCodeIsInTheCatalogueOnce(t *testing.T) {
	codes := declared(t)
	if len(codes) < 30 {
		t.Fatalf("only %d codes were found in the source", len(codes))
	}
	shape := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	seen := map[Code]string{}
	for name, code := range codes {
		if other, twice := seen[code]; twice {
			t.Errorf("%s and %s are both %q", name, other, code)
		}
		seen[code] = name
		if !shape.MatchString(string(code)) {
			t.Errorf("%s is %q: want small letters and _", name, code)
		}
		n := 0
		for _, e := range Catalogue {
			if e.Code == code {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s (%s) is in the catalogue %d times", name, code, n)
		}
		if got := Lookup(code).Code; got != code {
			t.Errorf("Lookup(%s) is %s", code, got)
		}
	}
	if len(Catalogue) != len(codes) {
		t.Errorf("%d entries for %d codes", len(Catalogue), len(codes))
	}
}

func TestEntries(t *testing.T) {
	if !slices.IsSortedFunc(Catalogue, func(a, b Entry) int { return a.Status - b.Status }) {
		t.Error("the catalogue is not in order of status")
	}
	for _, e := range Catalogue {
		if e.Status < 400 || e.Status > 599 || http.StatusText(e.Status) == "" {
			t.Errorf("%s has the status %d", e.Code, e.Status)
		}
		if e.Status >= 500 && !e.Retry {
			t.Errorf("%s is our fault, and cannot be retried", e.Code)
		}
		if e.En == "" || e.En[len(e.En)-1] != '.' {
			t.Errorf("%s in English is %q: want sentences", e.Code, e.En)
		}
		if last := []rune(e.Zh); e.Zh == "" || last[len(last)-1] != '。' || !slices.ContainsFunc(last, func(c rune) bool { return unicode.Is(unicode.Han, c) }) {
			t.Errorf("%s in Chinese is %q: want sentences", e.Code, e.Zh)
		}
	}
	if got := Lookup("no_such_code"); got.Code != Internal {
		t.Errorf("an unknown code is %s, want internal", got.Code)
	}
}

// Codes are for ever: clients switch on them. Who changes one breaks this list on purpose.
func TestStatusesOfTheDesign(t *testing.T) {
	for code, status := range map[Code]int{
		SignInRequired: 401, NotAdmitted: 403, AdmissionExpired: 403, WrongCustomer: 403, EventUnknown: 404, SeatUnknown: 404,
		SeatsTaken: 409, PlacesTaken: 409, LimitReached: 409, HoldExpired: 409, PaymentInProgress: 409, SoldOut: 409, NotOnSale: 409, Paused: 409,
		OrphanSeat: 422, KeyReused: 422, KeyMissing: 400, TooManyRequests: 429, Busy: 503, OutcomeUnknown: 503, PaymentDeclined: 402,
	} {
		if got := Lookup(code).Status; got != status {
			t.Errorf("%s has the status %d, want %d", code, got, status)
		}
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("the cable is cut")
	wrapped := fmt.Errorf("asking: %w", Wrap(Busy, cause))
	if !errors.Is(wrapped, New(Busy, "")) || errors.Is(wrapped, New(Internal, "")) || !errors.Is(wrapped, cause) {
		t.Errorf("%v is not busy because of its cause, or is internal", wrapped)
	}
	if f := Of(wrapped); f.Code != Busy || f.Detail != "" || f.Cause != cause {
		t.Errorf("Of is %+v: the cause must stay out of what people see", f)
	}
	if Of(nil) != nil || CodeOf(nil) != "" {
		t.Error("nil is a fault")
	}
	if f := Of(cause); f.Code != Internal || f.Detail != "" || !errors.Is(f, cause) {
		t.Errorf("another error is %+v, want internal with nothing for people", f)
	}
	if CodeOf(wrapped) != Busy || CodeOf(cause) != Internal {
		t.Error("CodeOf is not the code of Of")
	}
	if f := New(Invalid, "at most %d", 3); f.Detail != "at most 3" || f.Unwrap() != nil || f.Is(cause) {
		t.Errorf("New is %+v", f)
	}
	full := (&Error{Code: Invalid, Field: "quantity", Detail: "at most 3", Cause: cause}).Error()
	if want := "invalid (quantity): at most 3: the cable is cut"; full != want {
		t.Errorf("for the log: %q, want %q", full, want)
	}
}
