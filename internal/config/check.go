package config

import (
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"onsale/internal/guard"
	"onsale/internal/identity"
	"onsale/internal/identity/jwks"
	"onsale/internal/payment/sandbox"
)

// decide fills in what follows from other settings.
func (l *loader) decide() {
	c := &l.config
	if c.Payment.Provider == "" {
		c.Payment.Provider = "none"
		if c.Demo {
			c.Payment.Provider = "sandbox"
		}
	}
	c.Throwaway = c.Throwaway || c.Demo
	if c.Demo && len(c.TrustedProxies) == 0 { // simulated buyers come from addresses of their own (F4)
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
}

// check adds what is wrong with settings seen together.
func (l *loader) check() {
	c := &l.config
	listen := l.address("listen", c.Listen)
	if c.MetricsListen != "" && !l.address("metrics_listen", c.MetricsListen) {
		l.add("metrics_listen", "%q must be on a loopback interface: what it tells is not for everybody", c.MetricsListen)
	}
	if !l.address("payment.sandbox.listen", c.Payment.Sandbox.Listen) {
		l.add("payment.sandbox.listen", "%q must be on a loopback interface", c.Payment.Sandbox.Listen)
	}
	if c.Data == "" {
		l.add("data", "is empty: name a folder")
	}
	l.checkPublicURL()
	l.checkDemo(listen)
	l.checkLedger()
	l.checkRedis()
	for i := range c.Issuers {
		l.checkIssuer(i)
	}
	l.checkProviders()
	l.checkFaults()
	l.checkRoom()
	l.checkStripe()
	l.checkMail()
}

func (l *loader) checkStripe() {
	c := l.config.Payment
	if c.Provider != "stripe" {
		for key, value := range map[string]string{"payment.stripe.secret_key": c.Stripe.SecretKey, "payment.stripe.webhook_secrets": c.Stripe.WebhookSecrets} {
			if value != "" && l.sources["payment.provider"] != "" {
				l.add(key, "means nothing with payment.provider %s: set payment.provider: stripe, or take it away", c.Provider)
			}
		}
		return
	}
	if c.Stripe.SecretKey == "" {
		l.add("payment.stripe.secret_key", "is needed with payment.provider stripe: it is in Stripe's dashboard under Developers")
	}
	if c.Stripe.WebhookSecrets == "" {
		l.add("payment.stripe.webhook_secrets", "is needed with payment.provider stripe: make an endpoint for /v1/payments/stripe/webhook in Stripe's dashboard, and take its whsec_…")
	}
}

func (l *loader) checkMail() {
	c := l.config.Mail
	if c.SMTP.Host == "" {
		return
	}
	if c.From == "" {
		l.add("mail.from", "is needed with mail.smtp.host: who are the mails from? Tickets <tickets@tickets.example>")
	}
	for key, text := range map[string]string{"mail.from": c.From, "mail.reply_to": c.ReplyTo} {
		if text == "" {
			continue
		}
		if _, err := mail.ParseAddress(text); err != nil {
			l.add(key, "%.80q must be an address such as Tickets <tickets@tickets.example>", text)
		}
	}
	if (c.SMTP.User == "") != (c.SMTP.Password == "") {
		l.add("mail.smtp.password", "goes with mail.smtp.user: give both, or neither")
	}
}

func (l *loader) checkPublicURL() {
	text := l.config.PublicURL
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+u.Host != text {
		l.add("public_url", "%.80q must be a scheme and a host alone, such as https://tickets.example", text)
	}
}

var providerName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

func (l *loader) checkProviders() {
	for i, p := range l.config.Providers {
		key := fmt.Sprintf("sign_in_providers[%d]", i)
		l.sources[key] = l.sources["sign_in_providers"]
		if !providerName.MatchString(p.Name) {
			l.add(key, "name %.40q must be 1 to 32 small letters, digits and hyphens, and begin with a letter", p.Name)
		}
		if u, err := url.Parse(p.Issuer); err != nil || u.Scheme != "https" || u.Host == "" {
			l.add(key, "issuer %.80q must begin with https://", p.Issuer)
		}
		if p.ClientID == "" {
			l.add(key, "client_id is missing: who we are there")
		}
		if !slices.Contains(identity.Algorithms, p.Algorithm) {
			l.add(key, "algorithm %.20q must be one of %q", p.Algorithm, identity.Algorithms)
		}
		if l.config.PublicURL == "" {
			l.add(key, "needs public_url: where the provider sends browsers back to")
		}
		if slices.ContainsFunc(l.config.Providers[:i], func(o Provider) bool { return o.Name == p.Name }) {
			l.add(key, "name %q is there twice", p.Name)
		}
	}
}

// address adds what is wrong with host:port, and says whether it is on a loopback interface.
func (l *loader) address(key, address string) (loopback bool) {
	host, port, err := net.SplitHostPort(address)
	number, portErr := strconv.Atoi(port)
	if err != nil || portErr != nil || number < 0 || number > 65535 {
		l.add(key, "%.80q must be host:port, such as 127.0.0.1:8080", address)
		return true // said already
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkDemo keeps what gives everything to everybody away from the world (E1).
func (l *loader) checkDemo(loopback bool) {
	c := &l.config
	switch {
	case c.DemoPublic && !c.Demo:
		l.add("demo_public", "means nothing without demo: take it away, or set demo")
	case c.Demo && !loopback && !c.DemoPublic:
		l.add("demo", "listen is %q, and a demo gives tickets to everybody: listen on 127.0.0.1, or set demo_public if you mean it", c.Listen)
	case c.Throwaway && !c.Demo && !loopback:
		l.add("throwaway_issuer", "listen is %q, and a throw-away token makes anybody anybody: listen on 127.0.0.1, or use issuers", c.Listen)
	}
	if c.Payment.Provider == "sandbox" && !c.Demo {
		l.add("payment.provider", "sandbox moves no real money, so it exists only with demo: set demo, or payment.provider: none to sell free events")
	}
}

func (l *loader) checkLedger() {
	c := &l.config
	if c.Ledger.Kind == "sqlite" {
		for key, value := range map[string]string{"ledger.url": c.Ledger.URL, "ledger.direct_url": c.Ledger.DirectURL} {
			if value != "" {
				l.add(key, "means nothing with ledger.kind sqlite: set ledger.kind: postgres, or take it away")
			}
		}
	} else {
		if c.Ledger.URL == "" {
			l.add("ledger.url", "is needed with ledger.kind postgres: postgres://user:password@host:port/database")
		}
		if c.MasterKey == "" && c.MasterKeyFile == "" && !c.Demo {
			l.add("master_key_file", "is needed with ledger.kind postgres (or ONSALE_MASTER_KEY): all nodes must open the same keys")
		}
	}
	if c.MasterKey != "" && c.MasterKeyFile != "" {
		l.add("master_key_file", "and master_key are both set: keep one")
	}
}

func (l *loader) checkIssuer(i int) {
	c := &l.config.Issuers[i]
	key := fmt.Sprintf("issuers[%d]", i)
	l.sources[key] = l.sources["issuers"]
	sources := 0
	for _, s := range []string{c.JWKSURL, c.JWKSFile, c.PEMFile} {
		if s != "" {
			sources++
		}
	}
	if c.Name == "" {
		l.add(key, "name is missing: what its tokens say as iss")
	}
	if c.Audience == "" {
		l.add(key, "audience is missing: what its tokens for us say as aud; without one a token for another service would do")
	}
	if !slices.Contains(identity.Algorithms, c.Algorithm) {
		l.add(key, "algorithm %.20q must be one of %q", c.Algorithm, identity.Algorithms)
	}
	if sources != 1 {
		l.add(key, "has %d of jwks_url, jwks_file and pem_file: give exactly one", sources)
	}
	if c.JWKSURL != "" {
		if err := jwks.CheckURL(c.JWKSURL); err != nil {
			l.add(key, "jwks_url %s", err)
		}
	}
	if bad := identity.CheckTyp(c.Typ); bad != "" {
		l.add(key, "typ %s", bad)
	}
	if c.Name == identity.ThrowawayIssuer {
		l.add(key, "name %q is the throw-away issuer's own", c.Name)
	}
	for k := range i {
		if l.config.Issuers[k].Name == c.Name && c.Name != "" {
			l.add(key, "name %q is there twice", c.Name)
		}
	}
}

func (l *loader) checkFaults() {
	if err := l.config.FaultPlan().Validate(); err != nil {
		l.add("payment.sandbox.faults", "%s", err)
	} else if len(l.config.Payment.Sandbox.Faults) > 0 && l.config.Payment.Provider != "sandbox" {
		l.add("payment.sandbox.faults", "means nothing with payment.provider %s: take it away", l.config.Payment.Provider)
	}
}

// CheckServe says why a server must not be started with this configuration, though it is good for other commands (E1).
func (c Config) CheckServe() error {
	if len(c.Issuers) == 0 && len(c.Providers) == 0 && !c.Throwaway && c.Mail.SMTP.Host == "" {
		return &Error{Problems: []Problem{{Key: "mail.smtp.host", Text: "nobody could sign in: name a mail server, by which people get their codes, or issuers of their tokens, or use --demo"}}}
	}
	return nil
}

// Rates are how often somebody may ask.
func (c Config) Rates() guard.Settings {
	return guard.Settings{
		Customer: c.Limits.RateCustomer, Sale: c.Limits.RateSale, Staff: c.Limits.RateStaff, Queue: c.Limits.RateQueue, SignIn: c.Limits.RateSignIn, Check: c.Limits.RateCheck, Event: c.Limits.RateEvent, Address: c.Limits.RateAddress, Site: c.Limits.RateSite,
		Burst: c.Limits.RateBurst, Keys: c.Limits.RateKeysMax,
	}
}

// FaultPlan is the sandbox's.
func (c Config) FaultPlan() sandbox.FaultPlan {
	p := sandbox.FaultPlan{Seed: c.Payment.Sandbox.Seed, Rates: map[sandbox.Fault]float64{}}
	for _, f := range c.Payment.Sandbox.Faults {
		p.Rates[sandbox.Fault(f.Fault)] = f.Rate
	}
	return p
}

// IdentityIssuers are the issuers with their keys; files are read, URLs not yet.
func (c Config) IdentityIssuers(now func() time.Time) ([]identity.Issuer, error) {
	all := make([]identity.Issuer, 0, len(c.Issuers))
	for _, i := range c.Issuers {
		keys, err := i.keys(now)
		if err != nil {
			return nil, fmt.Errorf("issuer %q: %w", i.Name, err)
		}
		all = append(all, identity.Issuer{Name: i.Name, Audience: i.Audience, Typ: i.Typ, Algorithm: i.Algorithm, Leeway: i.Leeway, Keys: keys, TrustEmail: i.TrustEmail})
	}
	return all, nil
}

// A SignInProvider is a Provider with its secret.
type SignInProvider struct {
	Name, Issuer, ClientID, ClientSecret, Algorithm string
	TrustEmail                                      bool
}

// SignInProviders are the providers with their secrets, which are read from files.
func (c Config) SignInProviders() ([]SignInProvider, error) {
	var all []SignInProvider
	for _, p := range c.Providers {
		made := SignInProvider{Name: p.Name, Issuer: p.Issuer, ClientID: p.ClientID, Algorithm: p.Algorithm, TrustEmail: p.TrustEmail}
		if p.ClientSecretFile != "" {
			secret, err := os.ReadFile(p.ClientSecretFile)
			if err != nil {
				return nil, fmt.Errorf("provider %q: its client_secret_file: %w", p.Name, err)
			}
			made.ClientSecret = strings.TrimSpace(string(secret))
		}
		all = append(all, made)
	}
	return all, nil
}

func (i Issuer) keys(now func() time.Time) (identity.Keys, error) {
	switch {
	case i.JWKSURL != "":
		return jwks.FromURL(i.JWKSURL, now)
	case i.JWKSFile != "":
		data, err := os.ReadFile(i.JWKSFile)
		if err != nil {
			return nil, err
		}
		return jwks.Parse(data)
	}
	data, err := os.ReadFile(i.PEMFile)
	if err != nil {
		return nil, err
	}
	return jwks.ParsePEM(data)
}
