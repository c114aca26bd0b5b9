package identity

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/keys"
)

// The rules of codes (E2).
const (
	CodeDigits          = 8
	CodeDigitsOrganizer = 12 // for owners and operators, until passkeys come
	CodeFor             = 10 * time.Minute
	CodeTriesMax        = 5
	MailsPerAddress     = 5
	MailsPerNetwork     = 20
	mailWindow          = time.Hour
)

// What secrets look like: 256 bits for a sign-in's token, 192 for a browser.
const (
	tokenBytes   = 32
	browserBytes = 24
)

// NewBrowser makes the random name of a browser, kept in its cookie: whoever asked for a code, or went to an OIDC provider,
// is who may come back with the answer.
func NewBrowser() string { return randomText(browserBytes) }

// CheckBrowser says whether a text can be NewBrowser's.
func CheckBrowser(text string) bool { return isRandomText(text, browserBytes) }

func randomText(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

func isRandomText(text string, bytes int) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(b) == bytes
}

var errNoBrowser = fault.New(fault.BadRequest, "the browser's cookie is missing or damaged: allow cookies, and begin again")

// BeginSignIn mails a one-time code to an address, and answers the same whoever's it is, and whether or not a mail was sent:
// an address that was sent MailsPerAddress mails within the hour gets no more. Of a network's own limit the asker may know.
// Faults: invalid (no address); bad_request (no browser); too_many_requests (the network); busy (too many mails wait).
func (s *Service) BeginSignIn(ctx context.Context, b Begin) error {
	email, err := ParseEmail(b.Email)
	if err != nil {
		return err
	}
	if !CheckBrowser(b.Browser) {
		return errNoBrowser
	}
	if !s.mails.take() {
		return &fault.Error{Code: fault.Busy, Detail: "very many people are asking for a code right now", RetryAfter: 30 * time.Second}
	}
	mail, err := s.makeCode(ctx, email, b)
	if err != nil || mail.Code == "" {
		s.mails.leave()
		return err
	}
	s.mails.put(mailJob{kind: "sign-in code", expires: mail.Expires, send: func(ctx context.Context) error { return s.o.Mail.SendCode(ctx, mail) }})
	return nil
}

// makeCode stores a code and answers the mail that brings it, without a code where the address had too many mails.
func (s *Service) makeCode(ctx context.Context, email Email, b Begin) (CodeMail, error) {
	organizer, err := s.mighty(ctx, email)
	if err != nil {
		return CodeMail{}, err
	}
	key, err := s.o.Keys.Active(keys.SignIn)
	if err != nil {
		return CodeMail{}, err
	}
	code, err := newCode(organizer)
	if err != nil {
		return CodeMail{}, err
	}
	now := s.o.Now()
	expires := now.Add(CodeFor)
	limits := []MailLimit{ // the network's first: of the address's nothing is told
		{Subject: subject(key, "network", networkText(b.IP)), Max: MailsPerNetwork, Window: mailWindow},
		{Subject: subject(key, "address", email.LimitForm()), Max: MailsPerAddress, Window: mailWindow},
	}
	reached, free, err := s.o.Store.PutCode(ctx, Code{Ask: ask(b.Browser, email), KID: key.KID, Sum: codeSum(key, b.Browser, email, code), Expires: expires}, limits, now)
	switch {
	case err != nil:
		return CodeMail{}, err
	case reached == 0:
		return CodeMail{}, &fault.Error{Code: fault.TooManyRequests, Detail: "too many codes were asked for from your network", RetryAfter: free.Sub(now)}
	case reached > 0:
		return CodeMail{}, nil
	}
	return CodeMail{To: email, Code: code, Locale: locale(b.Locale), Organizer: organizer, Expires: expires}, nil
}

// mighty says whether an address is an owner's or operator's. It asks as much of the database for an address that nobody
// has, so that the time tells nothing.
func (s *Service) mighty(ctx context.Context, email Email) (bool, error) {
	customer, err := s.o.Store.Customer(ctx, emailName(email))
	if err != nil && !errors.Is(err, ErrUnknown) {
		return false, err
	}
	roles, err := s.o.Store.RolesOf(ctx, customer)
	for _, m := range roles {
		if m.Role.Mighty() {
			return true, nil
		}
	}
	return false, err
}

func networkText(ip netip.Addr) string { return network(ip).String() }

// newCode draws digits, each code as likely as another.
func newCode(organizer bool) (string, error) {
	digits := CodeDigits
	if organizer {
		digits = CodeDigitsOrganizer
	}
	n, err := rand.Int(rand.Reader, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))
	if err != nil {
		return "", fmt.Errorf("identity: randomness: %w", err)
	}
	return fmt.Sprintf("%0*d", digits, n), nil
}

// ask names who asked: the browser and the address. The browser's name is random, so that the hash tells neither.
func ask(browser string, email Email) Hash {
	return sha256.Sum256([]byte(browser + "\x00" + string(email)))
}

func keyed(key keys.Key, parts ...string) (h Hash) {
	m := hmac.New(sha256.New, key.Secret())
	for _, p := range parts {
		m.Write([]byte(p))
		m.Write([]byte{0}) // no part holds one
	}
	copy(h[:], m.Sum(nil))
	return h
}

func subject(key keys.Key, kind, text string) Hash { return keyed(key, "sign-in mails", kind, text) }

func codeSum(key keys.Key, browser string, email Email, code string) Hash {
	return keyed(key, "sign-in code", browser, string(email), code)
}

// An Opened sign-in is what the browser gets.
type Opened struct {
	Token  string // for the cookie, and nowhere else
	SignIn SignIn
}

// FinishSignIn takes a code and opens a sign-in of the customer of the address, who is made where there is none. Each call
// is a try, counted before the code is looked at; after CodeTriesMax a right code is wrong, too. What is wrong is not told.
// Faults: invalid (no address); bad_request (no browser); code_wrong.
func (s *Service) FinishSignIn(ctx context.Context, f Finish) (Opened, error) {
	email, err := ParseEmail(f.Email)
	if err != nil {
		return Opened{}, err
	}
	if !CheckBrowser(f.Browser) {
		return Opened{}, errNoBrowser
	}
	digits := plainCode(f.Code)
	if digits == "" {
		return Opened{}, fault.New(fault.CodeWrong, "the code has %d digits, as the mail shows it", CodeDigits)
	}
	code, err := s.o.Store.TryCode(ctx, ask(f.Browser, email), CodeTriesMax, s.o.Now())
	known := err == nil
	if err != nil && !errors.Is(err, ErrNoCode) {
		return Opened{}, err
	}
	key, err := s.codeKey(ctx, code.KID, known)
	if err != nil {
		return Opened{}, err
	}
	sum := codeSum(key, f.Browser, email, digits)
	if equal := hmac.Equal(sum[:], code.Sum[:]); !equal || !known {
		return Opened{}, fault.New(fault.CodeWrong, "")
	}
	return s.open(ctx, &code, emailName(email), MethodCode, f.Replaces)
}

// codeKey is the key under which a code was made; where there was no code, any, so that the same work is done.
func (s *Service) codeKey(ctx context.Context, kid string, known bool) (keys.Key, error) {
	if !known {
		return s.o.Keys.Active(keys.SignIn)
	}
	key, err := s.o.Keys.Find(ctx, keys.SignIn, kid)
	if errors.Is(err, keys.ErrNone) { // retired meanwhile
		return key, fault.New(fault.CodeWrong, "")
	}
	return key, err
}

// plainCode is the digits of a code as typed: grouped, or of a Chinese keyboard. "" where it is no code.
func plainCode(text string) string {
	if len(text) > 64 {
		return ""
	}
	digits := strings.Map(func(r rune) rune {
		switch r = narrow(r); {
		case r == ' ' || r == '-' || r == '\t':
			return -1
		case r >= '0' && r <= '9':
			return r
		}
		return '?'
	}, text)
	if len(digits) != CodeDigits && len(digits) != CodeDigitsOrganizer || strings.Contains(digits, "?") {
		return ""
	}
	return digits
}

// SignInWith opens a sign-in of who an OIDC provider said it is. replaces is the token that the browser had, "" for none.
func (s *Service) SignInWith(ctx context.Context, who Named, method Method, replaces string) (Opened, error) {
	if who.Issuer == EmailIssuer || who.Issuer == "" || checkSub(who.Sub) != "" {
		return Opened{}, fault.New(fault.TokenInvalid, "who this is cannot be read")
	}
	return s.open(ctx, nil, who, method, replaces)
}

func (s *Service) open(ctx context.Context, code *Code, who Named, method Method, replaces string) (Opened, error) {
	candidate, err := s.o.NewID(0)
	if err != nil {
		return Opened{}, err
	}
	number, err := s.o.NewID(0)
	if err != nil {
		return Opened{}, err
	}
	now := s.o.Now().UTC().Truncate(time.Millisecond)
	token := randomText(tokenBytes) // always a new one: a token that was planted before signing in is worth nothing
	o := Opening{Code: code, Who: who, Candidate: candidate, Max: SignInsMax, SignIn: SignIn{
		ID: number, Token: hashOf(token), Method: method, Created: now, Seen: now, Expires: now.Add(s.o.Settings.SignInFor),
	}}
	if isRandomText(replaces, tokenBytes) {
		o.Replaces = hashOf(replaces)
	}
	o.SignIn.Customer, err = s.o.Store.OpenSignIn(ctx, o)
	if errors.Is(err, ErrNoCode) {
		return Opened{}, fault.New(fault.CodeWrong, "") // the other of two who had it was faster
	}
	if err != nil {
		return Opened{}, err
	}
	s.signIns.Forget(o.Replaces)
	return Opened{Token: token, SignIn: o.SignIn}, nil
}

func hashOf(token string) Hash { return sha256.Sum256([]byte(token)) }

// seenEvery is how often it is stored at most that a sign-in was seen; seenMax how many wait to be stored. One that finds
// no room is seen a little later.
const (
	seenEvery = 5 * time.Minute
	seenMax   = 50_000
)

// SignedIn is the sign-in of a cookie's token. One that was ended on another node may be believed for endedWithin; one that
// is known here goes on while the control database is away. Faults: sign_in_required (no token); token_invalid.
func (s *Service) SignedIn(ctx context.Context, token string) (SignIn, error) {
	if token == "" {
		return SignIn{}, fault.New(fault.SignInRequired, "")
	}
	if !isRandomText(token, tokenBytes) {
		return SignIn{}, fault.New(fault.TokenInvalid, "")
	}
	hash := hashOf(token)
	si, err := s.signIns.Load(ctx, hash, func(ctx context.Context) (SignIn, error) { return s.o.Store.SignIn(ctx, hash) })
	if errors.Is(err, ErrUnknown) {
		s.signIns.Forget(hash) // not even while the database is away
		return SignIn{}, fault.New(fault.TokenInvalid, "")
	}
	if err != nil {
		return SignIn{}, err
	}
	now := s.o.Now()
	si.Seen = s.see(hash, si.Seen, now)
	if !now.Before(si.Expires) || now.Sub(si.Seen) >= s.o.Settings.IdleFor {
		return SignIn{}, fault.New(fault.TokenInvalid, "")
	}
	return si, nil
}

// see answers when a sign-in was seen last before now, and keeps now to be stored where that is long ago.
func (s *Service) see(hash Hash, stored, now time.Time) time.Time {
	if now.Sub(stored) < seenEvery {
		return stored
	}
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	last := stored
	if waiting, ok := s.seen[hash]; ok {
		last = waiting
	}
	if now.Sub(last) >= seenEvery && now.Sub(last) < s.o.Settings.IdleFor && len(s.seen) < seenMax {
		s.seen[hash] = now
	}
	return last
}

// flushSeen stores when sign-ins were seen. What cannot be stored is seen again.
func (s *Service) flushSeen(ctx context.Context) {
	s.seenMu.Lock()
	all := s.seen
	s.seen = map[Hash]time.Time{}
	s.seenMu.Unlock()
	batch := make(map[Hash]time.Time, min(len(all), flushMax))
	store := func() bool {
		err := s.o.Store.SeeSignIns(ctx, batch)
		if err != nil && ctx.Err() == nil {
			s.o.Log.WarnContext(ctx, "when sign-ins were seen could not be stored", "error", err)
		}
		clear(batch)
		return err == nil
	}
	for hash, at := range all {
		batch[hash] = at
		if len(batch) == flushMax && !store() {
			return
		}
	}
	if len(batch) > 0 {
		store()
	}
}

// SignOut ends the sign-in of a token; one that is none is no error.
func (s *Service) SignOut(ctx context.Context, token string) error {
	if !isRandomText(token, tokenBytes) {
		return nil
	}
	hash := hashOf(token)
	err := s.o.Store.EndSignIn(ctx, hash)
	s.signIns.Forget(hash)
	return err
}

// SignIns are a customer's, newest first.
func (s *Service) SignIns(ctx context.Context, customer id.ID) ([]SignIn, error) {
	return s.o.Store.SignInsOf(ctx, customer)
}

// EndSignIn ends one of a customer's by its number; one that is none is no error.
func (s *Service) EndSignIn(ctx context.Context, customer, number id.ID) error {
	return s.endSignIns(ctx, customer, func(si SignIn) bool { return si.ID == number }, func() error {
		return s.o.Store.EndSignInOf(ctx, customer, number)
	})
}

// SignOutAll ends all of a customer's.
func (s *Service) SignOutAll(ctx context.Context, customer id.ID) error {
	return s.endSignIns(ctx, customer, func(SignIn) bool { return true }, func() error { return s.o.Store.EndSignIns(ctx, customer) })
}

// endSignIns also forgets those that this node has in memory.
func (s *Service) endSignIns(ctx context.Context, customer id.ID, which func(SignIn) bool, end func() error) error {
	all, err := s.o.Store.SignInsOf(ctx, customer)
	if err != nil {
		return err
	}
	if err := end(); err != nil {
		return err
	}
	for _, si := range all {
		if which(si) {
			s.signIns.Forget(si.Token)
		}
	}
	return nil
}
