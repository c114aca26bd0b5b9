package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"onsale/internal/venue"
)

// DemoSeats is the size of the demo's arena.
const DemoSeats = 50_000

// DemoNamedSeats is the size of the demo's hall for which attendees are named.
const DemoNamedSeats = 120

// demoContent brings the demo's events into a folder that has none.
func (a *App) demoContent(ctx context.Context) error {
	events, err := a.adminList(ctx)
	if err != nil || len(events) > 0 {
		return err
	}
	now := time.Now()
	sale := DemoSale{HoldTTL: cmp.Or(a.Settings.DemoHoldTTL, 10*time.Minute), PaymentWindow: cmp.Or(a.Settings.DemoPaymentWindow, 5*time.Minute)}
	waited := sale
	waited.Room = a.Settings.DemoRoom
	arena := venue.Generate(venue.GenerateOptions{Seats: cmp.Or(a.Settings.DemoSeats, DemoSeats)})
	hall := venue.Generate(venue.GenerateOptions{Seats: DemoNamedSeats, NoStanding: true})
	for _, e := range []struct {
		plan *venue.Plan
		file []byte
	}{{arena, DemoFile(arena, now, waited)}, {hall, DemoNamedFile(hall, now, sale)}} {
		plan, err := e.plan.Encode()
		if err != nil {
			return err
		}
		if _, err := a.ImportEvents(ctx, ImportRequest{File: e.file, Plan: plan}); err != nil {
			return err
		}
	}
	return nil
}

// demoRules are what customers of the demo's events may do with their tickets.
const demoRules = `currency: EUR
tax_included: true
tax_percent: 7
refunds: { until_before: 24h, fee_percent: 10 }
exchanges: { until_before: 24h, fee: "2.00" }
transfers: { until_before: 1h }
`

// A DemoSale is how a demo's event is sold.
type DemoSale struct {
	HoldTTL       time.Duration
	PaymentWindow time.Duration
	Room          DemoRoom
}

// A DemoRoom is the waiting room of a demo's event, with a line for those who have a presale code and one for everybody. The
// zero value is none: then the sale is open.
type DemoRoom struct {
	Rate      int // people let in a second; 0: there is no waiting room
	ActiveMax int // people inside at once
	Turn      time.Duration
}

// DemoOpensIn is when the sale of a demo's event with a waiting room opens, unless its organizer opens it before.
const DemoOpensIn = time.Hour

// DemoFile is an event file for a generated arena, on sale from a minute ago, or with a waiting room that people may join from
// then on. One gate leads everywhere, another only to the plan's last section.
func DemoFile(arena *venue.Plan, now time.Time, sale DemoSale) []byte {
	file := fmt.Sprintf(`format: 1
venue: { name: Harbour Arena, city: Hamburg, country: DE, zone: Europe/Berlin, plan: arena.json }
show: { key: demo, title: Onsale demo – a night at the harbour }
limits: { event: 8 }
performances:
  - { key: first-night, starts: %q }
gates:
  - { key: main, name: Main entrance }
  - { key: side, name: Side door, sections: [%q] }
`, demoStarts(now), arena.Sections[len(arena.Sections)-1].Key)
	return []byte(file + demoRules + sale.text(now) + demoTiers(arena))
}

// DemoNamedFile is an event file for a small hall, into which each ticket's attendee comes with an identity document, one
// ticket for each.
func DemoNamedFile(hall *venue.Plan, now time.Time, sale DemoSale) []byte {
	file := fmt.Sprintf(`format: 1
venue: { name: Harbour Hall, city: Hamburg, country: DE, zone: Europe/Berlin, plan: hall.json }
show: { key: demo-named, title: Onsale demo – named tickets }
limits: { event: 4, document: 1 }
documents: true
performances:
  - { key: named-night, starts: %q }
`, demoStarts(now.AddDate(0, 0, 1)))
	return []byte(file + demoRules + sale.text(now) + demoTiers(hall))
}

func demoStarts(now time.Time) string { return now.AddDate(0, 2, 1).UTC().Format(time.RFC3339) }

func (s *DemoSale) text(now time.Time) string {
	opens := now.Add(-time.Minute)
	room := ""
	if s.Room.Rate > 0 {
		room = fmt.Sprintf(`waitlist: true
offer_ttl: 1m
room:
  joins_open: %q
  draw_source: "organizer: the dice that are thrown when the doors open"
  rate: %d
  active_max: %d
  turn: %s
  stay: %s
  lanes:
    - { key: presale, name: Friends of the harbour, weight: 4, access: codes }
    - { key: general, name: Everybody }
`, opens.UTC().Format(time.RFC3339), s.Room.Rate, s.Room.ActiveMax, s.Room.Turn, s.HoldTTL)
		opens = now.Add(DemoOpensIn)
	}
	return fmt.Sprintf("hold_ttl: %s\npayment_window: %s\nsale: { opens: %q, closes: %q }\n",
		s.HoldTTL, s.PaymentWindow, opens.UTC().Format(time.RFC3339), now.AddDate(0, 2, 0).UTC().Format(time.RFC3339)) + room
}

func demoTiers(plan *venue.Plan) string {
	tiers, face := "tiers:\n", 180
	for _, c := range plan.Categories {
		tiers += fmt.Sprintf("  - { category: %q, name: %q, face: %q, fee: \"4.50\" }\n", c.Key, c.Name, fmt.Sprintf("%d.00", max(face, 30)))
		face -= 30
	}
	return tiers
}
