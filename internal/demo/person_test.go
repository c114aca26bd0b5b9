package demo

import (
	"net/http"
	"testing"
)

// A browser keeps what it was given, the latest of each name, and sends all of it.
func TestCookies(t *testing.T) {
	v := &visit{}
	for _, c := range []struct {
		set  []*http.Cookie
		want string
	}{
		{[]*http.Cookie{{Name: "browser", Value: "a"}}, "browser=a"},
		{[]*http.Cookie{{Name: "sign_in", Value: "x=="}}, "browser=a; sign_in=x=="},
		{nil, "browser=a; sign_in=x=="},
		{[]*http.Cookie{{Name: "browser", Value: "b"}}, "browser=b; sign_in=x=="},
	} {
		if v.takeCookies(&answer{cookies: c.set}); v.who.cookies != c.want {
			t.Errorf("%q, want %q", v.who.cookies, c.want)
		}
	}
}

// Each buyer, whoever they pass tickets on to, and the staff come from an address of their own.
func TestAddresses(t *testing.T) {
	seen := map[string]int{}
	for _, n := range []int{0, 1, 254, 255, 256, 65_535, 65_536, 999_999, 1_999_999, staffNumber, staffNumber + 1} {
		if other, twice := seen[address(n)]; twice {
			t.Errorf("%d and %d are both at %s", n, other, address(n))
		}
		seen[address(n)] = n
	}
}

func TestCodesInSubjects(t *testing.T) {
	for subject, want := range map[string]string{
		"40718265 is your sign-in code": "40718265", "407182654071 is your sign-in code": "407182654071",
		"Your tickets for 40718265": "", "4071826 tickets": "", "4071826540718 things": "", "": "",
	} {
		if got := codeInSubject.FindString(subject); got != want {
			t.Errorf("%q: %q, want %q", subject, got, want)
		}
	}
}
