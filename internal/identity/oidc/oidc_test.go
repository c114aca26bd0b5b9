package oidc

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"onsale/internal/fault"
	"onsale/internal/identity"
	"onsale/internal/keys"
	"onsale/internal/keys/keystest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	client   = "onsale"
	secret   = "the client's secret"
	callback = "http://127.0.0.1:9/v1/sign-in/oidc/test/callback"
)

// A standIn is an OpenID provider: it gives a code for what a browser brings to it, and a token for a code, once.
type standIn struct {
	t    *testing.T
	http *httptest.Server
	key  *rsa.PrivateKey
	now  func() time.Time

	mu      sync.Mutex
	codes   map[string]url.Values // what the browser brought
	codeNum int
	change  func(header map[string]any, claims jwt.MapClaims) // what a test wants to be wrong
	sign    func(*jwt.Token) (string, error)
	status  int // of the token endpoint, 0: as it should be
	asked   int
}

func newStandIn(t *testing.T) *standIn {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &standIn{t: t, key: key, now: func() time.Time { return start }, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		s.asked++
		s.mu.Unlock()
		s.answer(w, map[string]any{
			"issuer": s.http.URL, "authorization_endpoint": s.http.URL + "/authorize", "token_endpoint": s.http.URL + "/token",
			"jwks_uri": s.http.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "none", "HS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, map[string]any{"keys": []map[string]string{{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "k", "n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("POST /token", s.token)
	s.http = httptest.NewServer(mux)
	t.Cleanup(s.http.Close)
	return s
}

func (s *standIn) answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.t.Error(err)
	}
}

// authorize is what the provider does when a browser comes and the person agrees: the callback's query.
func (s *standIn) authorize(start string) url.Values {
	s.t.Helper()
	u, err := url.Parse(start)
	if err != nil || !strings.HasPrefix(start, s.http.URL+"/authorize?") {
		s.t.Fatalf("the start is %s, %v", start, err)
	}
	q := u.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != client || q.Get("redirect_uri") != callback || q.Get("code_challenge_method") != "S256" ||
		q.Get("nonce") == "" || q.Get("state") == "" || !strings.Contains(q.Get("scope"), "openid") {
		s.t.Fatalf("the start asks for %v", q)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codeNum++
	code := "code-" + string(rune('a'+s.codeNum))
	s.codes[code] = q
	return url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {s.http.URL}}
}

func (s *standIn) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != 0 {
		w.WriteHeader(s.status)
		return
	}
	q, known := s.codes[r.FormValue("code")]
	delete(s.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	id, password, _ := r.BasicAuth()
	password, _ = url.QueryUnescape(password)
	if !known || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || id != client || password != secret ||
		r.FormValue("redirect_uri") != callback || r.FormValue("grant_type") != "authorization_code" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	claims := jwt.MapClaims{
		"iss": s.http.URL, "aud": client, "sub": "ann", "nonce": q.Get("nonce"), "iat": s.now().Unix(), "exp": s.now().Add(time.Hour).Unix(),
		"email": "Ann@Example.com", "email_verified": true,
	}
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = "k"
	if s.change != nil {
		s.change(token.Header, claims)
	}
	sign := s.sign
	if sign == nil {
		sign = func(t *jwt.Token) (string, error) { return t.SignedString(s.key) }
	}
	raw, err := sign(token)
	if err != nil {
		s.t.Error(err)
	}
	s.answer(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": raw})
}

var start = time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC)

type bench struct {
	*standIn
	p    *Provider
	at   time.Time
	keys *keystest.Memory
	ring *keys.Ring
}

func ringOf(t *testing.T, store keys.Store) *keys.Ring {
	t.Helper()
	m, err := keys.NewMaster([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keys.Load(t.Context(), store, m, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ring.EnsureActive(t.Context(), keys.SignIn); err != nil {
		t.Fatal(err)
	}
	return ring
}

func newBench(t *testing.T, change ...func(*Options)) *bench {
	b := &bench{standIn: newStandIn(t), at: start, keys: &keystest.Memory{}}
	b.ring = ringOf(t, b.keys)
	b.p = b.provider(t, change...)
	return b
}

func (b *bench) provider(t *testing.T, change ...func(*Options)) *Provider {
	t.Helper()
	o := Options{
		Name: "test", Issuer: b.http.URL, ClientID: client, ClientSecret: secret, RedirectURL: callback, TrustEmail: true, Keys: b.ring,
		Now: func() time.Time { return b.at }, Client: b.http.Client(),
	}
	for _, c := range change {
		c(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b *bench) begin(t *testing.T, browser string) url.Values {
	t.Helper()
	to, err := b.p.Start(t.Context(), browser, "/e/1?x=2")
	if err != nil {
		t.Fatal(err)
	}
	return b.authorize(to)
}

func refused(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if got := fault.CodeOf(err); got != code {
		t.Errorf("%s: got %q (%v), want %q", what, got, err, code)
	}
}

func TestSignInAtAProvider(t *testing.T) {
	b := newBench(t)
	browser := identity.NewBrowser()
	query := b.begin(t, browser)
	who, back, err := b.p.Callback(t.Context(), browser, query)
	want := identity.Named{Issuer: b.http.URL, Sub: "ann", Email: "ann@example.com"}
	if err != nil || who != want || back != "/e/1?x=2" {
		t.Fatalf("%+v, %q, %v", who, back, err)
	}
	_, _, err = b.p.Callback(t.Context(), browser, query)
	refused(t, "the same answer again", err, fault.TokenInvalid)
	// Another node, after a restart.
	query = b.begin(t, browser)
	b.ring = ringOf(t, b.keys)
	if who, _, err := b.provider(t).Callback(t.Context(), browser, query); err != nil || who != want {
		t.Errorf("on another node: %+v, %v", who, err)
	}
	if b.asked > 2 {
		t.Errorf("the provider was asked %d times where it is", b.asked)
	}
	// Keys change while somebody is there.
	query = b.begin(t, browser)
	if _, err := ringOf(t, b.keys).Rotate(t.Context(), keys.SignIn); err != nil {
		t.Fatal(err)
	}
	b.ring = ringOf(t, b.keys)
	if _, _, err := b.provider(t).Callback(t.Context(), browser, query); err != nil {
		t.Errorf("after a rotation: %v", err)
	}
}

func TestAddressesAreBelievedOnlyWhereTrustedAndVerified(t *testing.T) {
	for name, c := range map[string]struct {
		trust  bool
		change func(jwt.MapClaims)
		want   identity.Email
	}{
		"trusted":             {true, func(jwt.MapClaims) {}, "ann@example.com"},
		"verified as text":    {true, func(c jwt.MapClaims) { c["email_verified"] = "true" }, "ann@example.com"},
		"not trusted":         {false, func(jwt.MapClaims) {}, ""},
		"not verified":        {true, func(c jwt.MapClaims) { c["email_verified"] = false }, ""},
		"nothing of verified": {true, func(c jwt.MapClaims) { delete(c, "email_verified") }, ""},
		"no address":          {true, func(c jwt.MapClaims) { c["email"] = "ann" }, ""},
		"no text":             {true, func(c jwt.MapClaims) { c["email"] = 7 }, ""},
		"look-alike":          {true, func(c jwt.MapClaims) { c["email"] = "ａnn@example.com" }, ""},
	} {
		b := newBench(t, func(o *Options) { o.TrustEmail = c.trust })
		b.change = func(_ map[string]any, claims jwt.MapClaims) { c.change(claims) }
		browser := identity.NewBrowser()
		who, _, err := b.p.Callback(t.Context(), browser, b.begin(t, browser))
		if err != nil || who.Sub != "ann" || who.Email != c.want {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
}

func TestE4TokensThatAreNotForThisAreRefused(t *testing.T) {
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	claim := func(name string, value any) func(*standIn) {
		return func(s *standIn) {
			s.change = func(_ map[string]any, c jwt.MapClaims) {
				if c[name] = value; value == nil {
					delete(c, name)
				}
			}
		}
	}
	signed := func(method jwt.SigningMethod, key crypto.PrivateKey) func(*standIn) {
		return func(s *standIn) {
			s.sign = func(t *jwt.Token) (string, error) {
				t.Method, t.Header["alg"] = method, method.Alg()
				return t.SignedString(key)
			}
		}
	}
	for name, spoil := range map[string]func(*standIn){
		"another nonce":        claim("nonce", identity.NewBrowser()),
		"no nonce":             claim("nonce", nil),
		"another audience":     claim("aud", "another"),
		"no audience":          claim("aud", nil),
		"several, none named":  claim("aud", []string{client, "another"}),
		"another party":        claim("azp", "another"),
		"another issuer":       claim("iss", "https://elsewhere.example"),
		"expired":              claim("exp", start.Add(-time.Second).Unix()),
		"no expiry":            claim("exp", nil),
		"another's key":        signed(jwt.SigningMethodRS256, stranger),
		"another algorithm":    signed(jwt.SigningMethodPS256, nil),
		"EdDSA":                signed(jwt.SigningMethodEdDSA, edKey),
		"not signed":           signed(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType),
		"signed by the secret": signed(jwt.SigningMethodHS256, []byte(secret)),
		"no token":             func(s *standIn) { s.sign = func(*jwt.Token) (string, error) { return "", nil } },
		"a long token":         func(s *standIn) { s.sign = func(*jwt.Token) (string, error) { return strings.Repeat("x", 9000), nil } },
	} {
		b := newBench(t)
		spoil(b.standIn)
		if name == "another algorithm" {
			signed(jwt.SigningMethodPS256, b.key)(b.standIn)
		}
		browser := identity.NewBrowser()
		_, _, err := b.p.Callback(t.Context(), browser, b.begin(t, browser))
		refused(t, name, err, fault.TokenInvalid)
	}
}

func TestAnswersThatAreNotForThisBrowserAreRefused(t *testing.T) {
	b := newBench(t)
	browser := identity.NewBrowser()
	for name, c := range map[string]struct {
		browser string
		change  func(url.Values)
		late    time.Duration
		code    fault.Code
	}{
		"another browser":     {browser: identity.NewBrowser(), code: fault.TokenInvalid},
		"no browser":          {browser: "-", code: fault.BadRequest},
		"too late":            {late: AwayMax, code: fault.TokenInvalid},
		"another state":       {change: func(q url.Values) { q.Set("state", b.begin(t, identity.NewBrowser()).Get("state")) }, code: fault.TokenInvalid},
		"no state":            {change: func(q url.Values) { q.Del("state") }, code: fault.TokenInvalid},
		"two states":          {change: func(q url.Values) { q.Add("state", q.Get("state")) }, code: fault.TokenInvalid},
		"no code":             {change: func(q url.Values) { q.Del("code") }, code: fault.TokenInvalid},
		"another's code":      {change: func(q url.Values) { q.Set("code", b.begin(t, browser).Get("code")) }, code: fault.TokenInvalid},
		"a long code":         {change: func(q url.Values) { q.Set("code", strings.Repeat("x", codeBytesMax+1)) }, code: fault.TokenInvalid},
		"of another provider": {change: func(q url.Values) { q.Set("iss", "https://elsewhere.example") }, code: fault.TokenInvalid},
		"the person said no":  {change: func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, code: fault.TokenInvalid},
	} {
		b.at = start
		query := b.begin(t, browser)
		if c.change != nil {
			c.change(query)
		}
		b.at = b.at.Add(c.late)
		who := browser
		if c.browser != "" {
			who = strings.TrimSuffix(c.browser, "-")
		}
		_, _, err := b.p.Callback(t.Context(), who, query)
		refused(t, name, err, c.code)
	}
	// The state of another provider of ours, in the same browser.
	other := b.provider(t, func(o *Options) { o.Name = "other" })
	_, _, err := other.Callback(t.Context(), browser, b.begin(t, browser))
	refused(t, "another provider's state", err, fault.TokenInvalid)
	// Each byte of a state counts.
	query := b.begin(t, browser)
	state := query.Get("state")
	for i := range state {
		changed := []byte(state)
		changed[i] ^= 1
		if f, err := open(t.Context(), b.ring, browser, string(changed)); err == nil {
			t.Fatalf("byte %d changed: %+v", i, f)
		}
	}
}

func TestAProviderThatIsAwayIsAskedLater(t *testing.T) {
	b := newBench(t)
	browser := identity.NewBrowser()
	query := b.begin(t, browser)
	b.status = http.StatusInternalServerError
	_, _, err := b.p.Callback(t.Context(), browser, query)
	refused(t, "500", err, fault.Busy)
	b.status = http.StatusFound
	b.p.o.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	_, _, err = b.p.Callback(t.Context(), browser, query)
	refused(t, "a redirect", err, fault.TokenInvalid)
	b.status = 0
	if _, _, err := b.p.Callback(t.Context(), browser, query); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	gone := b.provider(t)
	b.http.Close()
	_, err = gone.Start(t.Context(), browser, "/")
	refused(t, "not there", err, fault.Busy)
	if _, err := b.p.Start(t.Context(), browser, "/"); err != nil {
		t.Errorf("whose description is known: %v", err)
	}
}

func TestReturnsLeadToUs(t *testing.T) {
	for text, want := range map[string]string{
		"/e/1?a=b#c": "/e/1?a=b#c", "": "/", "//evil.example": "/", "/\\evil.example": "/", "https://evil.example": "/", "evil": "/",
		"/a\nb": "/", "/\t/evil.example": "/", "/" + strings.Repeat("a", 600): "/", "javascript:x": "/", "/é": "/", "/%C3%A9": "/%C3%A9",
	} {
		if got := ownPath(text); got != want {
			t.Errorf("%q leads to %q, want %q", text, got, want)
		}
	}
}

func TestOptionsThatWouldNotBeSafe(t *testing.T) {
	b := newBench(t)
	for name, change := range map[string]func(*Options){
		"name":          func(o *Options) { o.Name = "A/b" },
		"issuer http":   func(o *Options) { o.Issuer = "http://accounts.example" },
		"issuer empty":  func(o *Options) { o.Issuer = "" },
		"redirect http": func(o *Options) { o.RedirectURL = "http://shop.example/cb" },
		"client":        func(o *Options) { o.ClientID = "" },
		"algorithm":     func(o *Options) { o.Algorithm = "HS256" },
		"keys":          func(o *Options) { o.Keys = nil },
	} {
		o := b.p.o
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
