package guard

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"time"

	"onsale/internal/fault"
)

// Bounds of proofs of work.
const (
	ProofLife       = 10 * time.Minute
	ProofBytesMax   = 2 << 10 // of a payload
	DifficultyBase  = 50_000  // a fraction of a second of a phone
	DifficultyMax   = 2_000_000
	proofAhead      = time.Minute // how far a node's clock may be behind another's
	proofSaltBytes  = 12
	proofAlgorithm  = "SHA-256"
	proofHashesMax  = 20_000_000 // a second: no page in a browser makes more
	proofParameters = 6
)

// A Challenge is a proof of work that is asked for, in the ALTCHA format (its first version, which widgets of all versions
// solve): find the number, at most MaxNumber, for which SHA-256 of the salt followed by the number in digits is Challenge.
//
// For whom and until when it holds stands in the salt, behind a question mark. The signature covers Challenge, and so the
// salt. The salt ends with "&", else its last digits could be moved into the number.
type Challenge struct {
	Algorithm string `json:"algorithm"`
	Challenge string `json:"challenge"`
	MaxNumber int    `json:"maxnumber"`
	Salt      string `json:"salt"`
	Signature string `json:"signature"`
}

// A solution is what a widget sends, as JSON in base64. What else stands in it means nothing here.
type solution struct {
	Algorithm string      `json:"algorithm"`
	Challenge string      `json:"challenge"`
	Number    json.Number `json:"number"`
	Salt      string      `json:"salt"`
	Signature string      `json:"signature"`
}

// A Solved is what a good proof says.
type Solved struct {
	Max    int           // how hard it was
	Number int           // what was found
	Took   time.Duration // from the challenge to the answer, by the servers' clocks; below 0 where these do not agree
}

// TooFast says that no page in a browser finds the number in that time.
func (s Solved) TooFast() bool {
	return s.Took >= 0 && float64(s.Number) > s.Took.Seconds()*proofHashesMax
}

// A Prover asks for proofs of work and checks them. Nothing is stored (C14): a proof is bound to one event and one
// customer or device for ten minutes, and who shows it twice gets the same number in the line twice.
type Prover struct{ secrets Secrets }

// NewProver signs with the gate's secrets.
func NewProver(s Secrets) *Prover { return &Prover{s} }

// proofKey is the key as ALTCHA's libraries take it: text.
func proofKey(derived []byte) []byte { return []byte(hex.EncodeToString(derived)) }

func boundTo(derived []byte, b Bind) string {
	return hex.EncodeToString(mac(derived, []byte("bound to"), b.bytes())[:8])
}

func proofSum(salt string, number int) string {
	sum := sha256.Sum256(strconv.AppendInt([]byte(salt), int64(number), 10))
	return hex.EncodeToString(sum[:])
}

func proofSignature(key []byte, challenge string) string {
	m := hmac.New(sha256.New, key)
	io.WriteString(m, challenge)
	return hex.EncodeToString(m.Sum(nil))
}

// Challenge asks for a proof, whose number is at most so much (see Difficulty).
func (p *Prover) Challenge(now time.Time, b Bind, most int) Challenge {
	most = min(max(1, most), DifficultyMax)
	derived := p.secrets.Of("proof of work")[0]
	var random [proofSaltBytes]byte
	rand.Read(random[:])                                          // never fails
	chosen, _ := rand.Int(rand.Reader, big.NewInt(int64(most)+1)) // never fails
	salt := hex.EncodeToString(random[:]) + "?" + url.Values{
		"at": {strconv.FormatInt(now.UnixMilli(), 10)}, "expires": {strconv.FormatInt(now.Add(ProofLife).Unix(), 10)},
		"for": {boundTo(derived, b)}, "max": {strconv.Itoa(most)},
	}.Encode() + "&"
	challenge := proofSum(salt, int(chosen.Int64()))
	return Challenge{proofAlgorithm, challenge, most, salt, proofSignature(proofKey(derived), challenge)}
}

// Check says what a proof is worth. Fault: proof_required, with what is wrong as its detail.
func (p *Prover) Check(now time.Time, b Bind, payload string) (Solved, error) {
	if payload == "" {
		return Solved{}, fault.New(fault.ProofRequired, "")
	}
	s, number, err := readSolution(payload)
	if err != nil {
		return Solved{}, fault.New(fault.ProofRequired, "the proof cannot be read: %s", err)
	}
	if proofSum(s.Salt, number) != s.Challenge {
		return Solved{}, fault.New(fault.ProofRequired, "this is not the number that was asked for")
	}
	for _, derived := range p.secrets.Of("proof of work") {
		if !hmac.Equal([]byte(proofSignature(proofKey(derived), s.Challenge)), []byte(s.Signature)) {
			continue
		}
		return checkSalt(now, derived, b, s.Salt, number)
	}
	return Solved{}, fault.New(fault.ProofRequired, "this proof was not asked for here")
}

func readSolution(payload string) (s solution, number int, err error) {
	if len(payload) > ProofBytesMax {
		return s, 0, errors.New("it is too long")
	}
	raw, err := base64.StdEncoding.DecodeString(payload)
	if err != nil {
		return s, 0, errors.New("it is not base64")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&s); err != nil {
		return s, 0, errors.New("it is not JSON of the right kind")
	}
	number, err = strconv.Atoi(s.Number.String())
	if err != nil || number < 0 || number > DifficultyMax || strconv.Itoa(number) != s.Number.String() {
		return s, 0, errors.New("number is not a whole number in its bounds")
	}
	if s.Algorithm != proofAlgorithm {
		return s, 0, errors.New("algorithm is not " + proofAlgorithm)
	}
	if !strings.HasSuffix(s.Salt, "&") {
		return s, 0, errors.New("the salt has no end")
	}
	return s, number, nil
}

// checkSalt reads what a salt of ours says.
func checkSalt(now time.Time, derived []byte, b Bind, salt string, number int) (Solved, error) {
	_, query, _ := strings.Cut(strings.TrimSuffix(salt, "&"), "?")
	said, err := url.ParseQuery(query)
	if err != nil || len(said) > proofParameters {
		return Solved{}, fault.New(fault.ProofRequired, "the salt cannot be read")
	}
	at, err1 := strconv.ParseInt(said.Get("at"), 10, 64)
	expires, err2 := strconv.ParseInt(said.Get("expires"), 10, 64)
	most, err3 := strconv.Atoi(said.Get("max"))
	if errors.Join(err1, err2, err3) != nil {
		return Solved{}, fault.New(fault.ProofRequired, "the salt cannot be read")
	}
	switch {
	case !hmac.Equal([]byte(said.Get("for")), []byte(boundTo(derived, b))):
		return Solved{}, fault.New(fault.ProofRequired, "this proof is of somebody else, or for another event")
	case now.Unix() >= expires || time.UnixMilli(at).After(now.Add(proofAhead)):
		return Solved{}, fault.New(fault.ProofRequired, "this proof has run out; ask for another")
	}
	return Solved{Max: most, Number: number, Took: now.Sub(time.UnixMilli(at))}, nil
}

// Payload is what a widget sends for a challenge whose number was found.
func (c Challenge) Payload(number int) string {
	b, _ := json.Marshal(solution{c.Algorithm, c.Challenge, json.Number(strconv.Itoa(number)), c.Salt, c.Signature}) // cannot fail
	return base64.StdEncoding.EncodeToString(b)
}

// Solve does the work, for simulated people. ok is false where the number is not there.
func (c Challenge) Solve() (payload string, ok bool) {
	buffer := []byte(c.Salt)
	want, err := hex.DecodeString(c.Challenge)
	for n := 0; err == nil && n <= min(c.MaxNumber, DifficultyMax); n++ {
		if sum := sha256.Sum256(strconv.AppendInt(buffer, int64(n), 10)); bytes.Equal(sum[:], want) {
			return c.Payload(n), true
		}
	}
	return "", false
}

// A Pressure is what a challenge's difficulty depends on.
type Pressure struct {
	Base    int     // MaxNumber in quiet times. Defaults to DifficultyBase. 1, for simulators, is never raised.
	Load    float64 // of the gate: 0 quiet, 1 as much as it may bear
	Heat    float64 // joins of the address lately over what is usual for one: 0 and up
	Flagged bool    // there is evidence of a machine
}

// Difficulty is the MaxNumber to ask for: up to four times the base by load, doubled with each doubling of the address's
// heat up to four times, four times for who is flagged; never above DifficultyMax. On average half of it is to be tried.
func Difficulty(p Pressure) int {
	base := p.Base
	if base == 0 {
		base = DifficultyBase
	}
	if base <= 1 {
		return 1
	}
	d := float64(base) * (1 + 3*clamp01(p.Load))
	if p.Heat > 1 { // NaN is not
		d *= min(4, p.Heat)
	}
	if p.Flagged {
		d *= 4
	}
	return int(math.Round(min(d, DifficultyMax)))
}

func clamp01(x float64) float64 {
	if !(x > 0) { // NaN, too
		return 0
	}
	return min(x, 1)
}
