package guard

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"onsale/internal/fault"
)

// Bounds of the second step.
const (
	PassLife        = 15 * time.Minute // for which who has shown to be a person need not do so again
	PersonRest      = 30 * time.Second // for which a provider that was away is not asked
	PersonBytesMax  = 4 << 10          // of what a provider's widget gives
	passVersion     = 1
	passBytes       = 1 + 8 + macBytes
	UsedKeysDefault = 100_000 // pictures that are remembered as used or tried
)

// ErrAway says that a provider of person checks could not be asked.
var ErrAway = errors.New("guard: the provider of the person check does not answer")

// A PersonCheck tells people from machines: guard/picture with a picture of our own and its audio form, guard/person by
// asking Turnstile or hCaptcha.
type PersonCheck interface {
	// Name is the provider's, as pages know it: "picture", "turnstile", "hcaptcha".
	Name() string
	// Ask is what a page needs to show a task for this bind.
	Ask(now time.Time, b Bind) PersonTask
	// Check is nil for a person. Faults: person_required (a wrong, expired or used answer). ErrAway in the chain where the
	// provider cannot be asked. An answer is good once.
	Check(ctx context.Context, now time.Time, b Bind, from netip.Addr, a PersonAnswer) error
}

// A PersonTask is what a page shows. Of a provider's widget: SiteKey and Action. Of the picture: Token, which names it, and
// how many characters it and its audio form have.
type PersonTask struct {
	Provider    string `json:"provider"`
	SiteKey     string `json:"site_key,omitempty"`
	Action      string `json:"action,omitempty"`
	Token       string `json:"token,omitempty"`
	Length      int    `json:"length,omitempty"`
	SoundLength int    `json:"sound_length,omitempty"`
}

// A PersonAnswer is what a page sends: the picture's token and what was read or heard, or the token of a provider's widget.
type PersonAnswer struct {
	Provider string `json:"provider"`
	Token    string `json:"token"`
	Answer   string `json:"answer,omitempty"`
}

// Persons is a provider with the built-in check behind it. The rule: while the provider is away (an answer could not be
// had within its time), for PersonRest people are shown the picture; an answer to either is good at any time. So a provider
// that is away keeps nobody out, and lets nobody in unasked.
type Persons struct {
	First    PersonCheck // nil: the built-in one alone
	Fallback PersonCheck // the built-in one
	// Failed is told of each time that First was away; may be nil.
	Failed func(error)

	restUntil atomic.Int64 // Unix milliseconds
}

// Ask is what a page shows now.
func (p *Persons) Ask(now time.Time, b Bind) PersonTask {
	if p.First != nil && now.UnixMilli() >= p.restUntil.Load() {
		return p.First.Ask(now, b)
	}
	return p.Fallback.Ask(now, b)
}

// Check is nil for a person. Fault: person_required.
func (p *Persons) Check(ctx context.Context, now time.Time, b Bind, from netip.Addr, a PersonAnswer) error {
	if len(a.Token) > PersonBytesMax || len(a.Answer) > PersonBytesMax {
		return fault.New(fault.PersonRequired, "the answer is too long")
	}
	switch {
	case p.First != nil && a.Provider == p.First.Name():
		err := p.First.Check(ctx, now, b, from, a)
		if !errors.Is(err, ErrAway) {
			return err
		}
		if ctx.Err() == nil { // else the client went away
			p.restUntil.Store(now.Add(PersonRest).UnixMilli())
			if p.Failed != nil {
				p.Failed(err)
			}
		}
		return &fault.Error{Code: fault.PersonRequired, Detail: "the check could not be made; here is another one", Cause: err}
	case a.Provider == p.Fallback.Name():
		return p.Fallback.Check(ctx, now, b, from, a)
	}
	return fault.New(fault.PersonRequired, "")
}

// Passes say for a while that somebody has shown to be a person, so that a join that fails afterwards asks no second time.
type Passes struct{ secrets Secrets }

// NewPasses signs with the gate's secrets.
func NewPasses(s Secrets) *Passes { return &Passes{s} }

// Issue is a pass for this event and subject.
func (p *Passes) Issue(now time.Time, b Bind) string {
	out := append([]byte{passVersion}, seconds(now.Add(PassLife))...)
	out = append(out, mac(p.secrets.Of("pass")[0], out, b.bytes())[:macBytes]...)
	return base64.RawURLEncoding.EncodeToString(out)
}

// Good says whether a pass is of this event and subject, and has not run out.
func (p *Passes) Good(now time.Time, b Bind, pass string) bool {
	if len(pass) != base64.RawURLEncoding.EncodedLen(passBytes) {
		return false
	}
	in, err := base64.RawURLEncoding.Strict().DecodeString(pass)
	if err != nil || in[0] != passVersion {
		return false
	}
	said, sum := in[:passBytes-macBytes], in[passBytes-macBytes:]
	left := int64(binary.BigEndian.Uint64(said[1:])) - now.Unix()
	if left <= 0 || left > int64((PassLife+proofAhead)/time.Second) {
		return false
	}
	for _, secret := range p.secrets.Of("pass") {
		if hmac.Equal(sum, mac(secret, said, b.bytes())[:macBytes]) {
			return true
		}
	}
	return false
}

// Tries remember how often something that is good a few times was tried, for as long as it lives, on this node: bounded, so
// that after UsedKeysDefault others the oldest is forgotten.
type Tries struct {
	start time.Time
	limit limit
}

// NewTries lets each key through max times in a life.
func NewTries(now time.Time, max int, life time.Duration, keys int) *Tries {
	return &Tries{start: now, limit: limit{rate: rate{each: int64(life), quota: int64(max)}, cells: newCells(keys)}}
}

// Take counts a try, and says whether it was one of those that are allowed.
func (t *Tries) Take(now time.Time, k [16]byte) bool {
	ok, _ := t.limit.take(k, int64(now.Sub(t.start)), 0, nil)
	return ok
}
