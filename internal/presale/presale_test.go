package presale_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"onsale/internal/control"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/presale"
)

const event = id.ID(77)

func service(t *testing.T) *presale.Service {
	t.Helper()
	db, err := control.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return presale.New(db.Presale(), []byte("pepper"), nil)
}

func TestCodesAreReadAsPeopleCopyThem(t *testing.T) {
	s, ctx := service(t), context.Background()
	added, err := s.AddCodes(ctx, event, "presale", []presale.Upload{{Code: "Sun-7H2K"}, {Code: "fans2027", Uses: 500, Label: "newsletter"}})
	if err != nil || added != 2 {
		t.Fatal(added, err)
	}
	first, err := s.Code(ctx, event, "presale", "SUN7H2K")
	if err != nil || first.Max != 1 {
		t.Fatal(first, err)
	}
	for _, typed := range []string{"sun-7h2k", " Sun 7H2K\n", "SUN–7H2K", "sun_7h2k"} {
		if got, err := s.Code(ctx, event, "presale", typed); err != nil || got != first {
			t.Errorf("%q: %+v, %v", typed, got, err)
		}
	}
	if got, err := s.Code(ctx, event, "presale", "FANS2027"); err != nil || got.Max != 500 || got.Code == first.Code {
		t.Errorf("%+v, %v", got, err)
	}
	for name, ask := range map[string]func() (presale.Allowance, error){
		"another":       func() (presale.Allowance, error) { return s.Code(ctx, event, "presale", "SUN7H2L") },
		"another lane":  func() (presale.Allowance, error) { return s.Code(ctx, event, "vip", "SUN7H2K") },
		"another event": func() (presale.Allowance, error) { return s.Code(ctx, event+1, "presale", "SUN7H2K") },
		"none":          func() (presale.Allowance, error) { return s.Code(ctx, event, "presale", "") },
		"too long":      func() (presale.Allowance, error) { return s.Code(ctx, event, "presale", strings.Repeat("x", 65)) },
		"no text":       func() (presale.Allowance, error) { return s.Code(ctx, event, "presale", "\xff\xfe\x00\x01x") },
	} {
		if a, err := ask(); fault.CodeOf(err) != fault.PresaleCodeWrong {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	page, err := s.Codes(ctx, event, "presale", nil, 10)
	if err != nil || len(page) != 2 {
		t.Fatal(page, err)
	}
	for _, c := range page {
		if c.Label != "1" && c.Label != "newsletter" || time.Since(c.Created) > time.Hour {
			t.Errorf("%+v", c)
		}
	}
}

func TestAnUploadIsTakenWholeOrNotAtAll(t *testing.T) {
	s, ctx := service(t), context.Background()
	for want, uploads := range map[string][]presale.Upload{
		"1 to 100000 codes":            {},
		"number 2 has fewer than 4":    {{Code: "good1"}, {Code: "a-b-c"}},
		"number 1 is longer than 64":   {{Code: strings.Repeat("x", 65)}},
		"numbers 1 and 3 are the same": {{Code: "abcd"}, {Code: "abce"}, {Code: "AB-CD"}},
		"not between 1 and":            {{Code: "abcd", Uses: -1}},
		"label must be":                {{Code: "abcd", Label: "a\nb"}},
		"cannot be typed":              {{Code: "abcd\x07"}},
	} {
		_, err := s.AddCodes(ctx, event, "presale", uploads)
		if f := fault.Of(err); err == nil || f.Code != fault.Invalid || f.Field != "codes" || !strings.Contains(f.Detail, want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if counts, err := s.Counts(ctx, event); err != nil || len(counts) != 0 {
		t.Errorf("something was kept: %v, %v", counts, err)
	}
}

func TestMembers(t *testing.T) {
	s, ctx := service(t), context.Background()
	added, err := s.AddMembers(ctx, event, "friends", []string{"Ada@Example.com", "ada@example.com", "bob@example.com"})
	if err != nil || added != 2 {
		t.Fatal(added, err)
	}
	address := func(text string) identity.Email {
		e, err := identity.ParseEmail(text)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	ada, err := s.Member(ctx, event, "friends", []identity.Email{address("new@example.com"), address("ada@example.com")})
	if err != nil || ada.Max != 1 {
		t.Fatal(ada, err)
	}
	for _, addresses := range [][]identity.Email{nil, {address("carol@example.com")}} {
		if _, err := s.Member(ctx, event, "friends", addresses); fault.CodeOf(err) != fault.PresaleCodeWrong {
			t.Errorf("%v: %v", addresses, err)
		}
	}
	if _, err := s.Member(ctx, event, "others", []identity.Email{address("ada@example.com")}); fault.CodeOf(err) != fault.PresaleCodeWrong {
		t.Error("a member of another lane", err)
	}
	_, err = s.AddMembers(ctx, event, "friends", []string{"carol@example.com", "nobody"})
	if f := fault.Of(err); err == nil || f.Code != fault.Invalid || !strings.Contains(f.Detail, "number 2") || strings.Contains(f.Detail, "nobody") {
		t.Errorf("%v", err)
	}
	if counts, err := s.Counts(ctx, event); err != nil || fmt.Sprint(counts) != "[{friends 0 2}]" {
		t.Errorf("%v, %v", counts, err)
	}
}

func FuzzNormalise(f *testing.F) {
	for _, seed := range []string{"Sun-7H2K", " a b ", "ß–İ", "\xff", strings.Repeat("x", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, code string) {
		once := presale.Normalise(code)
		if again := presale.Normalise(once); again != once {
			t.Errorf("%q becomes %q, then %q", code, once, again)
		}
	})
}
