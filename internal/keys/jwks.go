package keys

import (
	"encoding/base64"
	"encoding/json"
)

// jwk is a public key as RFC 8037 writes it. Purpose is our own member: a key is never good for anything else, and
// tickets signed by a ticket_test key are no right of entry.
type jwk struct {
	KeyType   string  `json:"kty"`
	Curve     string  `json:"crv"`
	KID       string  `json:"kid"`
	X         string  `json:"x"`
	Use       string  `json:"use"`
	Algorithm string  `json:"alg"`
	Purpose   Purpose `json:"onsale_purpose"`
}

// JWKS is the public halves of those keys that have one and are not retired, as the JSON of a JWK set, in the order
// given.
func JWKS(all []Key) ([]byte, error) {
	set := struct {
		Keys []jwk `json:"keys"`
	}{[]jwk{}}
	for _, k := range all {
		if k.Algorithm != Ed25519 || k.State == Retired {
			continue
		}
		set.Keys = append(set.Keys, jwk{KeyType: "OKP", Curve: "Ed25519", KID: k.KID,
			X: base64.RawURLEncoding.EncodeToString(k.PublicKey()), Use: "sig", Algorithm: "EdDSA", Purpose: k.Purpose})
	}
	return json.Marshal(set)
}
