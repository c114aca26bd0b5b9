// Package presale knows who may join a lane that is not for everybody: who has one of its codes, or whose mail address is on
// its list of members.
//
// The one idea: neither codes nor addresses are kept. What is stored is a keyed hash of each, so that who reads the database
// can neither use a code nor learn who is a member. How often a code was used is the ledger's to count, exactly
// (ledger.TakeCode); this package only says whether there is such a code, and how often it may be.
//
// Start reading at Service.
package presale

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
)

// Limits.
const (
	CodesPerUploadMax = 100_000
	CodesPerEventMax  = 1_000_000 // codes, and as many members
	CodeRunesMin      = 4
	CodeBytesMax      = 64
	LabelBytesMax     = 64
	UsesMax           = 1_000_000
	PageMax           = 1_000
	AddressesMax      = 20 // of one customer that are looked for
	HashBytes         = 16
)

// A Hash is a keyed hash of a code or an address, for one event and lane.
type Hash [HashBytes]byte

// Text is the hash as the ledger knows it.
func (h Hash) Text() string { return hex.EncodeToString(h[:]) }

// A Code is one as it is stored.
type Code struct {
	Lane    string
	Hash    Hash
	Uses    int    // customers who may use it
	Label   string // the organizer's, to know it again by
	Created time.Time
}

// Counts say how much of a lane there is.
type Counts struct {
	Lane           string
	Codes, Members int
}

// A Store keeps codes and lists of members. Each method is atomic and durable when it returns. controltest.Exercise is this
// contract as tests.
type Store interface {
	// PutCodes keeps codes. One that is there gets the new Uses and Label. ErrTooMany, and nothing, where the event would have
	// more than max.
	PutCodes(ctx context.Context, event id.ID, codes []Code, max int) (added int, err error)
	// Code is one. ErrUnknown.
	Code(ctx context.Context, event id.ID, lane string, h Hash) (Code, error)
	// Codes are those of an event's lane, by hash after the given one (nil: from the first), at most max.
	Codes(ctx context.Context, event id.ID, lane string, after *Hash, max int) ([]Code, error)
	// PutMembers adds to a lane's list. ErrTooMany.
	PutMembers(ctx context.Context, event id.ID, lane string, members []Hash, now time.Time, max int) (added int, err error)
	// Member answers the first of the hashes that is on the list. ErrUnknown.
	Member(ctx context.Context, event id.ID, lane string, hashes []Hash) (Hash, error)
	// Counts are an event's lanes that have codes or members, by lane.
	Counts(ctx context.Context, event id.ID) ([]Counts, error)
}

// The errors of a Store.
var (
	ErrUnknown = errors.New("presale: there is no such code or member")
	ErrTooMany = errors.New("presale: there are too many of them")
)

// A Service checks what people bring, and takes what organizers upload.
type Service struct {
	store  Store
	pepper []byte
	now    func() time.Time
}

// New makes a service. The pepper must never change: what is stored was made with it. now defaults to time.Now.
func New(store Store, pepper []byte, now func() time.Time) *Service {
	if now == nil {
		now = time.Now
	}
	return &Service{store: store, pepper: pepper, now: now}
}

func (s *Service) hash(kind string, event id.ID, lane, text string) (h Hash) {
	m := hmac.New(sha256.New, s.pepper)
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(event))
	m.Write([]byte(kind + "\x00"))
	m.Write(number[:])
	m.Write([]byte(lane + "\x00" + text))
	copy(h[:], m.Sum(nil))
	return h
}

// Normalise is a code without what people add or change when they copy it: case, blanks, hyphens.
func Normalise(code string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), r == '-', r == '‐', r == '‑', r == '–', r == '_':
			return -1
		}
		return unicode.ToUpper(r)
	}, code)
}

// checkCode says what is wrong with a normalised code, "" where nothing is.
func checkCode(code string) string {
	switch {
	case len(code) > CodeBytesMax:
		return fmt.Sprintf("is longer than %d characters", CodeBytesMax)
	case len([]rune(code)) < CodeRunesMin:
		return fmt.Sprintf("has fewer than %d characters: it is guessed too easily", CodeRunesMin)
	case strings.ContainsFunc(code, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
		return "has characters that cannot be typed"
	}
	return ""
}

// An Allowance is a code or a place on a list, for the ledger to count.
type Allowance struct {
	Code string // as ledger.TakeCode wants it
	Max  int
}

// Code looks a code of a lane up. Faults: presale_code_wrong.
func (s *Service) Code(ctx context.Context, event id.ID, lane, code string) (Allowance, error) {
	code = Normalise(code)
	if checkCode(code) != "" {
		return Allowance{}, fault.New(fault.PresaleCodeWrong, "")
	}
	c, err := s.store.Code(ctx, event, lane, s.hash("code", event, lane, code))
	if errors.Is(err, ErrUnknown) {
		return Allowance{}, fault.New(fault.PresaleCodeWrong, "")
	}
	return Allowance{Code: c.Hash.Text(), Max: c.Uses}, err
}

// Member looks for a customer on a lane's list, by their verified addresses. Faults: presale_code_wrong.
func (s *Service) Member(ctx context.Context, event id.ID, lane string, addresses []identity.Email) (Allowance, error) {
	hashes := make([]Hash, 0, len(addresses))
	for _, a := range addresses[:min(len(addresses), AddressesMax)] {
		hashes = append(hashes, s.hash("member", event, lane, string(a)))
	}
	if len(hashes) == 0 {
		return Allowance{}, fault.New(fault.PresaleCodeWrong, "only members may join this lane: sign in with the address that is on the list")
	}
	h, err := s.store.Member(ctx, event, lane, hashes)
	if errors.Is(err, ErrUnknown) {
		return Allowance{}, fault.New(fault.PresaleCodeWrong, "only members may join this lane, and none of your addresses is on the list")
	}
	return Allowance{Code: h.Text(), Max: 1}, err
}

// Counts are an event's lanes that have codes or members.
func (s *Service) Counts(ctx context.Context, event id.ID) ([]Counts, error) {
	return s.store.Counts(ctx, event)
}

// Codes are a page of a lane's codes, by hash.
func (s *Service) Codes(ctx context.Context, event id.ID, lane string, after *Hash, max int) ([]Code, error) {
	return s.store.Codes(ctx, event, lane, after, min(max, PageMax))
}

// An Upload is a code as an organizer gives it.
type Upload struct {
	Code  string
	Uses  int    // 0: 1
	Label string // "": its place in the list
}

// AddCodes takes codes for a lane, all or none; one that is there gets the new uses and label. What is wrong is said of the
// first that is. Faults: invalid.
func (s *Service) AddCodes(ctx context.Context, event id.ID, lane string, uploads []Upload) (added int, err error) {
	if len(uploads) == 0 || len(uploads) > CodesPerUploadMax {
		return 0, invalid("codes", "1 to %d codes at once", CodesPerUploadMax)
	}
	now := s.now().UTC().Truncate(time.Millisecond)
	codes := make([]Code, len(uploads))
	seen := make(map[Hash]int, len(uploads))
	for i, u := range uploads {
		text := Normalise(u.Code)
		if bad := checkCode(text); bad != "" {
			return 0, invalid("codes", "number %d %s", i+1, bad)
		}
		c := Code{Lane: lane, Hash: s.hash("code", event, lane, text), Uses: u.Uses, Label: u.Label, Created: now}
		if c.Uses == 0 {
			c.Uses = 1
		}
		if c.Label == "" {
			c.Label = fmt.Sprint(i + 1)
		}
		switch {
		case c.Uses < 1 || c.Uses > UsesMax:
			return 0, invalid("codes", "number %d: %d is not between 1 and %d uses", i+1, c.Uses, UsesMax)
		case len(c.Label) > LabelBytesMax || strings.ContainsFunc(c.Label, unicode.IsControl) || strings.ToValidUTF8(c.Label, "") != c.Label:
			return 0, invalid("codes", "number %d: its label must be at most %d characters on one line", i+1, LabelBytesMax)
		}
		if first, twice := seen[c.Hash]; twice {
			return 0, invalid("codes", "numbers %d and %d are the same code: keep one", first, i+1)
		}
		seen[c.Hash] = i + 1
		codes[i] = c
	}
	added, err = s.store.PutCodes(ctx, event, codes, CodesPerEventMax)
	if errors.Is(err, ErrTooMany) {
		return 0, invalid("codes", "an event has at most %d codes", CodesPerEventMax)
	}
	return added, err
}

// AddMembers adds addresses to a lane's list, all or none. Faults: invalid.
func (s *Service) AddMembers(ctx context.Context, event id.ID, lane string, addresses []string) (added int, err error) {
	if len(addresses) == 0 || len(addresses) > CodesPerUploadMax {
		return 0, invalid("members", "1 to %d addresses at once", CodesPerUploadMax)
	}
	hashes := make([]Hash, 0, len(addresses))
	seen := make(map[Hash]bool, len(addresses))
	for i, text := range addresses {
		address, err := identity.ParseEmail(text)
		if err != nil {
			return 0, invalid("members", "number %d is no mail address", i+1)
		}
		h := s.hash("member", event, lane, string(address))
		if !seen[h] {
			seen[h] = true
			hashes = append(hashes, h)
		}
	}
	added, err = s.store.PutMembers(ctx, event, lane, hashes, s.now().UTC().Truncate(time.Millisecond), CodesPerEventMax)
	if errors.Is(err, ErrTooMany) {
		return 0, invalid("members", "an event has at most %d members", CodesPerEventMax)
	}
	return added, err
}

func invalid(field, format string, args ...any) error {
	return &fault.Error{Code: fault.Invalid, Field: field, Detail: fmt.Sprintf(format, args...)}
}
