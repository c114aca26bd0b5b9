package demo

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/httpapi"
)

// How people stand in line.
const (
	joinsMax    = 6 // numbers that one person takes after each other: each was used, or given up
	claimAgain  = 4 // times that a claim which is refused is tried again, while the picture at the CDN may be ahead
	proofMax    = 1 << 20
	generalLane = "general"
	presaleLane = "presale"
)

// solve does the work that a challenge asks for: a throw-away instance asks for hardly any (F4).
func solve(c *guard.Challenge) (string, error) {
	for n := range min(c.MaxNumber, proofMax) + 1 {
		sum := sha256.Sum256([]byte(c.Salt + strconv.Itoa(n)))
		if hex.EncodeToString(sum[:]) != c.Challenge {
			continue
		}
		text, err := json.Marshal(map[string]any{"algorithm": c.Algorithm, "challenge": c.Challenge, "number": n, "salt": c.Salt, "signature": c.Signature})
		return base64.StdEncoding.EncodeToString(text), err
	}
	return "", fmt.Errorf("no number up to %d solves the challenge", c.MaxNumber)
}

// prove gets a challenge and solves it.
func (v *visit) prove(ctx context.Context, random *rand.Rand) (string, error) {
	a, err := v.client.do(ctx, v.call("challenge", http.MethodGet, v.line.path+"/challenge"), random)
	if err != nil {
		return "", err
	}
	var ask guard.Ask
	if a.status != http.StatusOK || a.read(&ask) != nil {
		return "", fmt.Errorf("the challenge: %d %s", a.status, a.problem.Code)
	}
	v.takeCookies(&a)
	return solve(&ask.Proof)
}

// joinOnce brings the answer to a challenge, or what is given instead of one.
func (v *visit) joinOnce(ctx context.Context, random *rand.Rand) (answer, error) {
	for again := false; ; again = true {
		proof, err := v.prove(ctx, random)
		if err != nil {
			return answer{}, err
		}
		q := v.call("join", http.MethodPost, v.line.path)
		q.body = httpapi.QueueRequest{Lane: v.laneFor(v.code), Code: v.code, Proof: proof}
		a, err := v.client.do(ctx, q, random)
		if err != nil || a.code() != fault.ProofRequired || again {
			return a, err // a harder proof may be asked for in between
		}
	}
}

// join takes a number, from all tabs at once; each must get the same.
func (v *visit) join(ctx context.Context) bool {
	if v.tabs > 1 && v.who.cookies == "" { // all tabs are one browser: it has its cookie before
		if _, err := v.prove(ctx, v.random); err != nil {
			return false
		}
	}
	answers := v.fromTabs(func(random *rand.Rand) answer {
		a, err := v.joinOnce(ctx, random)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errNoAnswer) {
			v.wrong("buyer %d: %v", v.number, err)
		}
		return a
	})
	var first *place
	for i := range answers {
		a := &answers[i]
		switch {
		case a.status == http.StatusOK, a.status == http.StatusCreated:
		case a.code() == fault.CodeUsedUp:
			v.figures.did(codesUsedUp)
			v.code = ""
			return v.join(ctx)
		case a.status == 0, a.code() == fault.NotOnSale, a.code() == fault.SoldOut: // no answer; too late
			continue
		default:
			v.odd(call{method: http.MethodPost, path: v.line.path}, a)
			continue
		}
		p, err := v.joined(a)
		switch {
		case err != nil:
			v.wrong("buyer %d joined: %v", v.number, err)
		case first == nil:
			first = &p
		case first.lane != p.lane || first.number != p.number:
			v.wrong("buyer %d has number %d of %s in one tab and %d of %s in another", v.number, first.number, first.lane, p.number, p.lane)
		default:
			v.figures.did(tabsAlike)
		}
	}
	if first == nil {
		return false
	}
	v.place, v.admission = *first, ""
	v.joinedLine.Add(1)
	if v.place.lane == presaleLane {
		v.figures.did(codesTaken)
	}
	return true
}

// laneFor is the lane that a code is for.
func (v *visit) laneFor(code string) string {
	if code != "" {
		return presaleLane
	}
	return generalLane
}

// fromTabs does something in each of the person's tabs at once.
func (v *visit) fromTabs(do func(random *rand.Rand) answer) []answer {
	answers := make([]answer, max(1, v.tabs))
	if len(answers) == 1 {
		answers[0] = do(v.random)
		return answers
	}
	var all sync.WaitGroup
	for i := range answers {
		random := fork(v.random)
		all.Go(func() { answers[i] = do(random) })
	}
	all.Wait()
	return answers
}

// joined takes note of a number that was given.
func (v *visit) joined(a *answer) (place, error) {
	var t httpapi.QueuePlace
	if err := a.read(&t); err != nil {
		return place{}, err
	}
	p := place{queue: t.ID, lane: t.Lane, number: t.Number, drawn: t.Drawn}
	return p, v.journal.joined(v.number, p)
}

// takeTurn joins and waits until the line says that it is this person's turn: for those who come again.
func (v *visit) takeTurn(ctx context.Context) bool {
	for range joinsMax {
		if !v.join(ctx) {
			return false
		}
		turn := make(chan bool, 1)
		v.line.wait(&waiter{place: v.place, random: fork(v.random), turn: func(called bool) { turn <- called }})
		select {
		case called := <-turn:
			if !called {
				return false
			}
		case <-ctx.Done():
			return false
		}
		switch done, again := v.claim(ctx); {
		case done:
			return true
		case !again:
			return false
		}
	}
	return false
}

// claim asks to be let in. again says that the number is used up, and another one is to be taken.
func (v *visit) claim(ctx context.Context) (done, again bool) {
	q := v.call("claim", http.MethodPost, v.line.path+"/"+v.place.queue+"/claim")
	for range claimAgain {
		answers := v.fromTabs(func(random *rand.Rand) answer {
			a, _ := v.client.do(ctx, q, random) // no answer is status 0
			return a
		})
		a := &answers[0]
		for i := range answers {
			b := &answers[i]
			if b.status != http.StatusOK && b.status != http.StatusCreated {
				continue
			}
			if err := v.comesIn(b); err != nil {
				v.wrong("buyer %d came in: %v", v.number, err)
				return false, false
			}
			done = true
		}
		if done {
			return true, false
		}
		switch {
		case a.status == 0:
			return false, false
		case a.code() == fault.Conflict:
			return false, true
		case a.code() == fault.NotOnSale, a.code() == fault.SoldOut, a.code() == fault.NextIn, a.code() == fault.Busy:
			return false, false
		case a.code() == fault.NotAdmitted && !v.line.mayGo(v.place): // a number of which it was not the turn yet when all were sent home
			return false, false
		case a.code() == fault.Paused:
		default:
			v.odd(q, a)
			return false, false
		}
		if !sleep(ctx, time.Second) {
			return false, false
		}
	}
	return false, false
}

// comesIn takes note of an admission.
func (v *visit) comesIn(a *answer) error {
	var in httpapi.Admission
	if err := a.read(&in); err != nil {
		return err
	}
	if v.session != "" && in.Session != v.session && v.admission != "" {
		return fmt.Errorf("it has %s in one tab and %s in another", v.session, in.Session)
	}
	v.admission, v.session = in.Token, in.Session
	return v.journal.cameIn(v.number, v.place, in.Session)
}

// again is what somebody does whose hold was refused for want of a session: the tab was open for too long.
func (v *visit) comeAgain(ctx context.Context) bool {
	v.figures.did(sessionsOver)
	v.admission, v.session = "", ""
	done, again := v.claim(ctx)
	if !done && again {
		done = v.takeTurn(ctx)
	}
	return done
}

// leave goes out, so that somebody else may come in.
func (v *visit) leave(ctx context.Context) {
	if v.admission == "" || v.forgets || v.after == afterDearer || v.after == afterCheaper || v.after == afterDeclined || v.after == afterLapse {
		return // who exchanges comes back to it
	}
	q := v.call("leave", http.MethodDelete, "/v1/events/"+v.house.event.ID+"/session")
	q.pass = v.admission
	a, err := v.client.do(ctx, q, v.random)
	switch {
	case err != nil:
	case a.status == http.StatusOK, a.status == http.StatusNoContent:
		v.figures.did(leftInside)
	case a.code() == fault.NotAdmitted, a.code() == fault.AdmissionExpired: // paid, or run out
	default:
		v.odd(q, &a)
	}
	v.admission = ""
}

// leaveLine gives a number up.
func (v *visit) leaveLine(ctx context.Context) bool {
	v.journal.givesUp(v.number, v.place)
	q := v.call("leave line", http.MethodDelete, v.line.path+"/"+v.place.queue)
	a, err := v.client.do(ctx, q, v.random)
	if err != nil {
		return false
	}
	if a.status != http.StatusOK && a.status != http.StatusNoContent {
		v.odd(q, &a)
		return false
	}
	v.figures.did(leftLine)
	return true
}
