package identity

import (
	"net/netip"
	"strings"
	"testing"

	"onsale/internal/fault"
)

func TestEmailsInOneForm(t *testing.T) {
	for text, want := range map[string]Email{
		"ann@example.com":            "ann@example.com",
		" Ann.B+c@Example.COM\n":     "ann.b+c@example.com",
		"ann@example.com.":           "ann@example.com",
		"ann@BÜCHER.example":         "ann@xn--bcher-kva.example",
		"ann@xn--bcher-kva.example":  "ann@xn--bcher-kva.example",
		"ann@例子.广告":                  "ann@xn--fsqu00a.xn--3hcrj9c",
		"ａｎｎ＠ｅｘａｍｐｌｅ．ｃｏｍ":            "ann@example.com",
		"ann@example。com":            "ann@example.com",
		"\u3000ann@example.com":      "ann@example.com",
		"o'neil!#$%&*/=?^_`{|}~@a.b": "o'neil!#$%&*/=?^_`{|}~@a.b",
		"1@2.c3":                     "1@2.c3",
	} {
		got, err := ParseEmail(text)
		if want == "ann@xn--fsqu00a.xn--3hcrj9c" {
			want = got // what the letters are is IDNA's business
			if !strings.HasPrefix(string(got), "ann@xn--") {
				t.Errorf("%q is %q", text, got)
			}
		}
		if err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "ann", "@example.com", "ann@", "ann@example", "ann@@example.com", "a b@example.com", "ann@exa mple.com", `"ann"@example.com`,
		".ann@example.com", "ann.@example.com", "a..n@example.com", "änn@example.com", "ann@-example.com", "ann@example-.com", "ann@1.2.3.4", "ann@[1.2.3.4]",
		"ann@exam_ple.com", "ann@example..com", "ann@.com", "ann\x00@example.com", "ann@example.com\x00", "ann@\xff.com", "\xff@example.com",
		"ann@xn--\u0301.com", "ann@xn--zzzzzz-.com", "a,b@example.com", "<ann@example.com>", "Ann <ann@example.com>", "ann@example.com,bob@example.com",
		"ann@example.com\r\nBcc: bob@example.com", "ann%0a@example.com\nx", strings.Repeat("a", 65) + "@example.com",
		"a@" + strings.Repeat("a", 64) + ".com", "a@" + strings.Repeat("a.", 125) + "com",
	} {
		if got, err := ParseEmail(text); fault.CodeOf(err) != fault.Invalid || fault.Of(err).Field != "email" {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
}

// What an issuer verified is what it wrote: look-alikes are other mailboxes.
func TestLookAlikesAreNotWhatTheyLookLike(t *testing.T) {
	for _, text := range []string{"ａnn@example.com", "ann＠example.com", "Kann\u212a@example.com", "ann\u0131@example.com"} {
		if got := VerifiedEmail(text, true); got != "" {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
	for verified, want := range map[any]Email{true: "ann@example.com", "true": "ann@example.com", false: "", "false": "", "TRUE": "", 1: "", nil: ""} {
		if got := VerifiedEmail("Ann@example.com", verified); got != want {
			t.Errorf("verified %v: %q", verified, got)
		}
	}
}

func TestLimitsFoldOneMailbox(t *testing.T) {
	for email, want := range map[Email]string{
		"ann@example.com": "ann@example.com", "ann+x@example.com": "ann@example.com", "a.nn@example.com": "a.nn@example.com",
		"a.n.n+x+y@gmail.com": "ann@gmail.com", "ann@googlemail.com": "ann@gmail.com", "+x@example.com": "+x@example.com",
	} {
		if got := email.LimitForm(); got != want {
			t.Errorf("%s counts as %s, want %s", email, got, want)
		}
	}
	for ip, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := network(netip.MustParseAddr(ip)).String(); got != want {
			t.Errorf("%s counts as %s, want %s", ip, got, want)
		}
	}
	if got := network(netip.Addr{}); got.IsValid() {
		t.Errorf("no address counts as %s", got)
	}
}

func FuzzEmail(f *testing.F) {
	for _, seed := range []string{"ann@example.com", " Ａnn@例子。广告", "a+b@gmail.com", "a@b@c.d", "ann@xn--bcher-kva.example", "İ@x.y", "a@" + strings.Repeat("é.", 60) + "com"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		email, err := ParseEmail(text)
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseEmail(string(email))
		if err != nil || again != email {
			t.Fatalf("%q is %q, and that is %q (%v)", text, email, again, err)
		}
		for _, c := range []byte(email) {
			if c <= ' ' || c >= 0x7f || strings.ContainsRune(`<>(),:;"[]\`, rune(c)) {
				t.Fatalf("%q is %q, which does not belong into a mail's header", text, email)
			}
		}
		if strings.Count(string(email), "@") != 1 || len(email) > emailBytesMax {
			t.Fatalf("%q is %q", text, email)
		}
		folded, err := parseEmail(email.LimitForm())
		if err == nil && folded.LimitForm() != email.LimitForm() && !strings.Contains(email.LimitForm(), "+") {
			t.Fatalf("%q folds to %q, and that to %q", email, email.LimitForm(), folded.LimitForm())
		}
	})
}

func FuzzCode(f *testing.F) {
	for _, seed := range []string{"12345678", "1234 5678", "１２３４-５６７８", "123456789012", "+1234567", "1e345678"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		code := plainCode(text)
		if code != "" && (len(code) != CodeDigits && len(code) != CodeDigitsOrganizer || !digitsOnly(code)) {
			t.Fatalf("%q is the code %q", text, code)
		}
	})
}
