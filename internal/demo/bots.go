package demo

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
)

// What bots do, and what must come of it: no number without the work, no way in without a session, no seat kept from people
// by holding it again and again.

const (
	replays       = 3
	accountsOfOne = 3
	letGo         = 8 // holds that a bot makes and lets go, at most
)

// trickery plays a bot. True where the bot waits in line like everybody, and goes on when it is called.
func (v *visit) trickery(ctx context.Context, t trick) (waits bool) {
	switch t {
	case trickNoProof:
		v.refusedJoin(ctx, "", "", botsNoProof)
	case trickForged:
		v.refusedJoin(ctx, base64.StdEncoding.EncodeToString([]byte(forgedProof)), "", botsForgedProof)
	case trickCode:
		v.guessCodes(ctx)
	case trickReplay:
		v.replayJoin(ctx)
	case trickAccounts:
		v.manyAccounts(ctx)
	case trickNoTicket:
		v.forgeTicket(ctx)
	case trickPass:
		v.forgePass(ctx)
	case trickGang:
		return v.join(ctx)
	}
	return false
}

const forgedProof = `{"algorithm":"SHA-256","challenge":"00","number":1,"salt":"abc?expires=4102444800","signature":"00"}`

// refusedJoin joins where no number may be given.
func (v *visit) refusedJoin(ctx context.Context, proof, code string, what behaviour) {
	q := v.call("join", http.MethodPost, v.line.path)
	q.body = httpapi.QueueRequest{Lane: v.laneFor(code), Code: code, Proof: proof}
	a, err := v.client.do(ctx, q, v.random)
	switch {
	case err != nil:
	case a.status == http.StatusOK || a.status == http.StatusCreated:
		v.wrong("bot %d has a number it should not have: proof %q, code %q", v.number, proof, code)
	case a.code() == fault.NotOnSale, a.code() == fault.TooManyRequests: // too late; too often
	case a.code() == fault.ProofRequired, a.code() == fault.PersonRequired, code != "" && a.code() == fault.PresaleCodeWrong:
		v.figures.did(what)
	default:
		v.odd(q, &a)
	}
}

func (v *visit) guessCodes(ctx context.Context) {
	proof, err := v.prove(ctx, v.random)
	if err == nil {
		v.refusedJoin(ctx, proof, fmt.Sprintf("GUESS-%06d", v.random.IntN(1_000_000)), botsCodes)
	}
}

// replayJoin sends one join again and again: it is one number.
func (v *visit) replayJoin(ctx context.Context) {
	if !v.join(ctx) {
		return
	}
	first := v.place
	for range replays {
		if !v.join(ctx) {
			return
		}
		if v.place.lane != first.lane || v.place.number != first.number {
			v.wrong("bot %d has number %d, and by joining again number %d", v.number, first.number, v.place.number)
			return
		}
	}
	v.figures.did(botsReplays)
}

// manyAccounts joins as several customers from one address: each has a number, and none of them has two. What looks like a
// machine is asked for a person.
func (v *visit) manyAccounts(ctx context.Context) {
	numbers := map[int64]bool{}
	for i := range accountsOfOne {
		w := &visit{sale: v.sale, buyer: &buyer{number: v.number + i<<16, random: v.random}, house: v.house, who: caller{from: v.who.from}}
		token, err := v.mint(fmt.Sprintf("%s-%d", v.name, i))
		if err != nil {
			v.wrong("bot %d has no token: %v", v.number, err)
			return
		}
		w.who.token = token
		if !w.join(ctx) {
			return
		}
		numbers[w.place.number] = true
	}
	if len(numbers) != accountsOfOne {
		v.wrong("bot %d has %d numbers with %d accounts", v.number, len(numbers), accountsOfOne)
	}
	v.figures.did(botsAccounts)
}

// forgeTicket claims with queue tickets that were never given, or are another's.
func (v *visit) forgeTicket(ctx context.Context) {
	made := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%048x", v.random.Uint64()))
	for _, ticket := range []string{made, v.spoil(v.anyTicket())} {
		if ticket == "" {
			continue
		}
		q := v.call("claim", http.MethodPost, v.line.path+"/"+ticket+"/claim")
		a, err := v.client.do(ctx, q, v.random)
		v.mustFail(q, &a, err, botsForgedTickets, fault.QueueUnknown, fault.WrongCustomer, fault.Invalid, fault.TooManyRequests)
	}
	if other := v.anyTicket(); other != "" {
		q := v.call("claim", http.MethodPost, v.line.path+"/"+other+"/claim")
		a, err := v.client.do(ctx, q, v.random)
		v.mustFail(q, &a, err, botsStolenTickets, fault.WrongCustomer, fault.QueueUnknown, fault.TooManyRequests)
	}
}

// anyTicket is a queue ticket that somebody left lying around.
func (v *visit) anyTicket() string {
	v.journal.mu.Lock()
	defer v.journal.mu.Unlock()
	for _, t := range v.journal.line.queues {
		if t.buyer != v.number {
			return t.queue
		}
	}
	return ""
}

// spoil changes one letter.
func (v *visit) spoil(text string) string {
	if text == "" {
		return ""
	}
	b := []byte(text)
	i := v.random.IntN(len(b))
	if b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}

// mustFail looks whether something was refused as it must be.
func (v *visit) mustFail(q call, a *answer, err error, what behaviour, codes ...fault.Code) {
	if err != nil {
		return
	}
	for _, code := range codes {
		if a.code() == code {
			v.figures.did(what)
			return
		}
	}
	v.odd(q, a)
}

// botHold asks for seats with an admission token, whatever it is worth.
func (v *visit) botHold(ctx context.Context, pass string) (call, answer, error) {
	q := v.call("bot hold", http.MethodPost, "/v1/holds")
	q.pass, q.key = pass, v.key("bot")
	q.body = httpapi.HoldRequest{Event: v.house.event.ID, Best: &httpapi.BestRequest{Quantity: botSeats}}
	a, err := v.client.do(ctx, q, v.random)
	return q, a, err
}

// forgePass holds without an admission, with one that says so itself ("alg": "none"), and with one signed by nobody.
func (v *visit) forgePass(ctx context.Context) {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	claims := fmt.Sprintf(`{"iss":"onsale","aud":%q,"sub":"cus_0000000000001","sid":"ses_0000000000001","exp":4102444800}`, v.house.event.ID)
	for _, pass := range []string{
		"", part(`{"alg":"none","typ":"onsale-admission+jwt"}`) + "." + part(claims) + ".",
		part(`{"alg":"EdDSA","typ":"onsale-admission+jwt","kid":"1"}`) + "." + part(claims) + "." + part(strings.Repeat("x", 64)),
	} {
		q, a, err := v.botHold(ctx, pass)
		v.mustFail(q, &a, err, botsForgedPasses, fault.NotAdmitted, fault.NotOnSale, fault.SoldOut, fault.TooManyRequests)
	}
}

// gang is what a bot does that has come in: it lends its admission, holds and lets go until it must rest, and comes again after
// it has left.
func (v *visit) gang(ctx context.Context) {
	friend := &visit{sale: v.sale, buyer: &buyer{number: v.number + 1<<20, name: v.name + "-friend", random: v.random}, house: v.house, who: caller{from: v.who.from}}
	token, err := v.mint(friend.name)
	if err != nil {
		v.wrong("bot %d has no token: %v", v.number, err)
		return
	}
	friend.who.token = token
	q, a, err := friend.botHold(ctx, v.admission)
	v.mustFail(q, &a, err, botsLentPasses, fault.NotAdmitted, fault.WrongCustomer)
	v.holdAndLetGo(ctx)
	pass := v.admission
	v.forgets = false
	v.leave(ctx)
	q, a, err = v.botHold(ctx, pass)
	v.mustFail(q, &a, err, botsAfterLeaving, fault.NotAdmitted, fault.AdmissionExpired, fault.HoldRest, fault.SoldOut)
	q = v.call("claim", http.MethodPost, v.line.path+"/"+v.place.queue+"/claim")
	a, err = v.client.do(ctx, q, v.random)
	v.mustFail(q, &a, err, botsTwice, fault.Conflict, fault.NotOnSale)
}

// holdAndLetGo keeps seats from others without paying, until the event's rule bids it rest (C15).
func (v *visit) holdAndLetGo(ctx context.Context) {
	for range letGo {
		q, a, err := v.botHold(ctx, v.admission)
		switch {
		case err != nil:
			return
		case a.code() == fault.HoldRest:
			v.figures.did(botsResting)
			return
		case a.status != http.StatusCreated:
			v.mustFail(q, &a, nil, botsFoundNothing, fault.NoSeatsFound, fault.SeatsTaken, fault.SoldOut, fault.Busy, fault.NotAdmitted, fault.AdmissionExpired, fault.TooManyRequests)
			return
		}
		if h := v.holds(&a, q); h != nil {
			v.release(ctx, h)
		}
	}
	v.wrong("bot %d held and let go %d times, and nobody minded", v.number, letGo)
}
