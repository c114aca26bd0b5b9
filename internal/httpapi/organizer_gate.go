package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/guard"
	"onsale/internal/id"
	"onsale/internal/identity"
)

// A Block keeps somebody from joining, holding and buying.
type Block struct {
	ID      string    `json:"block_id"`
	Kind    string    `json:"kind" enum:"network,customer,device"`
	Target  string    `json:"target" doc:"203.0.113.7, 203.0.113.0/24, cus_…, or a device's name"`
	Reason  string    `json:"reason" doc:"for you; it is never shown to who is blocked"`
	By      string    `json:"by,omitempty" doc:"the customer who made it; missing: the operator"`
	Created time.Time `json:"created_at"`
	Until   time.Time `json:"until"`
}

// A BlockEdit makes a block. Of somebody who is blocked already it changes reason and end.
type BlockEdit struct {
	Kind   string `json:"kind" enum:"network,customer,device"`
	Target string `json:"target"`
	Reason string `json:"reason"`
	Until  string `json:"until" doc:"RFC 3339; at most two years ahead"`
}

// BlockList is a page of blocks.
type BlockList struct {
	Blocks []Block `json:"blocks"`
	Next   string  `json:"next_cursor,omitempty"`
}

// BookingEvidence is what was seen of who made a booking. Nothing is ever cancelled because of it.
type BookingEvidence struct {
	Booking  string         `json:"booking_id"`
	At       time.Time      `json:"at"`
	Evidence guard.Evidence `json:"evidence" doc:"score 0–100; equal addresses and devices of one event have equal hashes"`
}

// BookingEvidenceList is a page of it.
type BookingEvidenceList struct {
	Bookings []BookingEvidence `json:"bookings"`
	Next     string            `json:"next_cursor,omitempty"`
}

const (
	blocksPage   = 100
	evidencePage = 100
)

func (a *api) organizerGateRoutes() []route {
	const tag = "Organizers"
	look, do := atLeast(identity.Viewer, "organizer_id"), atLeast(identity.Operator, "organizer_id")
	return []route{
		{Method: "GET", Path: organizerPath + "/blocks", ID: "blocks_list", Who: look, Tag: tag, Summary: "Who is blocked from your events",
			Query: []parameter{pageQuery}, Answer: BlockList{}, Faults: []fault.Code{fault.Invalid}, handle: a.blocksList},
		{Method: "POST", Path: organizerPath + "/blocks", ID: "block_make", Who: do, Tag: tag, Summary: "Block an address, a network, a customer or a device",
			Notes: "In force within two seconds. Holds that are made already can be paid for.", Body: BlockEdit{}, Answer: Block{}, Status: []int{201},
			Faults: []fault.Code{fault.Invalid, fault.LimitReached}, handle: a.blockMake},
		{Method: "DELETE", Path: organizerPath + "/blocks/{block_id}", ID: "block_remove", Who: do, Tag: tag, Summary: "End a block", Status: []int{204}, handle: a.blockRemove},
		{Method: "GET", Path: "/v1/organizer/bookings/{booking_id}/evidence", ID: "booking_evidence", Who: atLeast(identity.Viewer, "booking_id"), Tag: tag,
			Summary: "What was seen of who made a booking", Notes: "For you to judge. Kept until 30 days after the event.", Answer: BookingEvidence{}, Faults: []fault.Code{fault.NotFound}, handle: a.bookingEvidence},
		{Method: "GET", Path: organizerEvent + "/evidence", ID: "evidence_list", Who: atLeast(identity.Viewer, "event_id"), Tag: tag, Summary: "Bookings that look like a machine's",
			Query:  []parameter{{"score", "at least this, 0–100; 60 where it is missing", "integer"}, pageQuery},
			Answer: BookingEvidenceList{}, Faults: []fault.Code{fault.Invalid}, handle: a.evidenceList},
	}
}

// notBlocked refuses who is blocked from an event's organizer.
func (a *api) notBlocked(r *request, e *catalog.Event) error {
	if a.Gate != nil && a.Gate.Blocked(a.Now(), e.Organizer, a.visit(nil, r, e.ID, guard.Holds)) {
		return fault.New(fault.Blocked, "")
	}
	return nil
}

// evidence keeps what was seen of who made an order. No order waits for it.
func (a *api) evidence(r *request, order, event id.ID, held time.Time) {
	if a.Gate == nil || a.Evidence == nil {
		return
	}
	v := a.visit(nil, r, event, guard.Pays)
	now := a.Now()
	if !held.IsZero() {
		v.Since = max(0, now.Sub(held))
	}
	a.Evidence.Record(guard.OrderEvidence{Order: order, Event: event, At: now.UTC().Truncate(time.Millisecond), Evidence: a.Gate.Seen(now, v)})
}

var errNoBlocks = fault.New(fault.NotFound, "nobody can be blocked here")

func showBlock(b *guard.Block) Block {
	shown := Block{ID: b.ID.Text(id.Block), Kind: b.Kind, Target: b.Target(), Reason: b.Reason, Created: b.At, Until: b.Until}
	if b.By != 0 {
		shown.By = b.By.Text(id.Customer)
	}
	return shown
}

func (a *api) blocksList(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	after, err := cursorID(asked.Get("cursor"), id.Block)
	if err != nil {
		return err
	}
	list := BlockList{Blocks: []Block{}}
	if a.Blocks == nil {
		return write(w, http.StatusOK, list)
	}
	blocks, err := a.Blocks.List(r.Context(), r.organizer, after, blocksPage+1)
	if err != nil {
		return err
	}
	for i := range blocks[:min(len(blocks), blocksPage)] {
		list.Blocks = append(list.Blocks, showBlock(&blocks[i]))
	}
	if len(blocks) > blocksPage {
		list.Next = list.Blocks[blocksPage-1].ID
	}
	return write(w, http.StatusOK, list)
}

func (a *api) blockMake(w http.ResponseWriter, r *request) error {
	var body BlockEdit
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	if a.Blocks == nil {
		return errNoBlocks
	}
	block := guard.Block{Organizer: r.organizer, Kind: body.Kind, Reason: body.Reason, By: r.customer}
	if err := block.ParseTarget(body.Target); err != nil {
		return err
	}
	var err error
	if block.Until, err = time.Parse(time.RFC3339, body.Until); err != nil {
		return &fault.Error{Code: fault.Invalid, Field: "until", Detail: "a time as 2026-05-01T20:00:00+02:00", Cause: err}
	}
	made, err := a.Blocks.Add(r.Context(), block, identity.Entry{Actor: r.customer, Role: r.role})
	if err != nil {
		return err
	}
	return write(w, http.StatusCreated, showBlock(&made))
}

func (a *api) blockRemove(w http.ResponseWriter, r *request) error {
	if a.Blocks == nil {
		return errNoBlocks
	}
	number, err := id.Parse(id.Block, r.PathValue("block_id"))
	if err != nil {
		return fault.New(fault.NotFound, "")
	}
	if err := a.Blocks.Remove(r.Context(), r.organizer, number, identity.Entry{Actor: r.customer, Role: r.role}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func showEvidence(e *guard.OrderEvidence) BookingEvidence {
	return BookingEvidence{Booking: e.Order.Text(id.Order), At: e.At, Evidence: e.Evidence}
}

func (a *api) bookingEvidence(w http.ResponseWriter, r *request) error {
	if a.EvidenceStore == nil {
		return fault.New(fault.NotFound, "no evidence is kept here")
	}
	e, err := a.EvidenceStore.Evidence(r.Context(), r.order.ID)
	if errors.Is(err, guard.ErrNoEvidence) {
		return fault.New(fault.NotFound, "nothing is kept of this booking")
	}
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, showEvidence(&e))
}

func (a *api) evidenceList(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	score := guard.PersonFrom
	if text := asked.Get("score"); text != "" {
		if score, err = strconv.Atoi(text); err != nil || score < 0 || score > guard.ScoreMax {
			return &fault.Error{Code: fault.Invalid, Field: "score", Detail: "a whole number from 0 to 100"}
		}
	}
	after, err := cursorID(asked.Get("cursor"), id.Order)
	if err != nil {
		return err
	}
	list := BookingEvidenceList{Bookings: []BookingEvidence{}}
	if a.EvidenceStore == nil {
		return write(w, http.StatusOK, list)
	}
	all, err := a.EvidenceStore.EvidenceOf(r.Context(), r.event.ID, score, after, evidencePage+1)
	if err != nil {
		return err
	}
	for i := range all[:min(len(all), evidencePage)] {
		list.Bookings = append(list.Bookings, showEvidence(&all[i]))
	}
	if len(all) > evidencePage {
		list.Next = list.Bookings[evidencePage-1].Booking
	}
	return write(w, http.StatusOK, list)
}
