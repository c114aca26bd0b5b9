package app

import (
	"log/slog"

	"onsale/internal/outbox"
)

// ordersRemembered is of how many orders it is remembered which of their notices were handled (A24).
const ordersRemembered = 100_000

// relay publishes what was committed. Until mails and webhooks go out, publishing is a line in the log and a count.
type relay struct {
	*outbox.Relay
	counts *outbox.Count
}

func newRelay(store Store, log *slog.Logger) *relay {
	r := &relay{counts: &outbox.Count{}}
	r.Relay = outbox.NewRelay(store, []outbox.Handler{outbox.Dedup(outbox.Log(log), ordersRemembered), outbox.Dedup(r.counts, ordersRemembered)},
		outbox.Options{Holder: holder(), Log: log})
	return r
}
