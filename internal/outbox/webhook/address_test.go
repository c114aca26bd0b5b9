package webhook

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestE7OnlyPublicUnicastAddresses(t *testing.T) {
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1",
		"240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1",
		"100::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1",
		"fe80::1%eth0", "2606:4700::1%eth0", "fec0::1", "ff02::1", "4000::1",
	} {
		if Public(netip.MustParseAddr(text)) {
			t.Errorf("%s was taken for a public address", text)
		}
	}
	for _, text := range []string{"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1", "223.255.255.254", "::ffff:8.8.8.8", "2606:4700::1111", "2a00:1450::1", "2001:4860::1"} {
		if !Public(netip.MustParseAddr(text)) {
			t.Errorf("%s was refused", text)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("no address was taken for a public one")
	}
	allowed := prefixes("10.1.0.0/16", "fd00::/8")
	for text, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "fd01::1": true, "fc00::1": false, "8.8.8.8": true} {
		if got := Allowed(netip.MustParseAddr(text), allowed); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestCheckURL(t *testing.T) {
	for _, text := range []string{
		"https://example.com", "https://example.com:8443/hook?a=b", "https://8.8.8.8/", "https://[2606:4700::1]/x", "https://xn--fiqs8s.example/%E4",
	} {
		if err := CheckURL(text, nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		"", "http://example.com", "HTTP://example.com", "ftp://example.com", "https://", "https:///x", "https:example.com", "//example.com", "example.com",
		"https://user@example.com", "https://user:pw@example.com", "https://example.com/#x", "https://example.com/#", "https://example.com:0", "https://example.com:99999",
		"https://example.com:", "https://127.0.0.1", "https://[::1]", "https://[::ffff:10.0.0.1]/", "https://169.254.169.254/latest", "https://例子.example", "https://example.com/a b",
		"https://example.com/\r\nHost: x", "https://example.com/" + strings.Repeat("a", URLBytesMax),
	} {
		if CheckURL(text, nil) == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if err := CheckURL("https://127.0.0.1/x", prefixes("127.0.0.0/8")); err != nil {
		t.Error(err)
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, text := range []string{"https://example.com/x?y", "https://[::1]:443", "https://a@b", "https://127.1", "https://0x7f000001", "https://example.com:443#"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if CheckURL(text, nil) != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || strings.ContainsAny(text, "\r\n\t #") {
			t.Fatalf("%q was taken: %+v, %v", text, u, err)
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !Public(ip) {
			t.Fatalf("%q leads inside", text)
		}
	})
}
