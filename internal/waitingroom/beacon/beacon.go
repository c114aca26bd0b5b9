// Package beacon fetches public values for draws from randomness beacons that answer as drand's HTTP API does: JSON with a
// round, its randomness and, where the beacon has one, the signature of which the randomness is the SHA-256.
//
// The one idea: what makes a value good for a draw is when it became public, so each beacon is known with the instant of its
// first round and the time between two. A round is not asked for before its time, and the answer must be of that round.
//
// Start reading at Value.
package beacon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/waitingroom"
)

// Bounds.
const (
	AnswerBytesMax = 64 << 10
	patience       = 5 * time.Second // for one answer
	PeriodMin      = time.Second
	PeriodMax      = 24 * time.Hour
	roundMark      = "{round}"
	valueBytes     = 32
)

// A Source is one beacon.
type Source struct {
	Name    string        // as events name it: letters a–z, digits, hyphens
	URL     string        // of a round, with {round} in it; https, or http to a loopback address
	Genesis time.Time     // when round 1 becomes public
	Period  time.Duration // between two rounds
}

// Check says what is wrong with a source, nil where nothing is.
func (s Source) Check() error {
	if got, err := catalog.ParseDrawSource("beacon: " + s.Name + " 1"); err != nil || got.Beacon != s.Name {
		return fmt.Errorf("the name %.40q must be letters a–z, digits and hyphens", s.Name)
	}
	u, err := url.Parse(strings.ReplaceAll(s.URL, roundMark, "1"))
	switch {
	case err != nil || u.Host == "" || !strings.Contains(s.URL, roundMark):
		return fmt.Errorf("the URL must be that of a round, with %s in it", roundMark)
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return errors.New("the URL must begin with https://")
	case s.Genesis.IsZero():
		return errors.New("genesis is missing: when round 1 becomes public")
	case s.Period < PeriodMin || s.Period > PeriodMax:
		return fmt.Errorf("the period must be between %s and %s", PeriodMin, PeriodMax)
	}
	return nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || host == "localhost"
}

// At is when a round becomes public; ok is false for one that lies beyond all times.
func (s Source) At(round uint64) (at time.Time, ok bool) {
	if round < 1 || round-1 > uint64(math.MaxInt64/int64(s.Period)) {
		return time.Time{}, false
	}
	return s.Genesis.Add(time.Duration(round-1) * s.Period), true
}

// Beacon fetches values. It is safe for concurrent use.
type Beacon struct {
	sources map[string]Source
	client  *http.Client
	now     func() time.Time
}

var _ waitingroom.Beacon = (*Beacon)(nil)

// New makes one of sources that pass their Check and have different names. now defaults to time.Now.
func New(sources []Source, now func() time.Time) (*Beacon, error) {
	if now == nil {
		now = time.Now
	}
	b := &Beacon{sources: map[string]Source{}, now: now, client: &http.Client{
		Timeout:       patience,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 4, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, s := range sources {
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("beacon %.40q: %w", s.Name, err)
		}
		if _, twice := b.sources[s.Name]; twice {
			return nil, fmt.Errorf("beacon %q is there twice", s.Name)
		}
		b.sources[s.Name] = s
	}
	return b, nil
}

// Close lets go of connections.
func (b *Beacon) Close() { b.client.CloseIdleConnections() }

// Source finds a beacon by its name.
func (b *Beacon) Source(name string) (Source, bool) {
	s, ok := b.sources[name]
	return s, ok
}

// Value is the randomness of the round that a source names, in hex, and when it became public. ErrNoValue before that, and
// for a source that is no beacon.
func (b *Beacon) Value(ctx context.Context, source string) (value string, public time.Time, err error) {
	named, err := catalog.ParseDrawSource(source)
	if err != nil || named.Beacon == "" {
		return "", time.Time{}, waitingroom.ErrNoValue
	}
	s, ok := b.sources[named.Beacon]
	if !ok {
		return "", time.Time{}, fmt.Errorf("beacon: no beacon named %s is configured", named.Beacon)
	}
	public, ok = s.At(named.Round)
	if !ok || b.now().Before(public) {
		return "", time.Time{}, waitingroom.ErrNoValue
	}
	value, err = b.fetch(ctx, s, named.Round)
	return value, public, err
}

func (b *Beacon) fetch(ctx context.Context, s Source, round uint64) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.ReplaceAll(s.URL, roundMark, strconv.FormatUint(round, 10)), nil)
	if err != nil {
		return "", fmt.Errorf("beacon %s: %w", s.Name, err)
	}
	r.Header.Set("Accept", "application/json")
	answer, err := b.client.Do(r)
	if err != nil {
		return "", fmt.Errorf("beacon %s: %w", s.Name, err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusTooEarly, http.StatusServiceUnavailable: // the beacon is late
		return "", waitingroom.ErrNoValue
	default:
		return "", fmt.Errorf("beacon %s: it answers %s", s.Name, answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, AnswerBytesMax+1))
	if err != nil {
		return "", fmt.Errorf("beacon %s: %w", s.Name, err)
	}
	value, err := read(body, round)
	if err != nil {
		return "", fmt.Errorf("beacon %s: %w", s.Name, err)
	}
	return value, nil
}

// read takes the randomness out of an answer, which must be of this round and, where it is signed, follow from the
// signature.
func read(body []byte, round uint64) (string, error) {
	var answer struct {
		Round      uint64 `json:"round"`
		Randomness string `json:"randomness"`
		Signature  string `json:"signature"`
	}
	if len(body) > AnswerBytesMax {
		return "", fmt.Errorf("the answer has more than %d bytes", AnswerBytesMax)
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", errors.New("the answer is not JSON of a round")
	}
	if answer.Round != round {
		return "", fmt.Errorf("the answer is of round %d, and round %d was asked for", answer.Round, round)
	}
	random, err := hex.DecodeString(answer.Randomness)
	if err != nil || len(random) != valueBytes {
		return "", fmt.Errorf("its randomness is not %d bytes of hex", valueBytes)
	}
	if answer.Signature != "" {
		signature, err := hex.DecodeString(answer.Signature)
		if sum := sha256.Sum256(signature); err != nil || string(sum[:]) != string(random) {
			return "", errors.New("its randomness is not the hash of its signature")
		}
	}
	return hex.EncodeToString(random), nil
}
