package identity

import (
	"net/netip"
	"strings"

	"golang.org/x/net/idna"

	"onsale/internal/fault"
)

// An Email is an address in the one form under which it is an identity, compared and written to: trimmed, all ASCII, the
// domain as DNS has it (IDNA), everything in lower case. Two spellings of the local part's letters could in theory be two
// mailboxes; in practice they are typing. Nothing else is folded: a mail provider decides whether a+b@ and a@ are one
// mailbox, and here they are two customers. Only LimitForm folds those.
type Email string

// Bounds of an address (RFC 5321).
const (
	emailBytesMax  = 254
	localBytesMax  = 64
	domainBytesMax = 253
)

// ParseEmail reads an address as a person types it: full-width letters and signs of a Chinese keyboard count as what they
// stand for. Fault: invalid, which names the mend.
func ParseEmail(text string) (Email, error) { return parseEmail(strings.Map(narrow, text)) }

// narrow maps the full-width forms of ASCII and the ideographic full stop and space.
func narrow(r rune) rune {
	switch {
	case r >= 0xFF01 && r <= 0xFF5E:
		return r - 0xFF01 + '!'
	case r == '。' || r == '．' || r == '｡':
		return '.'
	case r == '\u3000' || r == '\u00A0':
		return ' '
	}
	return r
}

func badEmail(why string) error {
	return &fault.Error{Code: fault.Invalid, Field: "email", Detail: "the e-mail address " + why}
}

// parseEmail takes no full-width forms: where an issuer has verified an address, another spelling was another mailbox.
func parseEmail(text string) (Email, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", badEmail("is missing")
	}
	if len(text) > emailBytesMax {
		return "", badEmail("is too long")
	}
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return "", badEmail("has no @: write it like name@example.com")
	}
	local, domain := text[:at], text[at+1:]
	if bad := checkLocal(local); bad != "" {
		return "", badEmail(bad)
	}
	domain, bad := plainDomain(domain)
	if bad != "" {
		return "", badEmail(bad)
	}
	email := strings.ToLower(local) + "@" + domain
	if len(email) > emailBytesMax {
		return "", badEmail("is too long")
	}
	return Email(email), nil
}

// checkLocal takes a dot-atom (RFC 5322): quoted local parts and those outside ASCII, which hardly any server takes, are
// refused, so that "one address" has one meaning everywhere.
func checkLocal(local string) string {
	switch {
	case local == "":
		return "has nothing before the @"
	case len(local) > localBytesMax:
		return "is too long before the @"
	case local[0] == '.' || local[len(local)-1] == '.' || strings.Contains(local, ".."):
		return "has a dot too many before the @"
	}
	for _, c := range []byte(local) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~.", rune(c)) {
			return "has something before the @ that is no plain letter, digit or sign"
		}
	}
	return ""
}

func plainDomain(domain string) (string, string) {
	if domain == "" {
		return "", "has nothing after the @"
	}
	plain, err := idna.Lookup.ToASCII(domain)
	// A dot at the end is DNS's own way to say the same name.
	plain = strings.ToLower(strings.TrimSuffix(plain, "."))
	switch {
	case err != nil, !domainShape(plain):
		return "", "has no proper domain after the @: write it like name@example.com"
	case len(plain) > domainBytesMax:
		return "", "is too long after the @"
	}
	return plain, ""
}

// domainShape says whether a name is of letters, digits and hyphens, of two labels at least, and is no IP address.
func domainShape(domain string) bool {
	labels := strings.Split(domain, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-') {
				return false
			}
		}
	}
	last := labels[len(labels)-1]
	return len(labels) >= 2 && strings.ContainsFunc(last, func(r rune) bool { return r < '0' || r > '9' })
}

// LimitForm is what mails to an address are counted under: one mailbox of one person, however they spell it. It is never
// an identity: it folds more than is certain.
func (e Email) LimitForm() string {
	local, domain, _ := strings.Cut(string(e), "@")
	if bare, _, tagged := strings.Cut(local, "+"); tagged && bare != "" {
		local = bare
	}
	if domain == "googlemail.com" {
		domain = "gmail.com"
	}
	if domain == "gmail.com" {
		local = strings.ReplaceAll(local, ".", "")
	}
	return local + "@" + domain
}

// network is what requests of an IP address are counted under: the address, of IPv6 its /64 (one customer's line).
func network(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address: all of these count as one
	}
	return prefix
}
