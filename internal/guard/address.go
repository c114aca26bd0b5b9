package guard

import (
	"net/netip"
	"slices"
	"strings"
)

// hopsMax is how many hops of a request are looked at.
const hopsMax = 32

// Headers are those of a request; http.Header is one.
type Headers interface{ Values(name string) []string }

// ClientAddress is the address that a request comes from. remote is the other end of the connection, "host:port". What
// Forwarded (RFC 7239) or X-Forwarded-For say is believed only as far as listed proxies said it: from right to left, each
// hop's word about the one before it, up to the first that is not listed. A word that is no address ("unknown", "_hidden")
// ends it at who said it.
//
// A proxy writes one of the two headers and may pass the other through as a client wrote it. So where both are there and do
// not agree, neither is believed.
//
// The zero address is answered where remote is none (a socket of the file system).
func ClientAddress(remote string, headers Headers, trusted []netip.Prefix) netip.Addr {
	last := parseAddress(remote)
	if !isTrusted(last, trusted) {
		return last
	}
	plain, standard := headers.Values("X-Forwarded-For"), headers.Values("Forwarded")
	switch {
	case len(plain) == 0 && len(standard) == 0:
		return last
	case len(standard) == 0:
		return walk(last, plainHops(plain), trusted)
	case len(plain) == 0:
		return walk(last, standardHops(standard), trusted)
	}
	a, b := walk(last, plainHops(plain), trusted), walk(last, standardHops(standard), trusted)
	if a != b {
		return last
	}
	return a
}

// walk goes from the hop next to us outwards.
func walk(last netip.Addr, hops []string, trusted []netip.Prefix) netip.Addr {
	for i := len(hops) - 1; i >= max(0, len(hops)-hopsMax); i-- {
		hop := parseAddress(hops[i])
		if !hop.IsValid() {
			return last
		}
		if last = hop; !isTrusted(hop, trusted) {
			return last
		}
	}
	return last
}

func isTrusted(a netip.Addr, trusted []netip.Prefix) bool {
	return a.IsValid() && slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}

// parseAddress reads an address with or without a port; IPv6 in brackets where it has one.
func parseAddress(text string) netip.Addr {
	text = strings.TrimSpace(text)
	if a, err := netip.ParseAddrPort(text); err == nil {
		return a.Addr().Unmap().WithZone("")
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if text, ok = strings.CutSuffix(inner, "]"); !ok || !strings.Contains(text, ":") {
			return netip.Addr{}
		}
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// plainHops are those of X-Forwarded-For, the nearest last. More than one header is one list (RFC 9110, 5.3).
func plainHops(values []string) []string { return strings.Split(strings.Join(values, ","), ",") }

// standardHops are what the elements of Forwarded say as for, "" where one says nothing or cannot be read. A value in which
// a quote does not end says nothing at all: what a client left open would swallow what a proxy has added.
func standardHops(values []string) []string {
	var hops []string
	for _, value := range values {
		elements, whole := splitQuoted(value, ',')
		if !whole {
			hops = append(hops, "")
			continue
		}
		for _, element := range elements {
			hops = append(hops, forOf(element))
		}
	}
	return hops
}

// forOf is what one element says as for; "" where it says it twice, which no proxy does.
func forOf(element string) (hop string) {
	pairs, _ := splitQuoted(element, ';')
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "for") {
			continue
		}
		if hop != "" {
			return ""
		}
		hop = unquoted(strings.TrimSpace(value))
	}
	return hop
}

// splitQuoted splits where the separator stands outside quotes, and says whether every quote ends.
func splitQuoted(text string, separator byte) (parts []string, whole bool) {
	quoted, start := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:]), !quoted
}

// unquoted is a token, or what a quoted string says; "" for a string that does not end.
func unquoted(text string) string {
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	if len(text) < 2 || !strings.HasSuffix(text, `"`) || strings.Contains(text, `\`) { // no address needs an escape
		return ""
	}
	return text[1 : len(text)-1]
}

// Network is the network as which an address is limited: IPv4 alone, IPv6 its /64, one customer's line.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // fails for no address alone, whose network is none
	return p
}
