// Package post sends webhooks over HTTPS to addresses that may be anybody's, and so trusts none of them (E7).
//
// The one idea: what is allowed is decided on the address that is dialled, after DNS, in the dialer's Control, so that no
// name, however it resolves the second time, leads inside. No redirects, no proxy of the environment, 10 s for everything,
// 64 KiB of answer.
//
// Start reading at New.
package post

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"onsale/internal/outbox/webhook"
)

// Bounds of a post.
const (
	timeoutDefault = 10 * time.Second
	AnswerBytesMax = 64 << 10
	agent          = "Onsale-Webhooks/1"
)

// Options say where may be posted.
type Options struct {
	Allowed []netip.Prefix // beside public addresses: the operator's
	Timeout time.Duration  // for a whole post. Defaults to 10 s
	Roots   *x509.CertPool // for tests. Defaults to the system's
}

// A Poster is a webhook.Poster. Close it.
type Poster struct {
	o      Options
	client *http.Client
}

// errForbidden is the dialer's refusal.
var errForbidden = errors.New("the address is not a public one; the operator may allow it (webhooks.allow)")

// New makes a poster.
func New(o Options) *Poster {
	if o.Timeout == 0 {
		o.Timeout = timeoutDefault
	}
	dialer := &net.Dialer{Timeout: o.Timeout, Control: func(network, address string, _ syscall.RawConn) error {
		return control(network, address, o.Allowed)
	}}
	return &Poster{o: o, client: &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: o.Timeout, ResponseHeaderTimeout: o.Timeout, MaxResponseHeaderBytes: AnswerBytesMax,
			MaxIdleConnsPerHost: webhook.ParallelMax, MaxConnsPerHost: 4 * webhook.ParallelMax, MaxIdleConns: 64, IdleConnTimeout: 30 * time.Second,
			DisableCompression: true, // an answer of 64 KiB stays one
			ForceAttemptHTTP2:  true,
		},
	}}
}

// control looks at the very address that is about to be dialled.
func control(network, address string, allowed []netip.Prefix) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") || !webhook.Allowed(to.Addr(), allowed) {
		return errForbidden
	}
	return nil
}

// Post implements webhook.Poster. Errors hold no more than words of ours: texts of others may hold anything.
func (p *Poster) Post(ctx context.Context, url string, headers map[string]string, body string) (int, error) {
	if err := webhook.CheckURL(url, p.o.Allowed); err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, errors.New("it is not a URL")
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("User-Agent", agent)
	answer, err := p.client.Do(r)
	if err != nil {
		return 0, plain(err)
	}
	defer answer.Body.Close()
	// Read to the end, so that the connection can be used again; one byte more than allowed ends it.
	n, err := io.Copy(io.Discard, io.LimitReader(answer.Body, AnswerBytesMax+1))
	switch {
	case n > AnswerBytesMax:
		return answer.StatusCode, fmt.Errorf("the answer is longer than %d bytes", AnswerBytesMax)
	case err != nil:
		return answer.StatusCode, plain(err)
	case answer.StatusCode >= 300 && answer.StatusCode <= 399:
		return answer.StatusCode, errors.New("it leads elsewhere: give the URL that it leads to")
	}
	return answer.StatusCode, nil
}

// plain is why there was no answer, in few words.
func plain(err error) error {
	var dns *net.DNSError
	var untrusted *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.Is(err, errForbidden):
		return errForbidden
	case errors.As(err, &dns):
		return errors.New("the name is not known to DNS")
	case errors.As(err, &untrusted):
		return errors.New("its certificate does not hold")
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("no answer in time")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the connection was refused")
	}
	return errors.New("the connection broke")
}

// Close ends idle connections.
func (p *Poster) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
