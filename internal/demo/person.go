package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
	"onsale/internal/id"
	"onsale/internal/outbox/mail/mailbox"
)

// Who people are: most buyers have a token of the throw-away issuer; some sign in with a code by mail, as people do, and so
// does the organizer's staff.

// How long people wait for a code, and how often they ask.
const (
	codeWait    = 4 * time.Second // then another is asked for: a killed server forgets the mails that it had still to send
	codeAsksMax = 8
	asksAddress = 4 // of one address, which the server lets have five codes an hour
	mailDomain  = "@demo.example"
)

// address is where a buyer's requests come from: each has one of its own, as at home.
func address(number int) string {
	n := number + 1
	return fmt.Sprintf("10.%d.%d.%d", n>>16&0xff, n>>8&0xff, n&0xff)
}

// arrive gives a buyer what says who it is; false where there is none.
func (v *visit) arrive(ctx context.Context) bool {
	if v.signsIn && v.signIn(ctx, v.email("guest")) {
		return true
	}
	token, err := v.mint(v.name)
	if err != nil {
		v.wrong("buyer %d has no token: %v", v.number, err)
		return false
	}
	v.who.token = token
	return true
}

// email is an address that nobody else has; it is written nowhere but into the control database.
func (v *visit) email(what string) string {
	return fmt.Sprintf("%s-%d-%d%s", what, v.Seed, v.number, mailDomain)
}

// signIn asks for a code, reads it in the mailbox and signs in. A kill may take the code, or the answer: then it begins
// again, after some tries with another address.
func (v *visit) signIn(ctx context.Context, email string) bool {
	began := time.Now()
	v.who.cookies = ""
	for ask := range codeAsksMax {
		to := email
		if n := ask / asksAddress; n > 0 {
			to = strings.Replace(email, "@", fmt.Sprintf(".%d@", n), 1)
		}
		v.secrets.address(to)
		q := call{name: "sign-in", method: http.MethodPost, path: "/v1/sign-in", who: v.who, body: httpapi.SignInRequest{Email: to}}
		a, err := v.client.do(ctx, q, v.random)
		if errors.Is(err, errNoAnswer) {
			continue
		}
		if err != nil {
			return false
		}
		if a.status != http.StatusAccepted {
			v.odd(q, &a)
			return false
		}
		v.takeCookies(&a)
		code := v.mailedCode(ctx, to)
		if code == "" {
			continue
		}
		if v.enterCode(ctx, to, code) {
			v.figures.took("sign-in in all", time.Since(began))
			return true
		}
	}
	if ctx.Err() == nil {
		v.wrong("buyer %d could not sign in after %d codes", v.number, codeAsksMax)
	}
	return false
}

func (v *visit) enterCode(ctx context.Context, email, code string) bool {
	q := call{name: "sign-in code", method: http.MethodPost, path: "/v1/sign-in/code", who: v.who, body: httpapi.SignInCode{Email: email, Code: code}}
	a, err := v.client.do(ctx, q, v.random)
	var in httpapi.SignIn
	switch {
	case err != nil:
		return false
	case a.code() == fault.CodeWrong: // the code of an ask whose answer was lost, or one that a lost answer has used up
		v.figures.did(codesLost)
		return false
	case a.status != http.StatusOK:
		v.odd(q, &a)
		return false
	}
	err = a.read(&in)
	if err == nil {
		err = v.journal.signedIn(v.number, &in)
	}
	if err != nil {
		v.wrong("buyer %d signed in: %v", v.number, err)
		return false
	}
	v.takeCookies(&a)
	v.figures.did(signIns)
	v.staff.remember(v.who)
	v.introduce(ctx)
	return true
}

// introduce tells the server the name of who has signed in, which is in their mails from then on.
func (v *visit) introduce(ctx context.Context) {
	name := v.secrets.person(v.random)
	q := v.call("me", http.MethodPatch, "/v1/me")
	q.body = httpapi.MeChange{Name: &name}
	var me httpapi.Me
	switch a, err := v.client.do(ctx, q, v.random); {
	case err != nil:
	case a.status != http.StatusOK:
		v.odd(q, &a)
	case a.read(&me) != nil || me.Name != name:
		v.wrong("buyer %d is called otherwise than told", v.number)
	}
}

// takeCookies keeps what an answer set, as a browser does.
func (v *visit) takeCookies(a *answer) {
	if len(a.cookies) == 0 {
		return
	}
	set := map[string]string{}
	var names []string
	add := func(name, value string) {
		if _, there := set[name]; !there {
			names = append(names, name)
		}
		set[name] = value
	}
	for pair := range strings.SplitSeq(v.who.cookies, "; ") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			add(name, value)
		}
	}
	for _, c := range a.cookies {
		add(c.Name, c.Value)
	}
	var pairs []string
	for _, name := range names {
		pairs = append(pairs, name+"="+set[name])
	}
	v.who.cookies = strings.Join(pairs, "; ")
}

var codeInSubject = regexp.MustCompile(`^[0-9]{8,12}\b`)

// mailedCode is the code of the newest mail to an address, "" where none comes in time.
func (v *visit) mailedCode(ctx context.Context, to string) string {
	q := call{name: "mailbox", method: http.MethodGet, path: "/dev/mailbox?to=" + url.QueryEscape(to), who: caller{from: v.who.from}, accept: "application/json"}
	for end := time.Now().Add(codeWait); time.Now().Before(end) && sleep(ctx, 100*time.Millisecond); {
		a, err := v.client.do(ctx, q, v.random)
		if err != nil {
			return ""
		}
		var all []mailbox.Letter
		if a.status != http.StatusOK || a.read(&all) != nil {
			v.odd(q, &a)
			return ""
		}
		for i := range all {
			if code := codeInSubject.FindString(all[i].Subject); code != "" {
				return code
			}
		}
	}
	return ""
}

// A staff is who works for the organizer: an owner, and somebody at the door.
type staff struct {
	owner, door caller

	mu       sync.Mutex
	signedIn []caller // of everybody, until the end
}

func (s *staff) remember(who caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signedIn = append(s.signedIn, who)
}

const staffNumber = 1 << 22 // beyond any buyer

// hire makes an owner and somebody for the door, by the operator's command, and lets them sign in.
func (s *sale) hire(ctx context.Context, random *rand.Rand) (*staff, error) {
	hired := &staff{}
	s.staff = hired
	for i, who := range []struct {
		role string
		into *caller
	}{{"owner", &hired.owner}, {"door", &hired.door}} {
		v := &visit{sale: s, buyer: &buyer{number: staffNumber + i, random: fork(random)}, who: caller{from: address(staffNumber + i)}}
		email := v.email(who.role)
		s.secrets.address(email)
		cmd := exec.CommandContext(ctx, s.Program, "organizer", "role", "set", "house", email, who.role, "--data", s.Data, "--ledger", s.kind())
		if s.Postgres != nil { // a command that is not for a demo wants to be told where the key is
			cmd.Args = append(cmd.Args, "--set", "master_key_file="+filepath.Join(s.Data, "master.key"))
		}
		cmd.Env = s.server.env
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("making the %s: %w\n%s", who.role, err, out)
		}
		if !v.signIn(ctx, email) {
			return nil, fmt.Errorf("the %s could not sign in", who.role)
		}
		*who.into = v.who
	}
	return hired, nil
}

// stillSignedIn looks at the end whether the sign-ins are what they were, whatever was killed since.
func (s *sale) stillSignedIn(ctx context.Context) {
	random := rand.New(rand.NewPCG(s.Seed, 0x6d65))
	for _, who := range s.staff.signedIn {
		a, err := s.client.do(ctx, call{name: "me", method: http.MethodGet, path: "/v1/me", who: who}, random)
		if err != nil {
			return
		}
		var me httpapi.Me
		if a.status != http.StatusOK || a.read(&me) != nil || me.Via != "cookie" {
			s.wrong("a sign-in from %s is gone: %d %s", who.from, a.status, a.problem.Code)
			continue
		}
		if _, err := id.Parse(id.Customer, me.Customer); err != nil {
			s.wrong("a sign-in of nobody: %v", err)
		}
		s.figures.did(signInsKept)
	}
}
