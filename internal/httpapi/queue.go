package httpapi

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/guard/picture"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
	"onsale/internal/waitingroom"
)

// Rooms are the waiting rooms; waitingroom.Service is them.
type Rooms interface {
	Join(ctx context.Context, r waitingroom.JoinRequest) (waitingroom.Place, error)
	Place(queueID string) (waitingroom.Standing, error)
	ClaimFor(ctx context.Context, queueID string, holder, customer id.ID) (waitingroom.Admission, error)
	LeaveQueue(ctx context.Context, queueID string, customer id.ID) error
	Leave(ctx context.Context, session, customer id.ID) error
	Admit(ctx context.Context, token string, customer, event id.ID) (session id.ID, err error)
	Status(ctx context.Context, event id.ID) (*waitingroom.StatusPage, error)
	Subscribe(ctx context.Context, event id.ID, queueID string) (*waitingroom.Subscription, error)
	SetDrawValue(ctx context.Context, event id.ID, value string) error
	WriteList(ctx context.Context, event id.ID, to io.Writer) error
	View(ctx context.Context, event id.ID) (waitingroom.RoomView, error)
	Changed(event id.ID)
}

// Limits of the routes of waiting rooms.
const (
	queueIDBytesMax = 512
	listReadersMax  = 4 // lists of joins sent at once by this node: one may have a hundred megabytes
	listTakesMax    = 10 * time.Minute
	deviceFor       = guard.DeviceLife
)

// AdmissionHeader is where a hold brings its admission token.
const AdmissionHeader = "X-Admission-Token"

// A QueueRequest asks for a number in an event's line.
type QueueRequest struct {
	Lane   string              `json:"lane,omitempty" doc:"its key; the one for everybody where it is missing"`
	Code   string              `json:"code,omitempty" doc:"of a presale"`
	Proof  string              `json:"proof,omitempty" doc:"of work, in the format of ALTCHA: the answer to a challenge"`
	Pass   string              `json:"pass,omitempty" doc:"that an earlier join gave, whose person check was passed"`
	Person *guard.PersonAnswer `json:"person,omitempty" doc:"where the challenge asked for a person check"`
}

// A QueuePlace is a number in a line.
type QueuePlace struct {
	ID        string `json:"queue_id" doc:"signed; good for asking for the position, and for its customer for claiming"`
	Event     string `json:"event_id"`
	Lane      string `json:"lane"`
	Number    int64  `json:"number" doc:"from 0"`
	Drawn     bool   `json:"drawn" doc:"the position is drawn when the sale opens; else it is the number"`
	Entry     string `json:"entry" doc:"your line in the list of joins that is published when the sale opens"`
	Status    string `json:"status_url" doc:"the line as it stands, the same for everybody"`
	Standing  string `json:"position_url"`
	Streaming string `json:"stream_url" doc:"both, as they change"`
	Pass      string `json:"pass,omitempty"`
}

// A QueuePosition is how a number stands.
type QueuePosition struct {
	Event    string `json:"event_id"`
	Lane     string `json:"lane"`
	Number   int64  `json:"number"`
	Drawn    bool   `json:"drawn"`
	Position *int64 `json:"position,omitempty" doc:"0 goes first; missing before the draw"`
	Ahead    *int64 `json:"ahead,omitempty" doc:"people who are called before; missing before the draw"`
	Called   bool   `json:"called" doc:"claim now"`
	TurnMS   int64  `json:"turn_ms,omitempty" doc:"left of the turn; over: claim all the same, late ones enter where there is room"`
	Outlook  string `json:"outlook" enum:"unknown,likely,possible,unlikely,sold_out"`
	PollMS   int64  `json:"poll_ms" doc:"ask again after so long, and a little more by chance"`
}

// An Admission is the right to hold seats for a while.
type Admission struct {
	Token   string    `json:"admission_token" doc:"send it with each hold in the header X-Admission-Token"`
	Session string    `json:"session_id"`
	Expires time.Time `json:"expires_at"`
}

const queuePath = "/v1/events/{event_id}/queue"

func (a *api) queueRoutes() []route {
	const tag = "Waiting room"
	none := []fault.Code{fault.EventUnknown, fault.Conflict}
	placed := []fault.Code{fault.EventUnknown, fault.Conflict, fault.QueueUnknown}
	return []route{
		{Method: "POST", Path: queuePath, ID: "queue_join", Who: visitor, Class: guard.Queue, Tag: tag, Summary: "Join the line",
			Notes: "The same customer gets the same number, from any tab or device: 201 for a new one, 200 for the one that you have. Bring the answer to a challenge. " +
				"Where the event's join_requires is verified you must be signed in; where it is device, the browser's cookie is enough, and you sign in before you claim.",
			Body: QueueRequest{}, Answer: QueuePlace{}, Status: []int{201, 200},
			Faults: []fault.Code{fault.EventUnknown, fault.Conflict, fault.NotOnSale, fault.Invalid, fault.SignInRequired, fault.ProofRequired, fault.PersonRequired, fault.Blocked,
				fault.PresaleCodeWrong, fault.CodeUsedUp, fault.AlreadyInLine}, handle: a.queueJoin},
		{Method: "GET", Path: queuePath, ID: "queue_status", Who: public, Class: guard.Free, Tag: tag, Summary: "The line as it stands",
			Notes: "The same for everybody, and cacheable for a second: phase, opening, how many wait, how far each lane was called, what is left at which price, when to ask again. " +
				"Whoever knows their position needs nothing else.",
			AnswerType: "application/json", Faults: none, handle: a.queueStatus},
		{Method: "GET", Path: queuePath + "/stream", ID: "queue_stream", Who: public, Tag: tag, Summary: "The line, as it changes",
			Notes: "Server-sent events: status.", AnswerType: "text/event-stream", Faults: none, Takes: untilClosed, handle: a.queueStream},
		{Method: "GET", Path: queuePath + "/challenge", ID: "queue_challenge", Who: visitor, Class: guard.Check, Tag: tag, Summary: "What to bring with a join",
			Notes: "A proof of work in the format of ALTCHA, and perhaps a person check. It is for you (or your browser) and this event alone, for ten minutes.", Answer: guard.Ask{},
			Faults: none, handle: a.queueChallenge},
		{Method: "GET", Path: "/v1/person-check/picture", ID: "person_picture", Who: public, Class: guard.Check, Tag: tag, Summary: "The picture of a person check",
			Query: []parameter{{"token", "of the check", "string"}}, AnswerType: "image/png", Faults: []fault.Code{fault.NotFound}, handle: a.personPicture},
		{Method: "GET", Path: "/v1/person-check/sound", ID: "person_sound", Who: public, Class: guard.Check, Tag: tag, Summary: "The same to be heard",
			Query: []parameter{{"token", "of the check", "string"}}, AnswerType: "audio/wav", Faults: []fault.Code{fault.NotFound}, handle: a.personSound},
		{Method: "GET", Path: queuePath + "/{queue_id}", ID: "queue_position", Who: public, Class: guard.Free, Tag: tag, Summary: "How a number stands", Answer: QueuePosition{},
			Faults: placed, handle: a.queuePosition},
		{Method: "GET", Path: queuePath + "/{queue_id}/stream", ID: "queue_turn", Who: public, Tag: tag, Summary: "The line and your turn, as they change",
			Notes: "Server-sent events: status, and turn when it comes.", AnswerType: "text/event-stream", Faults: placed, Takes: untilClosed, handle: a.queueTurn},
		{Method: "POST", Path: queuePath + "/{queue_id}/claim", ID: "queue_claim", Who: signedIn, Class: guard.Queue, Tag: tag, Summary: "Enter, when it is your turn",
			Notes:  "Twice is harmless: the same session. 503 next_in: you are called, and enter in a moment.",
			Answer: Admission{}, Faults: append(placed, fault.WrongCustomer, fault.NotAdmitted, fault.NotOnSale, fault.Paused, fault.NextIn, fault.Blocked, fault.OutcomeUnknown), handle: a.queueClaim},
		{Method: "DELETE", Path: queuePath + "/{queue_id}", ID: "queue_leave", Who: visitor, Class: guard.Queue, Tag: tag, Summary: "Give your number up",
			Notes: "Joining again later is at the end.", Status: []int{204}, Faults: append(placed, fault.SignInRequired, fault.WrongCustomer), handle: a.queueLeave},
		{Method: "DELETE", Path: "/v1/events/{event_id}/session", ID: "session_leave", Who: signedIn, Class: guard.Queue, Tag: tag, Summary: "Leave, and let the next one in",
			Notes: "Name your session by the header X-Admission-Token. What you hold stays yours, and can be paid for.", Status: []int{204},
			Faults: []fault.Code{fault.EventUnknown, fault.Conflict, fault.NotAdmitted, fault.AdmissionExpired, fault.OutcomeUnknown}, handle: a.sessionLeave},
		{Method: "GET", Path: "/v1/events/{event_id}/draw", ID: "draw_get", Who: public, Tag: tag, Summary: "What the order of those who came early follows from",
			Notes: "Published step by step, so that anybody can recompute every position: see docs/FAIRNESS.md.", Answer: waitingroom.DrawDoc{}, Faults: none, handle: a.drawGet},
		{Method: "GET", Path: "/v1/events/{event_id}/draw/list", ID: "draw_list", Who: public, Tag: tag, Summary: "The list of joins that were drawn",
			Notes: "Text, a line each: lane, number, entry. Its SHA-256 is the draw's list_hash.", AnswerType: "text/plain", Faults: none,
			Takes: listTakesMax, Sending: listTakesMax, handle: a.drawList},
	}
}

// roomOf is the event that the path names, which must have a waiting room.
func (a *api) roomOf(r *request) (*catalog.Event, error) {
	e, err := a.eventOf(r)
	if err != nil {
		return nil, err
	}
	if a.Rooms == nil || !e.Room.Active() {
		return nil, errNoRoom
	}
	return e, nil
}

var errNoRoom = fault.New(fault.Conflict, "the event has no waiting room: nobody waits for it")

// visit is who comes, for the gate. A browser without a device cookie gets one.
func (a *api) visit(w http.ResponseWriter, r *request, event id.ID, move guard.Move) guard.Visit {
	v := guard.Visit{Event: event, Customer: r.person.Customer, Address: a.address(r), Agent: agent(r), Move: move}
	if a.Gate == nil {
		return v
	}
	now := a.Now()
	mark, known := a.Gate.Devices.Read(now, a.cookie(r.Request, guard.DeviceCookie))
	switch {
	case known && !mark.Renew(now):
		v.Mark = mark
	case known:
		if w == nil {
			v.Mark = mark
			break
		}
		v.Mark = guard.DeviceMark{Device: mark.Device, Since: mark.Since, Issued: now}
		a.setCookie(w, guard.DeviceCookie, a.Gate.Devices.Cookie(v.Mark), deviceFor)
	case w != nil:
		fresh, cookie := a.Gate.Devices.New(now)
		a.setCookie(w, guard.DeviceCookie, cookie, deviceFor)
		r.device = fresh
	}
	return v
}

// agent is what a browser says it is.
func agent(r *request) string {
	text := r.Header.Get("User-Agent")
	if hint := r.Header.Get("Sec-CH-UA"); hint != "" {
		text += " " + hint
	}
	return text
}

// waiting is who waits: the customer, or where nobody is signed in and the event allows it the browser.
func (a *api) waiting(e *catalog.Event, v guard.Visit) (id.ID, error) {
	if v.Customer != 0 {
		return v.Customer, nil
	}
	if e.Room.Filled().JoinRequires != catalog.JoinDevice {
		return 0, fault.New(fault.SignInRequired, "sign in first: one person has one place in the line")
	}
	if v.Mark.Device.IsZero() {
		return 0, fault.New(fault.ProofRequired, "ask for a challenge first, and send the cookie that comes with it")
	}
	return deviceCustomer(v.Mark.Device), nil
}

// deviceCustomer is the number by which a browser waits whose person has not signed in. No customer has one like it: theirs are
// made of the time since 2025, and this bit of it comes in 2059.
func deviceCustomer(d guard.Device) id.ID {
	var n uint64
	for _, b := range d[:8] { // the device is random
		n = n<<8 | uint64(b)
	}
	return id.ID(1<<62 | n>>2)
}

func (a *api) queueChallenge(w http.ResponseWriter, r *request) error {
	e, err := a.roomOf(r)
	if err != nil {
		return err
	}
	v := a.visit(w, r, e.ID, guard.Joins)
	if v.Mark.Device.IsZero() {
		v.Mark = r.device // the answer comes back with the new cookie
	}
	w.Header().Set("Cache-Control", "no-store")
	if a.Gate == nil {
		return write(w, http.StatusOK, guard.Ask{})
	}
	return write(w, http.StatusOK, a.Gate.Ask(a.Now(), v))
}

func (a *api) queueJoin(w http.ResponseWriter, r *request) error {
	if _, err := a.eventOf(r); err != nil {
		return err
	}
	var body QueueRequest
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	e, err := a.roomOf(r)
	if err != nil {
		return err
	}
	v := a.visit(w, r, e.ID, guard.Joins)
	customer, err := a.waiting(e, v)
	if err != nil {
		return err
	}
	lane, err := laneOf(e, body.Lane)
	if err != nil {
		return err
	}
	var passed guard.Passed
	if a.Gate != nil {
		passed, err = a.Gate.Join(r.Context(), a.Now(), e.Organizer, v, guard.Brought{Proof: body.Proof, Pass: body.Pass, Person: body.Person})
		if err != nil {
			return err
		}
	}
	if err := a.mayJoin(r, e, lane, body.Code); err != nil {
		return err
	}
	place, err := a.Rooms.Join(r.Context(), waitingroom.JoinRequest{Event: e.ID, Customer: customer, Lane: lane.Key})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if place.New {
		status = http.StatusCreated
	}
	base := "/v1/events/" + e.ID.Text(id.Event) + "/queue"
	shown := QueuePlace{
		ID: place.QueueID, Event: e.ID.Text(id.Event), Lane: place.Lane, Number: place.Number, Drawn: place.Drawn, Entry: place.Entry, Pass: passed.Pass,
		Status: base, Standing: base + "/" + place.QueueID, Streaming: base + "/" + place.QueueID + "/stream",
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", shown.Standing)
	return write(w, status, shown)
}

// laneOf is the lane that a join names; without one, the first that is for everybody.
func laneOf(e *catalog.Event, key string) (catalog.Lane, error) {
	room := e.Room.Filled()
	if key != "" {
		if lane, ok := room.Lane(key); ok {
			return lane, nil
		}
		return catalog.Lane{}, &fault.Error{Code: fault.Invalid, Field: "lane", Detail: "the event has no lane " + quoted(key)}
	}
	for _, lane := range room.Lanes {
		if lane.Access == catalog.LaneOpen {
			return lane, nil
		}
	}
	return catalog.Lane{}, &fault.Error{Code: fault.Invalid, Field: "lane", Detail: "no lane is for everybody: name yours"}
}

// mayJoin lets somebody into a lane that is not for everybody, and counts the use of what lets them in. It is done again
// where a join is sent again: the ledger counts each customer once.
func (a *api) mayJoin(r *request, e *catalog.Event, lane catalog.Lane, code string) error {
	if lane.Access == catalog.LaneOpen {
		return nil
	}
	if r.person.Customer == 0 {
		return fault.New(fault.SignInRequired, "sign in first: this lane is for those who have a code or are on a list")
	}
	if a.Presale == nil {
		return fault.New(fault.PresaleCodeWrong, "")
	}
	take := ledger.TakeCode{Event: e.ID, Lane: lane.Key, Customer: r.person.Customer}
	if lane.Access == catalog.LaneCodes {
		allowed, err := a.Presale.Code(r.Context(), e.ID, lane.Key, code)
		if err != nil {
			return inField(err, "code")
		}
		take.Code, take.Max = allowed.Code, allowed.Max
	} else {
		addresses, err := a.addresses(r)
		if err != nil {
			return err
		}
		allowed, err := a.Presale.Member(r.Context(), e.ID, lane.Key, addresses)
		if err != nil {
			return err
		}
		take.Code, take.Max = allowed.Code, allowed.Max
	}
	result, err := a.Commands.Do(r.Context(), take)
	if err != nil {
		return err
	}
	if result.Fault != nil {
		return result.Fault
	}
	return nil
}

// inField says of which field a fault is.
func inField(err error, field string) error {
	f := fault.Of(err)
	if f == nil || f.Field != "" || f.Code == fault.Internal {
		return err
	}
	named := *f
	named.Field = field
	return &named
}

// addresses are the verified addresses of who asks.
func (a *api) addresses(r *request) ([]identity.Email, error) {
	if a.People == nil {
		return nil, nil
	}
	p, err := a.People.Profile(r.Context(), r.person.Customer)
	return p.Emails, err
}

// queueStatus is the slow way to the status: hotStatus is the usual one.
func (a *api) queueStatus(w http.ResponseWriter, r *request) error {
	e, err := a.roomOf(r)
	if err != nil {
		return err
	}
	page, err := a.Rooms.Status(r.Context(), e.ID)
	if err != nil {
		return err
	}
	return shared(w, r, sharedBody{kind: "application/json", etag: page.ETag, cache: statusCache, body: page.JSON})
}

// standing is how the number in the path stands, whose event must be the path's.
func (a *api) standing(r *request) (waitingroom.Standing, string, error) {
	e, err := a.roomOf(r)
	if err != nil {
		return waitingroom.Standing{}, "", err
	}
	queueID := r.PathValue("queue_id")
	if len(queueID) > queueIDBytesMax {
		return waitingroom.Standing{}, "", fault.New(fault.QueueUnknown, "")
	}
	s, err := a.Rooms.Place(queueID)
	if err == nil && s.Event != e.ID {
		err = fault.New(fault.QueueUnknown, "")
	}
	return s, queueID, err
}

// queuePosition is the slow way to a position: hotPosition is the usual one.
func (a *api) queuePosition(w http.ResponseWriter, r *request) error {
	s, _, err := a.standing(r)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	send(w, http.StatusOK, "application/json", appendPosition(nil, &s))
	return nil
}

// appendPosition writes a QueuePosition, which is asked for too often for reflection.
func appendPosition(b []byte, s *waitingroom.Standing) []byte {
	b = append(b, `{"event_id":"`...)
	b = append(b, s.Event.Text(id.Event)...)
	b = append(b, `","lane":`...)
	b = strconv.AppendQuote(b, s.Lane) // a lane's key has nothing that JSON would quote otherwise
	b = strconv.AppendInt(append(b, `,"number":`...), s.Number, 10)
	b = strconv.AppendBool(append(b, `,"drawn":`...), s.Drawn)
	if s.Known {
		b = strconv.AppendInt(append(b, `,"position":`...), s.Position, 10)
		b = strconv.AppendInt(append(b, `,"ahead":`...), s.Ahead, 10)
	}
	b = strconv.AppendBool(append(b, `,"called":`...), s.Called)
	if s.TurnMS != 0 {
		b = strconv.AppendInt(append(b, `,"turn_ms":`...), s.TurnMS, 10)
	}
	b = append(b, `,"outlook":"`...)
	b = append(b, s.Outlook...)
	b = strconv.AppendInt(append(b, `","poll_ms":`...), s.Poll.Milliseconds(), 10)
	return append(b, '}', '\n')
}

func (a *api) queueStream(w http.ResponseWriter, r *request) error {
	e, err := a.roomOf(r)
	if err != nil {
		return err
	}
	return a.streamRoom(w, r, e.ID, "")
}

func (a *api) queueTurn(w http.ResponseWriter, r *request) error {
	s, queueID, err := a.standing(r)
	if err != nil {
		return err
	}
	return a.streamRoom(w, r, s.Event, queueID)
}

func (a *api) streamRoom(w http.ResponseWriter, r *request, event id.ID, queueID string) error {
	sub, err := a.Rooms.Subscribe(r.Context(), event, queueID)
	if err != nil {
		return err
	}
	defer sub.Close()
	beginStream(w)
	if r.Method != http.MethodHead {
		stream(r.Context(), w, sub.Frames())
	}
	return nil
}

func (a *api) queueClaim(w http.ResponseWriter, r *request) error {
	s, queueID, err := a.standing(r)
	if err != nil {
		return err
	}
	v := a.visit(nil, r, s.Event, guard.Joins)
	if a.Gate != nil {
		e, err := a.Catalog.Event(r.Context(), s.Event)
		if err != nil {
			return err
		}
		if a.Gate.Blocked(a.Now(), e.Organizer, v) {
			return fault.New(fault.Blocked, "")
		}
	}
	admission, err := a.Rooms.ClaimFor(r.Context(), queueID, holder(&s, v, r.customer), r.customer)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return write(w, http.StatusOK, Admission{Token: admission.Token, Session: admission.Session.Text(id.Session), Expires: admission.Expires.Std()})
}

// holder is who a number is to be asked for as: the customer, or their browser where it waited before they signed in.
func holder(s *waitingroom.Standing, v guard.Visit, customer id.ID) id.ID {
	if device := v.Mark.Device; !device.IsZero() && s.Customer == deviceCustomer(device) {
		return s.Customer
	}
	return customer
}

func (a *api) queueLeave(w http.ResponseWriter, r *request) error {
	s, queueID, err := a.standing(r)
	if err != nil {
		return err
	}
	e, err := a.eventOf(r)
	if err != nil {
		return err
	}
	v := a.visit(nil, r, s.Event, guard.Joins)
	customer, err := a.waiting(e, v)
	if err != nil {
		return err
	}
	if err := a.Rooms.LeaveQueue(r.Context(), queueID, holder(&s, v, customer)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *api) sessionLeave(w http.ResponseWriter, r *request) error {
	e, err := a.roomOf(r)
	if err != nil {
		return err
	}
	session, err := a.Rooms.Admit(r.Context(), r.Header.Get(AdmissionHeader), r.customer, e.ID)
	if err != nil {
		return err
	}
	if err := a.Rooms.Leave(r.Context(), session, r.customer); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// admitted is the session by which a new hold is made, 0 where the event has no waiting room (I11). It is a filter: the ledger
// looks again in the hold's own transaction, also where this node has not heard yet that there is a room.
func (a *api) admitted(r *request, e *catalog.Event) (id.ID, error) {
	if a.Rooms == nil || !e.Room.Active() {
		return 0, nil
	}
	values := r.Header.Values(AdmissionHeader)
	if len(values) > 1 {
		return 0, fault.New(fault.BadRequest, "send one header X-Admission-Token")
	}
	token := ""
	if len(values) == 1 {
		token = values[0]
	}
	return a.Rooms.Admit(r.Context(), token, r.customer, e.ID)
}

func (a *api) drawGet(w http.ResponseWriter, r *request) error {
	e, room, err := a.room(r)
	if err != nil {
		return err
	}
	doc, err := waitingroom.NewDrawDoc(room)
	if err != nil {
		return err
	}
	if room.Frozen != 0 {
		doc.ListURL = "/v1/events/" + e.ID.Text(id.Event) + "/draw/list"
	}
	w.Header().Set("Cache-Control", statusCache)
	return write(w, http.StatusOK, doc)
}

// room is the room of the event in the path, as this node has it; before people may join there is none.
func (a *api) room(r *request) (*catalog.Event, *ledger.Room, error) {
	e, err := a.roomOf(r)
	if err != nil {
		return nil, nil, err
	}
	view, err := a.Rooms.View(r.Context(), e.ID)
	if err == nil && view.Room.Event == 0 {
		err = fault.New(fault.Conflict, "the line opens at %s; then the first part is published", e.JoinsOpenAt().Format(time.RFC3339))
	}
	return e, &view.Room, err
}

func (a *api) drawList(w http.ResponseWriter, r *request) error {
	e, room, err := a.room(r)
	if err != nil {
		return err
	}
	if room.Frozen == 0 {
		return fault.New(fault.Conflict, "the list is published when the sale opens")
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=3600")
	h.Set("ETag", `"`+room.ListHash+`"`)
	if matches(r.Header.Values("If-None-Match"), h.Get("ETag")) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	select {
	case a.listReaders <- struct{}{}:
		defer func() { <-a.listReaders }()
	default:
		h.Del("ETag")
		return &fault.Error{Code: fault.Busy, Detail: "the list is being sent to others", RetryAfter: 5 * time.Second}
	}
	h.Set("Content-Type", plainText)
	h.Set("Content-Disposition", `attachment; filename="joins-`+e.ID.Text(id.Event)+`.txt"`)
	if r.Method == http.MethodHead {
		return nil
	}
	return a.Rooms.WriteList(r.Context(), e.ID, w)
}

func (a *api) personPicture(w http.ResponseWriter, r *request) error {
	return a.personTask(w, r, "image/png", (*picture.Check).Picture)
}

func (a *api) personSound(w http.ResponseWriter, r *request) error {
	return a.personTask(w, r, "audio/wav", (*picture.Check).Sound)
}

func (a *api) personTask(w http.ResponseWriter, r *request, kind string, draw func(*picture.Check, time.Time, string) ([]byte, error)) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	if a.Pictures == nil {
		return fault.New(fault.NotFound, "")
	}
	task, err := draw(a.Pictures, a.Now(), asked.Get("token"))
	if err != nil {
		return fault.New(fault.NotFound, "this check has run out: ask for another challenge")
	}
	w.Header().Set("Cache-Control", "no-store")
	send(w, http.StatusOK, kind, task)
	return nil
}
