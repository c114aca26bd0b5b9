// Package identity says who people are and what they may do: customers, their sign-ins, organizers' roles, the people
// named on tickets.
//
// The one idea: everybody is a customer, a 63-bit id, and whatever they are known by only points at it: a verified e-mail
// address, or (issuer, sub) of a token that we believe. Who proves an address by a code (Service.BeginSignIn), by a token
// of an issuer whose addresses we trust, or through OIDC (identity/oidc) is the same customer. What is believed was named
// beforehand (E4): of a token its issuer, and for that issuer the audience, the kind (typ), one algorithm and where its
// keys are. So a token made for another purpose, signed by the very same key, is never an identity. Nothing but the table
// of identities stores sub (A7); names, addresses and documents never leave the control database (E10).
//
// Start reading at store.go (the ports and their words), then Service (people.go) and Verifier.Authenticate (here). Keys
// behind a URL are fetched by identity/jwks; Throwaway (throwaway.go) is an issuer of our own for demos, tests, benches.
package identity

import (
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"onsale/internal/cache"
	"onsale/internal/fault"
	"onsale/internal/id"
)

// Limits of what is looked at.
const (
	TokenBytesMax   = 8 << 10
	SubBytesMax     = 255
	LeewayMax       = 5 * time.Minute
	LifetimeMax     = 366 * 24 * time.Hour // of a token, from iat to exp
	verifiedForMax  = time.Minute          // how long a checked signature is believed without checking again
	knownForMax     = 10 * time.Minute     // how long it is believed who (issuer, sub) is: an erased customer is gone after
	retryAfter      = 5 * time.Second      // of a control database that is away
	customersCached = 200_000
	tokensCached    = 100_000
)

// Keys are the public keys of an issuer.
type Keys interface {
	// Key is the key with this kid; "" where the token names none. The error is ErrNoKey where there is none, and another
	// where the keys could not be had.
	Key(ctx context.Context, kid string) (crypto.PublicKey, error)
}

// ErrNoKey is answered by Keys that have no such key.
var ErrNoKey = errors.New("identity: the issuer has no such key")

// An Issuer is somebody whose word on who a customer is we take.
type Issuer struct {
	Name      string        // iss, exactly
	Audience  string        // must be in aud
	Typ       string        // of the header, letters in either case; defaults to "JWT"
	Algorithm string        // EdDSA, ES256 or RS256: the only one
	Leeway    time.Duration // between its clock and ours
	Keys      Keys
	// TrustEmail says that the issuer has verified the addresses that it calls so (email, email_verified): its tokens then
	// speak for the customer of that address. Not for an issuer where people choose their own claims.
	TrustEmail bool
}

// A Customer is who a token speaks for.
type Customer struct {
	ID      id.ID
	Expires time.Time // of the token
}

// Options of a Verifier.
type Options struct {
	Issuers []Issuer
	Store   Store
	NewID   func(shard int) (id.ID, error)
	Now     func() time.Time // defaults to time.Now
}

// A Verifier believes tokens. Its methods may be called from many goroutines.
type Verifier struct {
	o         Options
	issuers   map[string]issuer
	customers *cache.Cache[Named, id.ID]
	verified  *cache.Cache[[sha256.Size]byte, Customer]
}

type issuer struct {
	Issuer
	parser *jwt.Parser
}

// New makes a verifier. What is wrong with the issuers is an error that says so.
func New(o Options) (*Verifier, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	v := &Verifier{
		o: o, issuers: make(map[string]issuer, len(o.Issuers)),
		customers: cache.New[Named, id.ID](cache.Options{
			CountMax: customersCached, FreshFor: knownForMax, Now: o.Now, RetryAfter: retryAfter,
			UseOld: func(error) bool { return true }, // the control database is away: whom we know goes on (DESIGN 9)
		}),
		verified: cache.New[[sha256.Size]byte, Customer](cache.Options{CountMax: tokensCached, FreshFor: verifiedForMax, Now: o.Now}),
	}
	for _, i := range o.Issuers {
		if i.Typ == "" {
			i.Typ = "JWT"
		}
		if err := i.check(); err != nil {
			return nil, fmt.Errorf("identity: issuer %q: %w", i.Name, err)
		}
		if _, twice := v.issuers[i.Name]; twice {
			return nil, fmt.Errorf("identity: issuer %q is there twice", i.Name)
		}
		v.issuers[i.Name] = issuer{Issuer: i, parser: jwt.NewParser(
			jwt.WithValidMethods([]string{i.Algorithm}), jwt.WithIssuer(i.Name), jwt.WithAudience(i.Audience),
			jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(i.Leeway), jwt.WithTimeFunc(o.Now), jwt.WithStrictDecoding(),
		)}
	}
	return v, nil
}

// Algorithms are those that an issuer may be pinned to.
var Algorithms = []string{"EdDSA", "ES256", "RS256"}

// reservedTyps are our own tokens that are no identities, whatever an operator configures (E4).
var reservedTyps = []string{"admission+jwt", "queue+jwt", "ticket+jwt"}

// CheckTyp says what is wrong with a typ for identities, "" where nothing is.
func CheckTyp(typ string) string {
	for _, reserved := range reservedTyps {
		if plainTyp(typ) == reserved {
			return fmt.Sprintf("%q names our own tokens that are no identities: have the issuer use another", typ)
		}
	}
	return ""
}

// plainTyp is a typ as RFC 7515 compares it.
func plainTyp(typ string) string { return strings.TrimPrefix(strings.ToLower(typ), "application/") }

func (i Issuer) check() error {
	known := false
	for _, a := range Algorithms {
		known = known || a == i.Algorithm
	}
	switch {
	case i.Name == "":
		return errors.New("a name (iss) is needed")
	case i.Name == EmailIssuer:
		return fmt.Errorf("the name (iss) %q is our own, for verified addresses", EmailIssuer)
	case i.Audience == "":
		return errors.New("an audience (aud) is needed: without one a token for another service would do")
	case !known:
		return fmt.Errorf("algorithm %q must be one of %s", i.Algorithm, strings.Join(Algorithms, ", "))
	case i.Keys == nil:
		return errors.New("keys are needed")
	case i.Leeway < 0 || i.Leeway > LeewayMax:
		return fmt.Errorf("a leeway of %s is not between 0 and %s", i.Leeway, LeewayMax)
	}
	if bad := CheckTyp(i.Typ); bad != "" {
		return errors.New(bad)
	}
	return nil
}

// Authenticate is the customer for whom a token speaks; a new one is made at first sight, exactly once.
// Faults: sign_in_required (no token); token_invalid.
func (v *Verifier) Authenticate(ctx context.Context, token string) (Customer, error) {
	if token == "" {
		return Customer{}, fault.New(fault.SignInRequired, "")
	}
	if len(token) > TokenBytesMax {
		return Customer{}, fault.New(fault.TokenInvalid, "the token is longer than %d bytes", TokenBytesMax)
	}
	digest := sha256.Sum256([]byte(token))
	if c, ok := v.verified.Get(digest); ok && v.o.Now().Before(c.Expires) {
		return c, nil
	}
	who, expires, err := v.verify(ctx, token)
	if err != nil {
		return Customer{}, err
	}
	number, err := v.customers.Load(ctx, who, func(ctx context.Context) (id.ID, error) { return v.customer(ctx, who) })
	if err != nil {
		return Customer{}, err
	}
	c := Customer{ID: number, Expires: expires}
	v.verified.Put(digest, c)
	return c, nil
}

func (v *Verifier) customer(ctx context.Context, who Named) (id.ID, error) {
	number, err := v.o.Store.Customer(ctx, who)
	if !errors.Is(err, ErrUnknown) {
		return number, err
	}
	candidate, err := v.o.NewID(0)
	if err != nil {
		return 0, err
	}
	return v.o.Store.PutCustomer(ctx, who, candidate)
}

type claims struct {
	jwt.RegisteredClaims
	Email         any `json:"email"`          // text, where it is what it should be: another kind is no reason to refuse
	EmailVerified any `json:"email_verified"` // true; some write "true"
}

// email is the verified address in a token of an issuer that is trusted with it, "" for none.
func (c *claims) email(i issuer) Email {
	if !i.TrustEmail {
		return ""
	}
	return VerifiedEmail(c.Email, c.EmailVerified)
}

// VerifiedEmail is the address of the claims email and email_verified of a token that is believed, "" where it is not
// verified, or none. Full-width forms are not taken for what they look like: what the issuer has verified is what it wrote.
func VerifiedEmail(email, verified any) Email {
	text, ok := email.(string)
	if !ok || verified != true && verified != "true" {
		return ""
	}
	parsed, err := parseEmail(text)
	if err != nil {
		return ""
	}
	return parsed
}

// verify believes a token, or says why not. It reads the issuer first, unbelieved, to know by which rules to read the rest.
func (v *Verifier) verify(ctx context.Context, token string) (Named, time.Time, error) {
	var unbelieved claims
	if _, _, err := jwt.NewParser().ParseUnverified(token, &unbelieved); err != nil {
		return Named{}, time.Time{}, invalid("it is not a JWT", err)
	}
	i, ok := v.issuers[unbelieved.Issuer]
	if !ok {
		return Named{}, time.Time{}, invalid("its issuer is not one of ours", nil)
	}
	var c claims
	var keysAway error
	_, err := i.parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		if err := i.checkHeader(t.Header); err != nil {
			return nil, err
		}
		kid, _ := t.Header["kid"].(string)
		key, err := i.Keys.Key(ctx, kid)
		if err != nil && !errors.Is(err, ErrNoKey) {
			keysAway = err
		}
		return key, err
	})
	switch {
	case keysAway != nil:
		return Named{}, time.Time{}, &fault.Error{Code: fault.Busy, Detail: "the issuer's keys cannot be had at the moment", RetryAfter: 5 * time.Second, Cause: keysAway}
	case errors.Is(err, jwt.ErrTokenExpired):
		return Named{}, time.Time{}, invalid("it has expired", err)
	case err != nil:
		return Named{}, time.Time{}, invalid("it does not hold", err)
	case c.IssuedAt != nil && c.ExpiresAt.Sub(c.IssuedAt.Time) > LifetimeMax:
		return Named{}, time.Time{}, invalid(fmt.Sprintf("it lasts longer than %d days", int(LifetimeMax.Hours()/24)), nil)
	}
	if bad := checkSub(c.Subject); bad != "" {
		return Named{}, time.Time{}, invalid("its sub "+bad, nil)
	}
	return Named{Issuer: i.Name, Sub: c.Subject, Email: c.email(i)}, c.ExpiresAt.Time, nil
}

func (i issuer) checkHeader(header map[string]any) error {
	typ, _ := header["typ"].(string)
	if plainTyp(typ) != plainTyp(i.Typ) {
		return fmt.Errorf("typ %.40q is not %q", typ, i.Typ)
	}
	if _, critical := header["crit"]; critical {
		return errors.New("crit is not understood") // RFC 7515, 4.1.11
	}
	return nil
}

func checkSub(sub string) string {
	switch {
	case sub == "":
		return "is missing"
	case len(sub) > SubBytesMax:
		return fmt.Sprintf("is longer than %d bytes", SubBytesMax)
	case !utf8.ValidString(sub), strings.ContainsFunc(sub, unicode.IsControl):
		return "is not plain text"
	}
	return ""
}

func invalid(why string, cause error) error {
	return &fault.Error{Code: fault.TokenInvalid, Detail: why, Cause: cause}
}
