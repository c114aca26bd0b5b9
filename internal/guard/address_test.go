package guard

import (
	"net/netip"
	"strings"
	"testing"
)

// headers are a request's, without net/http.
type headers map[string][]string

func (h headers) Values(name string) []string { return h[name] }

var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48")}

func TestClientAddress(t *testing.T) {
	const xff, fwd = "X-Forwarded-For", "Forwarded"
	for name, c := range map[string]struct {
		remote  string
		headers headers
		want    string
	}{
		"nothing in between":           {"198.51.100.7:1234", nil, "198.51.100.7"},
		"nobody's word":                {"198.51.100.7:1234", headers{xff: {"1.1.1.1"}, fwd: {"for=1.1.1.1"}}, "198.51.100.7"},
		"a proxy that says nothing":    {"10.0.0.1:1234", nil, "10.0.0.1"},
		"one proxy":                    {"10.0.0.1:1234", headers{xff: {"198.51.100.7"}}, "198.51.100.7"},
		"two proxies":                  {"10.0.0.1:1234", headers{xff: {"198.51.100.7, 10.2.3.4"}}, "198.51.100.7"},
		"what the client made up":      {"10.0.0.1:1234", headers{xff: {"1.1.1.1, 198.51.100.7, 10.2.3.4"}}, "198.51.100.7"},
		"two headers are one":          {"10.0.0.1:1234", headers{xff: {"1.1.1.1", "198.51.100.7"}}, "198.51.100.7"},
		"all are proxies":              {"10.0.0.1:1234", headers{xff: {"10.0.0.3, 10.0.0.2"}}, "10.0.0.3"},
		"with ports":                   {"10.0.0.1:1234", headers{xff: {"198.51.100.7:4711"}}, "198.51.100.7"},
		"unknown ends it":              {"10.0.0.1:1234", headers{xff: {"198.51.100.7, unknown, 10.0.0.2"}}, "10.0.0.2"},
		"nonsense ends it":             {"10.0.0.1:1234", headers{xff: {"198.51.100.7,,"}}, "10.0.0.1"},
		"IPv6":                         {"[2001:db8:ffff::1]:1234", headers{xff: {"2001:db8::7"}}, "2001:db8::7"},
		"IPv6 with a port":             {"[2001:db8:ffff::1]:1234", headers{xff: {"[2001:db8::7]:99"}}, "2001:db8::7"},
		"IPv4 as IPv6":                 {"[::ffff:10.0.0.1]:1234", headers{xff: {"::ffff:198.51.100.7"}}, "198.51.100.7"},
		"the standard header":          {"10.0.0.1:1234", headers{fwd: {`for=192.0.2.1;proto=http, for=198.51.100.7;by=10.0.0.9`}}, "198.51.100.7"},
		"the standard header, quoted":  {"10.0.0.1:1234", headers{fwd: {`By=x; FOR = "[2001:db8::7]:99" ;host="a,b;for=1.1.1.1"`}}, "2001:db8::7"},
		"a hidden name":                {"10.0.0.1:1234", headers{fwd: {`for=198.51.100.7, for=_hidden`}}, "10.0.0.1"},
		"for is missing":               {"10.0.0.1:1234", headers{fwd: {`for=198.51.100.7, proto=http`}}, "10.0.0.1"},
		"for is there twice":           {"10.0.0.1:1234", headers{fwd: {`for=198.51.100.7;for=1.1.1.1`}}, "10.0.0.1"},
		"a quote that was left open":   {"10.0.0.1:1234", headers{fwd: {`for=1.1.1.1;x=", for="[2001:db8::7]"`}}, "10.0.0.1"},
		"an escape":                    {"10.0.0.1:1234", headers{fwd: {`for="198.51.100.\7"`}}, "10.0.0.1"},
		"both agree":                   {"10.0.0.1:1234", headers{xff: {"198.51.100.7"}, fwd: {"for=198.51.100.7"}}, "198.51.100.7"},
		"both differ: nobody believed": {"10.0.0.1:1234", headers{xff: {"198.51.100.7"}, fwd: {"for=1.1.1.1"}}, "10.0.0.1"},
		"a zone":                       {"[fe80::1%eth0]:1234", nil, "fe80::1"},
		"brackets around IPv4":         {"10.0.0.1:1234", headers{xff: {"[198.51.100.7]"}}, "10.0.0.1"},
		"too many hops":                {"10.0.0.1:1234", headers{xff: {"198.51.100.7," + strings.Repeat("10.0.0.2,", hopsMax) + "10.0.0.3"}}, "10.0.0.2"},
	} {
		if got := ClientAddress(c.remote, c.headers, proxies); got.String() != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for _, remote := range []string{"", "@", "onsale.sock", "localhost:80"} {
		if got := ClientAddress(remote, headers{xff: {"1.1.1.1"}}, proxies); got.IsValid() {
			t.Errorf("%q has the address %s", remote, got)
		}
	}
	if got := ClientAddress("10.0.0.1:1", headers{xff: {"1.1.1.1"}}, nil); got.String() != "10.0.0.1" {
		t.Errorf("without listed proxies %s is believed", got)
	}
}

// Whatever a client writes, it is taken for itself or for the proxy that it came through: never for somebody else.
func FuzzClientAddress(f *testing.F) {
	for _, text := range []string{
		"", "1.1.1.1", "for=1.1.1.1", `for="1.1.1.1`, `for=1.1.1.1;x="`, `for="\`, ",", ";", "[::1]:80", "unknown", "_x", "1.1.1.1, 10.0.0.1", "for=1.1.1.1, for=10.0.0.5",
		"::ffff:1.1.1.1%x", "\x00", "1.1.1.1:99999", `"1.1.1.1"`, "for", "for==1.1.1.1", "10.0.0.9",
	} {
		f.Add(text, text, true, true)
		f.Add(text, "", false, true)
		f.Add("", text, true, false)
	}
	const client, proxy = "198.51.100.7", "10.0.0.1"
	f.Fuzz(func(t *testing.T, plain, standard string, writesPlain, quotes bool) {
		h := headers{}
		add := func(name, given, own string) {
			switch {
			case given == "" && own == "":
			case given == "":
				h[name] = []string{own}
			case own == "":
				h[name] = []string{given}
			default: // appended to the client's value, or as a header of its own
				h[name] = []string{given + ", " + own}
				if len(given)%2 == 0 {
					h[name] = []string{given, own}
				}
			}
		}
		own := "for=" + client
		if quotes {
			own = `for="` + client + `:4711";proto=https`
		}
		if writesPlain {
			add("X-Forwarded-For", plain, client)
			add("Forwarded", standard, "")
		} else {
			add("X-Forwarded-For", plain, "")
			add("Forwarded", standard, own)
		}
		if got := ClientAddress(proxy+":1234", h, proxies).String(); got != client && got != proxy {
			t.Fatalf("%q is taken for %s", h, got)
		}
		if got := ClientAddress(client+":1", h, proxies).String(); got != client {
			t.Fatalf("%q is believed without a proxy: %s", h, got)
		}
	})
}
