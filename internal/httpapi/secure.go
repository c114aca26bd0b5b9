package httpapi

import (
	"net/http"
	"strings"

	"onsale/internal/fault"
)

// contentPolicy is for answers that are no pages: they load nothing, run nothing and are shown in nobody's frame.
const contentPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// strictTransport tells browsers to come by https alone, for two years.
const strictTransport = "max-age=63072000"

// secureHeaders are on every answer. Pages replace the Content-Security-Policy by one of their own.
func (a *api) secureHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if a.https() {
		h.Set("Strict-Transport-Security", strictTransport)
	}
}

// https says whether browsers reach us by https: what the operator calls our address decides, since TLS may end before us.
func (a *api) https() bool { return strings.HasPrefix(a.PublicURL, "https://") }

// crossOrigin refuses what a page of another origin lets a browser send: it would come with our cookies. Reads pass, since
// no page may see their answer.
func (a *api) crossOrigin(r *http.Request) error {
	if err := a.origins.Check(r); err != nil {
		return &fault.Error{Code: fault.CrossOrigin, Cause: err}
	}
	return nil
}

// newOrigins is the check of cross-origin requests. Our own public address counts as same-origin where a proxy changes Host.
func newOrigins(publicURL string) (*http.CrossOriginProtection, error) {
	c := http.NewCrossOriginProtection()
	if publicURL == "" {
		return c, nil
	}
	return c, c.AddTrustedOrigin(publicURL)
}
