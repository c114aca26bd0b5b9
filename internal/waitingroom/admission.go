package waitingroom

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/keys"
	"onsale/internal/ledger"
)

// AdmissionTyp is the kind of an admission token, in its header: it is never taken for another token, nor another for it (E4).
const AdmissionTyp = "onsale-admission+jwt"

// admissionClaims are an admission token's. Audience is the event, subject the customer.
type admissionClaims struct {
	jwt.RegisteredClaims
	Session string `json:"sid"`
}

// An admitter signs and checks admission tokens.
type admitter struct {
	keys   Keys
	issuer string
	parser *jwt.Parser
}

func newAdmitter(keys Keys, issuer string, leeway time.Duration, now func() time.Time) *admitter {
	return &admitter{keys: keys, issuer: issuer, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithIssuer(issuer), jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(now), jwt.WithStrictDecoding(),
	)}
}

// sign makes the token of a session, good until the session ends as it is now.
func (a *admitter) sign(s *ledger.Session, now time.Time) (string, error) {
	key, err := a.keys.Active(keys.Admission)
	if err != nil {
		return "", err
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, admissionClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: a.issuer, Subject: s.Customer.Text(id.Customer), Audience: jwt.ClaimStrings{s.Event.Text(id.Event)},
			ExpiresAt: jwt.NewNumericDate(s.Expires.Std()), IssuedAt: jwt.NewNumericDate(now),
		},
		Session: s.ID.Text(id.Session),
	})
	token.Header["typ"], token.Header["kid"] = AdmissionTyp, key.KID
	return token.SignedString(key.Private())
}

// An admission is what a token says.
type admission struct {
	event, customer, session id.ID
}

var errNotAdmitted = errors.New("not an admission token of ours")

// read checks a token. Faults: not_admitted, admission_expired.
func (a *admitter) read(ctx context.Context, text string) (admission, error) {
	if text == "" {
		return admission{}, &fault.Error{Code: fault.NotAdmitted}
	}
	if len(text) > TokenBytesMax || strings.ContainsAny(text, "\r\n") { // which base64 passes over: a token has one spelling
		return admission{}, fault.Wrap(fault.NotAdmitted, errNotAdmitted)
	}
	var claims admissionClaims
	_, err := a.parser.ParseWithClaims(text, &claims, func(t *jwt.Token) (any, error) { return a.key(ctx, t) })
	switch {
	case err == nil:
	case errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenInvalidIssuer) && !errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return admission{}, fault.Wrap(fault.AdmissionExpired, err)
	default:
		return admission{}, fault.Wrap(fault.NotAdmitted, err)
	}
	if len(claims.Audience) != 1 {
		return admission{}, fault.Wrap(fault.NotAdmitted, errNotAdmitted)
	}
	event, errEvent := id.Parse(id.Event, claims.Audience[0])
	customer, errCustomer := id.Parse(id.Customer, claims.Subject)
	session, errSession := id.Parse(id.Session, claims.Session)
	if err := errors.Join(errEvent, errCustomer, errSession); err != nil {
		return admission{}, fault.Wrap(fault.NotAdmitted, err)
	}
	return admission{event, customer, session}, nil
}

// key finds the key that a token's header names, and refuses headers that ask for anything that we do not do.
func (a *admitter) key(ctx context.Context, t *jwt.Token) (ed25519.PublicKey, error) {
	typ, _ := t.Header["typ"].(string)
	kid, _ := t.Header["kid"].(string)
	if !strings.EqualFold(typ, AdmissionTyp) || len(kid) != keys.KIDLength {
		return nil, errNotAdmitted
	}
	for name := range t.Header {
		if !slices.Contains([]string{"alg", "typ", "kid"}, name) {
			return nil, errNotAdmitted // crit, jwk, jku, x5u …: ours have none
		}
	}
	key, err := a.keys.Find(ctx, keys.Admission, kid)
	if err != nil {
		return nil, err
	}
	return key.PublicKey(), nil
}
