package app

import (
	"log/slog"

	"onsale/internal/outbox"
)

// ordersRemembered is of how many orders it is remembered which of their notices were handled (A24).
const ordersRemembered = 100_000

// relay publishes what was committed: to the log, to counters, and to whoever else takes notices.
type relay struct {
	*outbox.Relay
	counts *outbox.Count
}

func newRelay(store Store, log *slog.Logger, more ...outbox.Handler) *relay {
	r := &relay{counts: &outbox.Count{}}
	var handlers []outbox.Handler
	for _, h := range append([]outbox.Handler{outbox.Log(log), r.counts}, more...) {
		handlers = append(handlers, outbox.Dedup(h, ordersRemembered))
	}
	r.Relay = outbox.NewRelay(store, handlers, outbox.Options{Holder: holder(), Log: log})
	return r
}
