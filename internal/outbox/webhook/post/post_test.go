package post

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func serve(t *testing.T, h http.HandlerFunc) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, roots
}

func poster(t *testing.T, o Options) *Poster {
	t.Helper()
	p := New(o)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestAMessageArrivesWhole(t *testing.T) {
	var got *http.Request
	var body string
	s, roots := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		w.WriteHeader(http.StatusNoContent)
	})
	p := poster(t, Options{Allowed: loopback, Roots: roots})
	status, err := p.Post(t.Context(), s.URL+"/hook?a=b", map[string]string{"webhook-id": "msg_1", "content-type": "application/json"}, `{"极光":1}`)
	if status != 204 || err != nil {
		t.Fatal(status, err)
	}
	if got.Method != "POST" || got.RequestURI != "/hook?a=b" || got.Header.Get("Webhook-Id") != "msg_1" || got.Header.Get("Content-Type") != "application/json" || body != `{"极光":1}` {
		t.Errorf("%+v %q", got, body)
	}
}

func TestE7AddressesAreLookedAtWhenDialled(t *testing.T) {
	asked := false
	s, roots := serve(t, func(http.ResponseWriter, *http.Request) { asked = true })
	p := poster(t, Options{Roots: roots})
	for _, url := range []string{s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)} {
		if status, err := p.Post(t.Context(), url, nil, ""); status != 0 || err == nil {
			t.Errorf("%s: %d, %v", url, status, err)
		}
	}
	// A name leads where it likes: only the dialer can say no.
	if _, err := p.Post(t.Context(), strings.Replace(s.URL, "127.0.0.1", "localhost", 1), nil, ""); !errors.Is(err, errForbidden) {
		t.Error(err)
	}
	if asked {
		t.Error("a loopback address was dialled")
	}
	for _, address := range []string{"127.0.0.1:443", "[::1]:443", "[::ffff:169.254.169.254]:80", "nonsense", "8.8.8.8"} {
		if control("tcp4", address, nil) == nil {
			t.Errorf("%s may be dialled", address)
		}
	}
	if control("udp4", "8.8.8.8:443", nil) == nil || control("tcp4", "8.8.8.8:443", nil) != nil {
		t.Error("only TCP to public addresses")
	}
}

func TestE7NoRedirects(t *testing.T) {
	followed := false
	s, roots := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			followed = true
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	p := poster(t, Options{Allowed: loopback, Roots: roots})
	if status, err := p.Post(t.Context(), s.URL, nil, ""); status != 307 || err == nil || followed {
		t.Errorf("%d, %v, followed %v", status, err, followed)
	}
}

func TestE7NoProxyOfTheEnvironment(t *testing.T) {
	if New(Options{}).client.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy may be used")
	}
}

func TestE7Bounds(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	s, roots := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", AnswerBytesMax+1))
		case "/fits":
			_, _ = io.WriteString(w, strings.Repeat("x", AnswerBytesMax))
		case "/headers":
			w.Header().Set("X-Long", strings.Repeat("x", 2*AnswerBytesMax))
		case "/drip":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-release
		default:
			<-release
		}
	})
	p := poster(t, Options{Allowed: loopback, Roots: roots, Timeout: 300 * time.Millisecond})
	for path, good := range map[string]bool{"/fits": true, "/long": false, "/headers": false, "/drip": false, "/slow": false} {
		if _, err := p.Post(t.Context(), s.URL+path, nil, ""); (err == nil) != good {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Post(ctx, s.URL+"/fits", nil, ""); err == nil {
		t.Error("it was posted after the end")
	}
	if New(Options{}).client.Timeout != 10*time.Second {
		t.Error("the time is not 10 s")
	}
}

func TestErrorsTellNothingOfOthers(t *testing.T) {
	s, _ := serve(t, func(http.ResponseWriter, *http.Request) {})
	p := poster(t, Options{Allowed: loopback})
	if _, err := p.Post(t.Context(), s.URL, nil, ""); err == nil || err.Error() != "its certificate does not hold" {
		t.Error(err)
	}
	s.Close()
	if _, err := p.Post(t.Context(), s.URL, nil, ""); err == nil || err.Error() != "the connection was refused" {
		t.Error(err)
	}
	if _, err := p.Post(t.Context(), "https://no-such-name.invalid/", nil, ""); err == nil || strings.Contains(err.Error(), "invalid/") {
		t.Error(err)
	}
}
