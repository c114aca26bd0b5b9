package ledgertest

import (
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// The hall of the scenarios and histories has 13 seats and 2 areas:
//
//	seats 0–3    run 0, section 0, category 0    qualities 10 20 30 40
//	seats 4–7    run 1, section 0, category 0    qualities 12 22 32 42
//	seats 8–11   run 2, section 1, category 1    qualities 10 20 30 40
//	seat  12     run 3, section 1, category 3, which has no price
//	area  0      section 2, category 2, 6 places
//	area  1      section 1, category 1, 3 places
const (
	hallSeats    = 13
	seatUnpriced = 12
	seatNone     = 40 // not in the plan
	areaNone     = 7
	planHash     = "hall-1"
)

func hallLayout() *ledger.Layout {
	return &ledger.Layout{
		PlanHash: planHash,
		Section:  []int16{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1},
		Category: []int16{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 3},
		Run:      []int32{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3},
		Quality:  []int32{10, 20, 30, 40, 12, 22, 32, 42, 10, 20, 30, 40, 50},
		Areas: []ledger.AreaLayout{
			{Section: 2, Category: 2, Capacity: 6},
			{Section: 1, Category: 1, Capacity: 3},
		},
	}
}

// The times of the scenarios, in milliseconds.
const (
	start   = ledger.Time(1_800_000_000_000)
	second  = ledger.Duration(1000)
	minute  = 60 * second
	hour    = 60 * minute
	holdTTL = 10 * minute
	window  = 5 * minute
)

// The things that are there from the start.
const (
	mainEvent  id.ID = 1
	otherEvent id.ID = 2 // of the same show
	organizer  id.ID = 50
	theShow    id.ID = 60

	alice id.ID = 101
	bob   id.ID = 102
	carol id.ID = 103
	dave  id.ID = 104
)

// hallEvent is an event on sale for a day. A seat of category 0 costs 52.50 with 3.43 tax inside, one of category 1
// 30.00 with 1.96, a place of category 2 is free.
func hallEvent(event id.ID) ledger.Event {
	return ledger.Event{
		ID: event, Organizer: organizer, Show: theShow, Version: 1, State: ledger.OnSale, PlanHash: planHash,
		SaleOpens: start, SaleCloses: start + ledger.Time(24*hour),
		HoldTTL: holdTTL, PaymentWindow: window, ExtendMax: 1, SeatsPerHoldMax: 6,
		Currency: "EUR", TaxIncluded: true, Waitlist: true,
		Tiers: []ledger.Tier{
			{Category: 0, Name: "A", Face: 5000, Fee: 250, TaxBP: 700},
			{Category: 1, Name: "B", Face: 3000, Fee: 0, TaxBP: 700},
			{Category: 2, Name: "free", Face: 0, Fee: 0, TaxBP: 0},
		},
	}
}
