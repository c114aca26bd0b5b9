package waitingroom

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The phases that the public status knows, besides those of ledger.RoomPhase.
const (
	phasePaused  = "paused"
	phaseSoldOut = "sold_out" // nothing is left and nothing can come back (C11)
	phaseEnded   = "ended"
)

// A StatusDoc is the public status of a room: what everybody who waits needs to know, and the same for all.
type StatusDoc struct {
	EventID      string        `json:"event_id"`
	Mode         string        `json:"mode" enum:"auto,on"`
	Phase        string        `json:"phase" enum:"closed,waiting,drawing,open,paused,sold_out,ended"`
	Now          time.Time     `json:"now" doc:"By the clock that decides."`
	JoinsOpenAt  time.Time     `json:"joins_open_at"`
	OpensAt      time.Time     `json:"opens_at"`
	OpeningOrder string        `json:"opening_order" enum:"draw,arrival"`
	Draw         StatusDraw    `json:"draw"`
	Lanes        []StatusLane  `json:"lanes"`
	RatePerS     int           `json:"rate_per_s" doc:"People who may enter in one second."`
	ActiveMax    int           `json:"active_max" doc:"People who may be inside at once."`
	Inside       int           `json:"inside"`
	TurnMS       int64         `json:"turn_ms" doc:"How long a turn lasts."`
	Left         *StatusLeft   `json:"left,omitempty" doc:"What is left; absent where it is not known at the moment."`
	Outlook      StatusOutlook `json:"outlook"`
	Poll         [][2]int64    `json:"poll" doc:"From this many people ahead on, ask again after so many seconds."`
	PollEarlyS   int64         `json:"poll_early_s" doc:"While the draw has not been, ask again after so many seconds."`
}

// A StatusDraw is what is published of the draw.
type StatusDraw struct {
	State      string `json:"state" enum:"none,committed,provable"`
	Commitment string `json:"commitment,omitempty"`
	Source     string `json:"source,omitempty"`
	N          int64  `json:"n"`
	ListHash   string `json:"list_hash,omitempty"`
	Value      string `json:"value,omitempty"`
	K          string `json:"k,omitempty"`
}

// A StatusLane is one line.
type StatusLane struct {
	Key       string  `json:"key"`
	N         int64   `json:"n" doc:"Numbers below it are drawn."`
	Joined    int64   `json:"joined" doc:"Numbers given out."`
	Watermark int64   `json:"watermark" doc:"Everyone with a smaller position is called."`
	AheadRate float64 `json:"ahead_rate_per_s" doc:"How fast the watermark moved lately."`
}

// StatusLeft is what is left of the event.
type StatusLeft struct {
	Available  int                  `json:"available"`
	Categories []StatusCategoryLeft `json:"categories"`
}

// A StatusCategoryLeft is one category.
type StatusCategoryLeft struct {
	Key        string `json:"key"`
	Name       string `json:"name"`
	TotalMinor int64  `json:"total_minor"`
	Currency   string `json:"currency"`
	Share      string `json:"share" enum:"many,some,few,none"`
}

// StatusOutlook is what the outlook of each position follows from.
type StatusOutlook struct {
	ShowRate      float64          `json:"show_rate"`
	Conversion    float64          `json:"conversion"`
	SeatsPerBuyer float64          `json:"seats_per_buyer"`
	Available     int              `json:"available"`
	Held          int              `json:"held"`
	LikelyUntil   map[string]int64 `json:"likely_until,omitempty" doc:"By lane: whoever has a smaller position gets something with 90 % or more."`
	PossibleUntil map[string]int64 `json:"possible_until,omitempty" doc:"The same with 20 %."`
}

// statusAlive is how old a status may be before it is built again though nothing has changed: its now is.
const statusAlive = time.Second

// Status is the same for everybody and cheap: the bytes are ready. It may be StatusEvery old.
//
// Faults: event_unknown; conflict (no waiting room); busy (not known yet, and the ledger is away).
func (s *Service) Status(ctx context.Context, event id.ID) (*StatusPage, error) {
	h, err := s.hall(ctx, event)
	if err != nil {
		return nil, err
	}
	page := h.status.Load()
	if page == nil || s.o.Now().Sub(page.built) > 2*statusAlive { // nobody keeps it: RoomsMax, or Run has not begun
		page = s.build(h)
	}
	if page == nil {
		return nil, errNoRoom
	}
	return page, nil
}

// build makes the status anew where that is due, tells the streams of what has changed, and answers the present one: nil where
// the event has no room.
func (s *Service) build(h *hall) *StatusPage {
	h.building.Lock()
	defer h.building.Unlock()
	now := s.o.Now()
	old := h.status.Load()
	if old != nil && now.Sub(old.built) < s.o.StatusEvery && !now.Before(old.built) {
		return old
	}
	p := s.outlooked(h)
	if p.rule.Room.Mode == ledger.RoomOff {
		h.status.Store(nil)
		return nil
	}
	doc := s.statusOf(h, p)
	same, err := json.Marshal(&doc) // without the time
	if err == nil && old != nil && bytes.Equal(same, old.same) && now.Sub(old.built) < statusAlive {
		return old
	}
	doc.Now = s.shardNow().Std()
	text, errNow := json.Marshal(&doc)
	if err != nil || errNow != nil {
		s.o.Logger.Error("waiting room: a status cannot be written", "event", int64(h.event), "error", err, "error_now", errNow)
		return old
	}
	sum := sha256.Sum256(text)
	page := &StatusPage{JSON: text, ETag: `"` + hex.EncodeToString(sum[:12]) + `"`, same: same, built: now}
	h.status.Store(page)
	s.hub.publish(h, p, page, old == nil || !bytes.Equal(same, old.same))
	return page
}

// outlooked is the present picture with an outlook of now.
func (s *Service) outlooked(h *hall) *picture {
	left, known := s.left(h.event)
	figures := h.figures.Load()
	now := s.shardNow()
	h.mu.Lock()
	defer h.mu.Unlock()
	p := *h.picture.Load()
	rate := 0.0
	p.room.Lanes = slices.Clone(p.room.Lanes)
	for i := range p.room.Lanes {
		p.room.Lanes[i].Joined = h.joined(&p, i)
		rate += h.aheadRate(&p, i)
	}
	p.outlook = outlookOf(&p, figures, left, known, now, rate)
	h.picture.Store(&p)
	return &p
}

// aheadOver is over how much of a room's clock the watermark's speed is taken.
const aheadOver = ledger.Duration(10_000)

// aheadRate is how many positions a second a lane's watermark has moved lately. It is called under mu.
func (h *hall) aheadRate(p *picture, lane int) float64 {
	moved := int64(0)
	for _, t := range h.turns[lane] {
		if p.room.Clock-t.clock < aheadOver {
			moved += t.watermark - t.from
		}
	}
	return float64(moved) / aheadOver.Std().Seconds()
}

func (s *Service) statusOf(h *hall, p *picture) StatusDoc {
	rule, room := &p.rule, &p.room
	doc := StatusDoc{
		EventID: h.event.Text(id.Event), Mode: rule.Room.Mode.String(), Phase: phaseOf(p, s.shardNow()),
		JoinsOpenAt: rule.Room.Opens.Std(), OpensAt: rule.SaleOpens.Std(), OpeningOrder: OrderDraw, Draw: drawOf(p),
		RatePerS: room.Rate, ActiveMax: rule.Room.ActiveMax, Inside: room.Inside, TurnMS: int64(rule.Room.TurnFor()),
		Lanes: []StatusLane{}, PollEarlyS: int64(p.outlook.pollEarly / time.Second),
	}
	if p.committed && room.Arrival || !p.committed && rule.Room.Arrival { // once joins are open the order is fixed
		doc.OpeningOrder = OrderArrival
	}
	h.mu.Lock()
	for i, l := range room.Lanes {
		doc.Lanes = append(doc.Lanes, StatusLane{Key: l.Key, N: l.N, Joined: l.Joined, Watermark: l.Watermark, AheadRate: h.aheadRate(p, i)})
	}
	h.mu.Unlock()
	if !p.committed { // before there is a row the rule names the lanes
		for _, l := range rule.Room.LaneRules() {
			doc.Lanes = append(doc.Lanes, StatusLane{Key: l.Key})
		}
		doc.RatePerS = rule.Room.Rate
	}
	doc.Outlook = outlookDoc(p)
	for _, step := range p.outlook.polls {
		doc.Poll = append(doc.Poll, [2]int64{step.distance, step.seconds})
	}
	if left, known := s.left(h.event); known {
		doc.Left = leftDoc(left, rule.Currency)
	}
	return doc
}

// phaseOf is a room's phase as people know it.
func phaseOf(p *picture, now ledger.Time) string {
	switch {
	case p.over(now):
		return phaseEnded
	case p.room.Phase == ledger.RoomOpen && p.outlook.soldOut:
		return phaseSoldOut
	case p.room.Phase == ledger.RoomOpen && (p.rule.Room.Paused || p.rule.State == ledger.Paused):
		return phasePaused
	}
	return p.room.Phase.String()
}

func drawOf(p *picture) StatusDraw {
	d := &p.draw
	if !p.committed {
		state := DrawCommitted
		switch {
		case p.rule.Room.Arrival:
			state = DrawNone
		case p.rule.Room.Source != "":
			state = DrawProvable
		}
		return StatusDraw{State: state, Source: p.rule.Room.Source}
	}
	return StatusDraw{State: d.State, Commitment: d.Commitment, Source: d.Source, N: d.N, ListHash: d.ListHash, Value: d.Value, K: d.K}
}

func outlookDoc(p *picture) StatusOutlook {
	o := &p.outlook
	doc := StatusOutlook{
		ShowRate: rounded(o.show), Conversion: rounded(o.conversion), SeatsPerBuyer: rounded(o.perBuyer), Available: o.available, Held: o.held,
	}
	if !o.known || len(o.likely) != len(p.room.Lanes) {
		return doc
	}
	doc.LikelyUntil, doc.PossibleUntil = map[string]int64{}, map[string]int64{}
	for i := range p.room.Lanes {
		doc.LikelyUntil[p.room.Lanes[i].Key], doc.PossibleUntil[p.room.Lanes[i].Key] = o.likely[i], o.possible[i]
	}
	return doc
}

func rounded(x float64) float64 { return float64(int64(x*1000+0.5)) / 1000 }

// What Share says: many from a third on, few from a twentieth or fewSeats down.
const fewSeats = 10

func leftDoc(left Left, currency string) *StatusLeft {
	doc := &StatusLeft{Available: left.Available, Categories: []StatusCategoryLeft{}}
	for _, c := range left.Categories {
		share := "some"
		switch {
		case c.Available <= 0:
			share = "none"
		case c.Available <= fewSeats || c.Available*20 <= c.Capacity:
			share = "few"
		case c.Available*3 >= c.Capacity:
			share = "many"
		}
		doc.Categories = append(doc.Categories, StatusCategoryLeft{Key: c.Key, Name: c.Name, TotalMinor: c.TotalMinor, Currency: currency, Share: share})
	}
	return doc
}

// SetDrawValue enters the public value of an event whose room is drawing, as an organizer read it from the named source. It
// counts as provable: the list's hash was public before.
//
// Faults: those of ledger.RoomDraw; invalid (empty or longer than DrawValueBytesMax); conflict (the source is a beacon, whose
// value nobody enters).
func (s *Service) SetDrawValue(ctx context.Context, event id.ID, value string) error {
	if value == "" || len(value) > DrawValueBytesMax {
		return &fault.Error{Code: fault.Invalid, Field: "value", Detail: "a public value has 1 to 256 bytes"}
	}
	h, err := s.hall(ctx, event)
	if err != nil {
		return err
	}
	room, committed, err := s.readRoom(ctx, event)
	if err != nil {
		return err
	}
	s.learn(h, room, committed)
	switch {
	case room.Phase != ledger.RoomDrawing:
		return fault.New(fault.Conflict, "the room is %s: a value is entered when N is frozen and before the draw", room.Phase)
	case room.Source == "":
		return fault.New(fault.Conflict, "the room has named no source of a public value")
	}
	if named, err := catalog.ParseDrawSource(room.Source); err == nil && named.Beacon != "" {
		return fault.New(fault.Conflict, "the value of %s is fetched: where it does not come, the draw is committed", room.Source)
	}
	return s.drawWith(ctx, h, value, true)
}

// DrawValueBytesMax is how long a public value may be.
const DrawValueBytesMax = 256
