package identity_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"onsale/internal/id"
	"onsale/internal/identity"
)

// verifier of an issuer whose tokens a test makes.
func (h *house) verifier(trust bool) (*identity.Verifier, func(sub string, claims jwt.MapClaims) string) {
	h.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	v, err := identity.New(identity.Options{
		Issuers: []identity.Issuer{{Name: "https://id.example", Audience: "onsale", Algorithm: "EdDSA", Keys: identity.OneKey{Public: public}, TrustEmail: trust}},
		Store:   h.store, NewID: h.ids.Next, Now: h.clock.now,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return v, func(sub string, more jwt.MapClaims) string {
		claims := jwt.MapClaims{"iss": "https://id.example", "aud": "onsale", "sub": sub, "exp": h.clock.now().Add(time.Hour).Unix()}
		for name, value := range more {
			claims[name] = value
		}
		text, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims).SignedString(private)
		if err != nil {
			h.t.Fatal(err)
		}
		return text
	}
}

func TestE2TokensMapByVerifiedAddress(t *testing.T) {
	h := newHouse(t)
	s := h.node()
	ann := h.signIn(s, "ann@example.com").SignIn.Customer
	for name, c := range map[string]struct {
		trust  bool
		claims jwt.MapClaims
		isAnn  bool
	}{
		"verified":     {true, jwt.MapClaims{"email": "Ann@Example.com", "email_verified": true}, true},
		"as text":      {true, jwt.MapClaims{"email": "ann@example.com", "email_verified": "true"}, true},
		"not verified": {true, jwt.MapClaims{"email": "ann@example.com", "email_verified": false}, false},
		"not said":     {true, jwt.MapClaims{"email": "ann@example.com"}, false},
		"not trusted":  {false, jwt.MapClaims{"email": "ann@example.com", "email_verified": true}, false},
		"look-alike":   {true, jwt.MapClaims{"email": "ａnn@example.com", "email_verified": true}, false},
		"no address":   {true, jwt.MapClaims{"email": []string{"ann@example.com"}, "email_verified": true}, false},
	} {
		v, mint := h.verifier(c.trust)
		got, err := v.Authenticate(t.Context(), mint("of "+name, c.claims))
		if err != nil || (got.ID == ann) != c.isAnn {
			t.Errorf("%s: %d, %v; ann is %d", name, got.ID, err, ann)
		}
	}
	// The token first, then the code.
	v, mint := h.verifier(true)
	bob, err := v.Authenticate(t.Context(), mint("bob", jwt.MapClaims{"email": "bob@example.com", "email_verified": true}))
	if err != nil {
		t.Fatal(err)
	}
	if got := h.signIn(s, "BOB@example.com").SignIn.Customer; got != bob.ID {
		t.Errorf("bob is %d by token and %d by code", bob.ID, got)
	}
	if _, err := identity.New(identity.Options{Issuers: []identity.Issuer{{Name: identity.EmailIssuer, Audience: "x", Algorithm: "EdDSA", Keys: identity.OneKey{}}}, Store: h.store, NewID: h.ids.Next}); err == nil {
		t.Error("an issuer may call itself as our own addresses")
	}
}

func TestE2OneCustomerByTokenAndCodeAtOnce(t *testing.T) {
	h := newHouse(t)
	s := h.node()
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		browser := identity.NewBrowser()
		mail := h.code(s, email, browser)
		found := make(chan id.ID, 5)
		var all sync.WaitGroup
		all.Go(func() {
			opened, err := s.FinishSignIn(context.Background(), identity.Finish{Email: email, Browser: browser, Code: mail.Code})
			if err != nil {
				t.Error(err)
			}
			found <- opened.SignIn.Customer
		})
		for range 4 {
			v, mint := h.verifier(true)
			token := mint("of "+email, jwt.MapClaims{"email": email, "email_verified": true})
			all.Go(func() {
				got, err := v.Authenticate(context.Background(), token)
				if err != nil {
					t.Error(err)
				}
				found <- got.ID
			})
		}
		all.Wait()
		close(found)
		one := <-found
		for other := range found {
			if other != one || other == 0 {
				t.Errorf("%s is %d and %d", email, one, other)
			}
		}
	}
}

func TestF2AnErasedCustomersTokenIsSoonAnother(t *testing.T) {
	h := newHouse(t)
	s := h.still()
	v, mint := h.verifier(false)
	before, err := v.Authenticate(t.Context(), mint("ann", nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Erase(t.Context(), identity.Actor{}, before.ID); err != nil {
		t.Fatal(err)
	}
	h.clock.forward(10 * time.Minute)
	after, err := v.Authenticate(t.Context(), mint("ann", nil))
	if err != nil || after.ID == before.ID {
		t.Errorf("%d, %v; was %d", after.ID, err, before.ID)
	}
}
