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

// demoContent brings the demo's events into a folder that has none.
func (a *App) demoContent(ctx context.Context) error {
	events, err := a.adminList(ctx)
	if err != nil || len(events) > 0 {
		return err
	}
	arena := venue.Generate(venue.GenerateOptions{Seats: cmp.Or(a.Settings.DemoSeats, DemoSeats)})
	plan, err := arena.Encode()
	if err != nil {
		return err
	}
	_, err = a.ImportEvents(ctx, ImportRequest{File: DemoFile(arena, time.Now(), cmp.Or(a.Settings.DemoHoldTTL, 10*time.Minute), cmp.Or(a.Settings.DemoPaymentWindow, 5*time.Minute)), Plan: plan})
	return err
}

// DemoFile is an event file for a generated arena, on sale from a minute ago.
func DemoFile(arena *venue.Plan, now time.Time, holdTTL, paymentWindow time.Duration) []byte {
	file := fmt.Sprintf(`format: 1
venue: { name: Harbour Arena, city: Hamburg, country: DE, zone: Europe/Berlin, plan: arena.json }
show: { key: demo, title: Onsale demo – a night at the harbour }
currency: EUR
tax_included: true
tax_percent: 7
hold_ttl: %s
payment_window: %s
limits: { event: 8 }
sale: { opens: %q, closes: %q }
performances:
  - { key: first-night, starts: %q }
tiers:
`, holdTTL, paymentWindow, now.Add(-time.Minute).UTC().Format(time.RFC3339), now.AddDate(0, 2, 0).UTC().Format(time.RFC3339), now.AddDate(0, 2, 1).UTC().Format(time.RFC3339))
	face := 180
	for _, c := range arena.Categories {
		file += fmt.Sprintf("  - { category: %q, name: %q, face: %q, fee: \"4.50\" }\n", c.Key, c.Name, fmt.Sprintf("%d.00", max(face, 30)))
		face -= 30
	}
	return []byte(file)
}
