package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// The headers of a message.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32
)

// newSecret is a secret as people see it.
func newSecret() string {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // it never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(b)
}

// sign is one signature of a message under a secret.
func sign(secret, message string, at time.Time, body string) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(message + "." + strconv.FormatInt(at.Unix(), 10) + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}

// Headers are those of a message, signed under each secret: after a rotation there are two for a while.
func Headers(message string, at time.Time, body string, secrets ...string) (map[string]string, error) {
	var signatures []string
	for _, secret := range secrets {
		s, err := sign(secret, message, at, body)
		if err != nil {
			return nil, err
		}
		signatures = append(signatures, s)
	}
	return map[string]string{
		"content-type": "application/json", HeaderID: message, HeaderTimestamp: strconv.FormatInt(at.Unix(), 10), HeaderSignature: strings.Join(signatures, " "),
	}, nil
}
