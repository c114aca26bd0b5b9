package webhook

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// CheckURL says what is wrong with an endpoint's URL, nil where nothing is. An address in it is looked at here, so that who
// types it learns of it; a name is looked at when it is dialled (E7).
func CheckURL(text string, allowed []netip.Prefix) error {
	if len(text) > URLBytesMax {
		return fmt.Errorf("the URL is longer than %d bytes", URLBytesMax)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("the URL must be plain ASCII without spaces: spell other letters as %%XX, a name as xn--")
	}
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("it is not a URL: write https://example.com/path")
	}
	switch {
	case u.Scheme != "https" || u.Opaque != "" || u.Hostname() == "":
		return fmt.Errorf("write https://example.com/path: only https is possible")
	case u.User != nil:
		return fmt.Errorf("the URL must hold no user or password: the signature says who we are")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return fmt.Errorf("the URL must have no #: what follows is never sent")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("port %q must be 1 to 65535", port)
		}
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !Allowed(ip, allowed) {
		return fmt.Errorf("%s is not a public address; the operator may allow it (webhooks.allow)", ip)
	}
	return nil
}

// special are unicast networks that do not lead to somebody else's public machine (IANA's special-purpose registries), or
// carry another address inside.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24",
	"192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// global is where IPv6's public unicast addresses are.
var global = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Public says whether an address is one of the public unicast ones.
func Public(ip netip.Addr) bool {
	if ip.Zone() != "" {
		return false
	}
	ip = ip.Unmap()
	if !ip.IsValid() || ip.Is6() && !global.Contains(ip) {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Allowed says whether an address may be dialled: a public one, or one of those that the operator allows.
func Allowed(ip netip.Addr, allowed []netip.Prefix) bool {
	ip = ip.Unmap()
	return Public(ip) || slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(ip.WithZone("")) })
}
