package demo

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
)

// The doors of the arena, as internal/app has them: the side door leads to one section only.
const (
	mainGate = "main"
	sideGate = "side"
)

// ticket is how its owner sees a ticket; false where it cannot be told.
func (v *visit) ticket(ctx context.Context, number string) (t httpapi.Ticket, ok bool) {
	q := v.call("ticket", http.MethodGet, "/v1/tickets/"+number)
	a, err := v.client.do(ctx, q, v.random)
	if err != nil {
		return t, false
	}
	if a.status != http.StatusOK || a.read(&t) != nil {
		v.odd(q, &a)
		return t, false
	}
	return t, true
}

// transfer passes a ticket on. Its old code opens no door any more; whoever got it signs in, sees it, and is let in.
func (v *visit) transfer(ctx context.Context, b *httpapi.Booking) {
	was, ok := v.ticket(ctx, b.Tickets[0].ID)
	if !ok {
		return
	}
	friend := &visit{
		sale: v.sale, house: v.house, who: caller{from: address(v.Buyers + v.number)},
		buyer: &buyer{number: v.Buyers + v.number, name: v.name + "-friend", random: fork(v.random)},
	}
	email := friend.email("friend")
	v.secrets.address(email)
	v.journal.asks(v.number, "transfer", []string{was.ID})
	q := v.call("transfer", http.MethodPost, "/v1/tickets/"+was.ID+"/transfer")
	q.key, q.body, q.drop = v.key("transfer"), httpapi.TransferRequest{Email: email}, v.random.IntN(2) == 0
	var passed, again httpapi.Transferred
	for _, into := range []*httpapi.Transferred{&passed, &again} {
		a, err := v.client.do(ctx, q, v.random)
		if err != nil {
			return
		}
		if a.status != http.StatusCreated || a.read(into) != nil {
			v.odd(q, &a)
			return
		}
		if err := v.journal.passed(v.number, friend.number, b.ID, into); err != nil {
			v.wrong("buyer %d: a transfer: %v", v.number, err)
			return
		}
		q.drop = false
	}
	if passed != again {
		v.wrong("%s was passed on as %s and as %s", was.ID, passed.Ticket, again.Ticket)
	}
	v.figures.did(transfers)
	if now, ok := v.ticket(ctx, was.ID); ok && (now.State != "VOID" || now.QR != "") {
		v.wrong("%s was passed on and is %s", was.ID, now.State)
	}
	v.hidden(ctx, passed.Ticket)
	v.refused(ctx, was.QR, fault.TicketVoid, oldCodes)
	friend.receive(ctx, email, passed.Ticket)
}

// hidden looks whether a ticket is shown to nobody but its owner.
func (v *visit) hidden(ctx context.Context, number string) {
	q := v.call("ticket", http.MethodGet, "/v1/tickets/"+number)
	if a, err := v.client.do(ctx, q, v.random); err == nil && a.code() != fault.WrongCustomer {
		v.odd(q, &a)
	}
}

// receive is what somebody does who was sent a ticket.
func (v *visit) receive(ctx context.Context, email, number string) {
	if !v.signIn(ctx, email) {
		return
	}
	q := v.call("tickets", http.MethodGet, "/v1/tickets")
	a, err := v.client.do(ctx, q, v.random)
	if err != nil {
		return
	}
	var list httpapi.TicketList
	if a.status != http.StatusOK || a.read(&list) != nil || !slices.ContainsFunc(list.Tickets, func(t httpapi.Ticket) bool { return t.ID == number }) {
		v.wrong("%s was passed on to somebody who does not see it", number)
		return
	}
	t, ok := v.ticket(ctx, number)
	if !ok {
		return
	}
	v.figures.did(received)
	v.scan(ctx, &t, "door-a", letIn)
}

// comeToTheDoor shows tickets at a door.
func (v *visit) comeToTheDoor(ctx context.Context, b *httpapi.Booking) {
	t, ok := v.ticket(ctx, b.Tickets[0].ID)
	if !ok || t.State != "VALID" {
		return
	}
	if v.after == afterOffline {
		v.offline(ctx, &t, false)
		return
	}
	if !v.scan(ctx, &t, "door-a", letIn) {
		return
	}
	switch v.after {
	case afterUndo:
		v.undo(ctx, &t)
	case afterConflict:
		v.offline(ctx, &t, true)
	default:
		v.refused(ctx, t.QR, fault.TicketUsed, scansTwice)
	}
}

func (v *visit) scanCall(body httpapi.CheckInRequest) call {
	q := v.call("check-in", http.MethodPost, "/v1/organizer/events/"+v.house.event.ID+"/checkins")
	q.who, q.body = v.staff.door, body
	return q
}

// scan holds a code before a door: first before the side door, which may not be the right one. True where the ticket is
// let in.
func (v *visit) scan(ctx context.Context, t *httpapi.Ticket, device string, what behaviour) bool {
	v.journal.asksEntry(v.number, t.ID)
	body := httpapi.CheckInRequest{Code: t.QR, Device: device}
	if !v.isNamed() {
		body.Gate = sideGate
	}
	for {
		q := v.scanCall(body)
		a, err := v.client.do(ctx, q, v.random)
		switch {
		case err != nil:
			return false
		case a.status == http.StatusCreated:
			var in httpapi.CheckIn
			if err := a.read(&in); err != nil || in.Ticket != t.ID || in.State != "USED" {
				v.wrong("%s was let in as %s, which is %s: %v", t.ID, in.Ticket, in.State, err)
				return false
			}
			if err := v.journal.entered(v.number, &in); err != nil {
				v.wrong("buyer %d is let in: %v", v.number, err)
			}
			v.figures.did(what)
			return true
		case a.code() == fault.WrongGate && body.Gate == sideGate:
			v.figures.did(wrongGates)
			body.Gate = mainGate
		case a.code() == fault.TicketUsed: // the answer was lost, and the server away for longer than a repeat is one
			v.figures.did(entriesLost)
			return true
		default:
			v.odd(q, &a)
			return false
		}
	}
}

// isNamed says whether it is the event for which attendees are named; it has no gates.
func (v *visit) isNamed() bool { return v.house.event.Documents }

// refused shows a code that must not open a door.
func (v *visit) refused(ctx context.Context, code string, why fault.Code, what behaviour) {
	q := v.scanCall(httpapi.CheckInRequest{Code: code, Device: "door-b"})
	switch a, err := v.client.do(ctx, q, v.random); {
	case err != nil:
	case a.code() == why:
		v.figures.did(what)
	default:
		v.odd(q, &a)
	}
}

// undo takes the check-in back, by the owner; then the ticket lets its holder in again.
func (v *visit) undo(ctx context.Context, t *httpapi.Ticket) {
	q := v.call("check-in undo", http.MethodPost, "/v1/organizer/tickets/"+t.ID+"/undo-checkin")
	q.who, q.body = v.staff.owner, httpapi.UndoRequest{Reason: "went out to the car"}
	v.journal.asksUndo(v.number, t.ID)
	a, err := v.client.do(ctx, q, v.random)
	if err != nil {
		return
	}
	if a.status != http.StatusOK {
		v.odd(q, &a)
		return
	}
	v.journal.undone(v.number, t.ID)
	v.figures.did(undone)
	v.scan(ctx, t, "door-c", letInAgain)
}

// tell sends what a device did without a network, again where the server could not write it down just then.
func (v *visit) tell(ctx context.Context, q call) (a answer, done httpapi.SyncAnswer, err error) {
	for end := time.Now().Add(callPatience); ; {
		if a, err = v.client.do(ctx, q, v.random); err != nil {
			return a, done, err
		}
		done = httpapi.SyncAnswer{}
		if a.status != http.StatusOK || a.read(&done) != nil || len(done.Outcomes) != 1 || done.Outcomes[0].Result != "again" || time.Now().After(end) {
			return a, done, nil
		}
		if !sleep(ctx, 500*time.Millisecond) {
			return a, done, ctx.Err()
		}
	}
}

// offline is a door without a network: its device has the list, lets a ticket in, and tells later, twice. Where the ticket
// was used at another door in the meantime, that is a conflict.
func (v *visit) offline(ctx context.Context, t *httpapi.Ticket, used bool) {
	device := fmt.Sprintf("offline-%d", v.number)
	if !v.onList(ctx, t.ID) {
		return
	}
	v.journal.asksEntry(v.number, t.ID)
	q := v.call("door sync", http.MethodPost, "/v1/organizer/events/"+v.house.event.ID+"/checkins/sync")
	fact := httpapi.SyncFact{Ticket: t.ID, At: time.Now().UTC().Truncate(time.Millisecond), Gate: mainGate}
	q.who, q.body = v.staff.door, httpapi.SyncRequest{Device: device, Facts: []httpapi.SyncFact{fact}}
	want := "kept"
	if used {
		want = "conflict"
	}
	for n := range 2 {
		a, done, err := v.tell(ctx, q)
		if err != nil {
			return
		}
		if a.status != http.StatusOK || len(done.Outcomes) != 1 || done.Outcomes[0].Result != want {
			v.wrong("what a door did without a network became, at telling %d, %d %s, and %q should be", n+1, a.status, a.body, want)
			return
		}
		v.journal.synced(v.number, t.ID, device, &fact, used)
	}
	if used {
		v.figures.did(conflictsAtDoor)
	} else {
		v.figures.did(letInOffline)
	}
}

// onList loads the list of a door and says whether a ticket is on it.
func (v *visit) onList(ctx context.Context, number string) bool {
	found, cursor := false, ""
	for {
		query := url.Values{"gate": {mainGate}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		q := v.call("door list", http.MethodGet, "/v1/organizer/events/"+v.house.event.ID+"/checkins/offline?"+query.Encode())
		q.who = v.staff.door
		a, err := v.client.do(ctx, q, v.random)
		if err != nil {
			return false
		}
		var list httpapi.DoorList
		if a.status != http.StatusOK || a.read(&list) != nil {
			v.odd(q, &a)
			return false
		}
		found = found || slices.ContainsFunc(list.Tickets, func(t httpapi.DoorTicket) bool { return t.Ticket == number })
		if cursor = list.Next; cursor == "" {
			break
		}
	}
	if !found {
		v.wrong("%s is not on the door's list", number)
	}
	return found
}
