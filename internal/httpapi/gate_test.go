package httpapi

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/keys"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
)

// forged makes an admission token as ours, but for what change does to it.
func (w *world) forged(in Admission, event, customer string, change func(claims jwt.MapClaims, header map[string]any) any) string {
	w.t.Helper()
	key, err := w.ring.Active(keys.Admission)
	w.must(err)
	now := w.now()
	claims := jwt.MapClaims{
		"iss": "https://tickets.example", "sub": w.customer(customer).Text(id.Customer), "aud": w.event(event),
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "sid": in.Session,
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	token.Header["typ"], token.Header["kid"] = waitingroom.AdmissionTyp, key.KID
	var signer any = key.Private()
	if other := change(claims, token.Header); other != nil {
		signer = other
	}
	switch signer.(type) {
	case []byte:
		token.Method = jwt.SigningMethodHS256
		token.Header["alg"] = "HS256"
	case string:
		token.Method, signer = jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType
		token.Header["alg"] = "none"
	}
	text, err := token.SignedString(signer)
	w.must(err)
	return text
}

// wrongTokens are admission tokens that let nobody in, by what is wrong with them, for ann and the event "line". in is a live
// session of hers there.
func (w *world) wrongTokens(in Admission) map[string]string {
	w.t.Helper()
	_, stranger, err := ed25519.GenerateKey(nil)
	w.must(err)
	public, err := w.ring.Active(keys.Admission)
	w.must(err)
	made := func(change func(c jwt.MapClaims, h map[string]any) any) string {
		return w.forged(in, "line", "ann", change)
	}
	header, rest, _ := strings.Cut(in.Token, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	return map[string]string{
		"none":                "",
		"noise":               "x.y.z",
		"cut":                 in.Token[:len(in.Token)-4],
		"no signature":        header + "." + claims + ".",
		"long":                in.Token + strings.Repeat("A", 5000),
		"a bearer token":      w.token("ann"),
		"a queue id":          w.join("line", "ann").ID,
		"another's signature": made(func(jwt.MapClaims, map[string]any) any { return stranger }),
		"alg none":            made(func(jwt.MapClaims, map[string]any) any { return "none" }),
		"alg HS256 with the public key": made(func(jwt.MapClaims, map[string]any) any {
			return []byte(public.PublicKey())
		}),
		"alg in the header alone": func() string {
			h := map[string]any{"alg": "none", "typ": waitingroom.AdmissionTyp, "kid": public.KID}
			text, err := json.Marshal(h)
			w.must(err)
			return base64.RawURLEncoding.EncodeToString(text) + "." + claims + "." + signature
		}(),
		"another kid":    made(func(_ jwt.MapClaims, h map[string]any) any { h["kid"] = "AAAAAAAA"; return nil }),
		"no kid":         made(func(_ jwt.MapClaims, h map[string]any) any { delete(h, "kid"); return nil }),
		"jwk in it":      made(func(_ jwt.MapClaims, h map[string]any) any { h["jwk"] = map[string]string{"kty": "OKP"}; return nil }),
		"crit":           made(func(_ jwt.MapClaims, h map[string]any) any { h["crit"] = []string{"x"}; return nil }),
		"another typ":    made(func(_ jwt.MapClaims, h map[string]any) any { h["typ"] = "JWT"; return nil }),
		"another issuer": made(func(c jwt.MapClaims, _ map[string]any) any { c["iss"] = "https://other.example"; return nil }),
		"two events": made(func(c jwt.MapClaims, _ map[string]any) any {
			c["aud"] = []string{w.event("line"), w.event("other")}
			return nil
		}),
		"another event": made(func(c jwt.MapClaims, _ map[string]any) any { c["aud"] = w.event("other"); return nil }),
		"another customer": made(func(c jwt.MapClaims, _ map[string]any) any {
			c["sub"] = w.customer("ben").Text(id.Customer)
			return nil
		}),
		"no customer": made(func(c jwt.MapClaims, _ map[string]any) any { delete(c, "sub"); return nil }),
		"no session":  made(func(c jwt.MapClaims, _ map[string]any) any { delete(c, "sid"); return nil }),
		"a session that is not": made(func(c jwt.MapClaims, _ map[string]any) any {
			c["sid"] = id.ID(9).Text(id.Session)
			return nil
		}),
		"expired":             made(func(c jwt.MapClaims, _ map[string]any) any { c["exp"] = w.now().Add(-time.Minute).Unix(); return nil }),
		"without an end":      made(func(c jwt.MapClaims, _ map[string]any) any { delete(c, "exp"); return nil }),
		"of the future":       made(func(c jwt.MapClaims, _ map[string]any) any { c["iat"] = w.now().Add(time.Hour).Unix(); return nil }),
		"not before tomorrow": made(func(c jwt.MapClaims, _ map[string]any) any { c["nbf"] = w.now().Add(time.Hour).Unix(); return nil }),
	}
}

// holdsOf counts the live holds of an event.
func (w *world) holdsOf(event string) (live int) {
	w.t.Helper()
	s, err := w.ledger.Snapshot(w.t.Context(), w.events[event])
	w.must(err)
	for _, seat := range s.Seats {
		if seat.State == ledger.Held {
			live++
		}
	}
	for _, a := range s.Areas {
		live += int(a.Held)
	}
	return live
}

// I11: on no route, with no token but a live one of this customer and event, is anything newly held.
func TestNoWayIn(t *testing.T) {
	w := newWorld(t)
	w.line()
	in := w.admit("line", "ann")
	ben := w.admit("line", "ben")
	elsewhere := w.admit("other", "ann")
	// What she has may be paid for, extended and released whatever her session.
	var held Hold
	w.into(w.holdWith("line", "ann", in.Token, "A-A-1"), 201, &held)
	before := w.holdsOf("line")

	tokens := w.wrongTokens(in)
	tokens["another customer's own"] = ben.Token
	tokens["her own of another event"] = elsewhere.Token
	bodies := map[string]string{
		"seats":    w.seatsBody("line", "A-B-1"),
		"area":     fmt.Sprintf(`{"event_id":%q,"area_id":"FLOOR","quantity":1}`, w.event("line")),
		"best":     w.best("line", `{"quantity":1}`),
		"exchange": fmt.Sprintf(`{"event_id":%q,"seat_ids":["A-B-1"],"exchange_of":{"booking_id":%q}}`, w.event("line"), w.paid("ann", "A-C-1").ID),
	}
	for name, token := range tokens {
		for way, body := range bodies {
			for _, key := range []string{"", strings.ReplaceAll("gate-"+name+way, " ", "-")} {
				a := ask{method: "POST", path: "/v1/holds", customer: "ann", body: body, key: key}
				if token != "" {
					a.header = http.Header{AdmissionHeader: {token}}
				}
				got := w.ask(a)
				want := "not_admitted"
				if name == "expired" {
					want = "admission_expired"
				}
				w.problemOf(got, want)
			}
		}
	}
	twice := ask{method: "POST", path: "/v1/holds", customer: "ann", body: bodies["seats"], header: http.Header{AdmissionHeader: {in.Token, in.Token}}}
	w.problemOf(w.ask(twice), "bad_request")

	// Every other route, asked by an owner of the house with a wrong token, holds nothing either.
	w.roles.set(w.customer("ann"), map[id.ID]identity.Role{w.house: identity.Owner})
	things := w.lineThings(held.ID)
	for _, r := range w.api.routes {
		if slices.Contains([]string{"hold_make", "hold_release", "queue_stream", "queue_turn", "seats_stream", "session_leave", "queue_leave"}, r.ID) ||
			strings.HasPrefix(r.ID, "event_") || strings.HasPrefix(r.ID, "room_") || strings.HasPrefix(r.ID, "sign_") {
			continue
		}
		w.ask(ask{method: r.Method, path: filled(r.Path, things), customer: "ann", key: "walk-" + r.ID, body: cmpBody(r, bodies["seats"]),
			header: http.Header{AdmissionHeader: {tokens["another event"]}, "Content-Type": {"application/json"}}})
	}
	if after := w.holdsOf("line"); after > before {
		t.Errorf("I11: %d places are held now, and %d were", after, before)
	}
	// The control: with her own token the same requests hold.
	for way, body := range bodies {
		if way == "seats" {
			continue
		}
		got := w.ask(ask{method: "POST", path: "/v1/holds", customer: "ann", body: body, header: http.Header{AdmissionHeader: {w.admit("line", "ann").Token}}})
		if got.status != 201 && way != "exchange" { // tickets of another show are not exchanged, and not because of the gate
			t.Errorf("%s with her own token: %d %s", way, got.status, got.body)
		}
	}
}

func cmpBody(r route, hold string) string {
	if r.Body == nil {
		return ""
	}
	if _, ok := r.Body.(HoldRequest); ok {
		return hold
	}
	return "{}"
}

// lineThings are things of ann and the event "line".
func (w *world) lineThings(hold string) map[string]string {
	w.t.Helper()
	things := w.things()
	things["event_id"], things["hold_id"], things["queue_id"] = w.event("line"), hold, w.join("line", "ann").ID
	return things
}

// Without the check in front the ledger still refuses: the gate is a filter, and not the last word (I11). And with neither, the
// hold is made: the negative control.
func TestTheLedgerRefusesWhatTheGateLetsBy(t *testing.T) {
	w := newWorld(t)
	rooms := w.line()
	w.api.Rooms = nil
	w.problemOf(w.holdWith("line", "ann", "", "A-A-1"), "not_admitted")
	_, err := w.catalog.EditEvent(t.Context(), w.events["line"], 0, RoomVerbs["close"])
	w.must(err)
	w.api.Rooms = rooms
	w.problemOf(w.holdWith("line", "ann", "", "A-A-1"), "not_admitted")
}

// A hold that is taken in the last second of a session can be paid for after it (C9).
func TestTheLastSecond(t *testing.T) {
	w := newWorld(t)
	w.line()
	in := w.admit("line", "ann")
	w.pass(in.Expires.Sub(w.now()) - 900*time.Millisecond)
	var h Hold
	w.into(w.holdWith("line", "ann", in.Token, "A-A-1"), 201, &h)
	w.pass(3 * time.Second)
	var b Booking
	w.into(w.book("ann", h.ID, "", "pay"), 201, &b)
	if b.State != "PAID" {
		t.Errorf("%+v", b)
	}
}

// Somebody who waited in a browser claims once they have signed in, and nobody else can with their ticket.
func TestWaitingBeforeSigningIn(t *testing.T) {
	w := newWorld(t)
	w.line()
	join := func(header http.Header, proof string) reply {
		return w.ask(ask{method: "POST", path: w.queue("device", ""), header: header, body: fmt.Sprintf(`{"proof":%q}`, proof)})
	}
	w.problemOf(join(nil, "x"), "proof_required")
	proof, cookies := w.proof("device", "", nil)
	mine := http.Header{"Cookie": {strings.Join(cookies, "; ")}}
	w.problemOf(join(nil, proof), "proof_required") // the cookie belongs to it
	var place, again QueuePlace
	w.into(join(mine, proof), 201, &place)
	w.into(join(mine, proof), 200, &again)
	if again.Number != place.Number {
		t.Errorf("the same browser has %d and %d", place.Number, again.Number)
	}
	w.called("device", place.ID)
	claim := ask{method: "POST", path: w.queue("device", "/"+place.ID+"/claim"), header: mine}
	w.problemOf(w.ask(claim), "sign_in_required")
	claim.customer, claim.header = "ben", nil
	w.problemOf(w.ask(claim), "wrong_customer")
	claim.customer, claim.header = "ann", mine
	var in Admission
	w.into(w.ask(claim), 200, &in)
	if got := w.holdWith("device", "ann", in.Token, "A-A-1"); got.status != 201 {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.problemOf(w.holdWith("device", "ben", in.Token, "A-A-3"), "not_admitted")

	// They give the number up as who they are now, and with it the session.
	leave := ask{method: "DELETE", path: w.queue("device", "/"+place.ID), customer: "ben"}
	w.problemOf(w.ask(leave), "wrong_customer")
	leave.customer, leave.header = "ann", mine
	if got := w.ask(leave); got.status != 204 {
		t.Fatalf("leaving the line: %d %s", got.status, got.body)
	}
	w.problemOf(w.holdWith("device", "ann", in.Token, "A-A-3"), "not_admitted")
	// Where it is not allowed, nobody waits unknown.
	_, cookies = w.proof("line", "", nil)
	w.problemOf(w.ask(ask{method: "POST", path: w.queue("line", ""), header: http.Header{"Cookie": cookies}, body: `{}`}), "sign_in_required")
}
