package app

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"onsale/internal/guard"
	guardredis "onsale/internal/guard/redis"
	"onsale/internal/redisclient"
	"onsale/internal/waitingroom"
	roomredis "onsale/internal/waitingroom/redis"
)

// sharedSilence is between two lines of the log that say that limits are not shared now.
const sharedSilence = time.Minute

// shared is what nodes have in common beside the databases: Redis, or, where there is one node, this process.
type shared struct {
	client *redisclient.Client // nil: one node
	logger *slog.Logger
}

// common is what this node has in common with the others, made when it is first asked for. It does not wait for Redis, which
// may come later.
func (a *App) common() (*shared, error) {
	if a.shared != nil {
		return a.shared, nil
	}
	s := &shared{logger: a.Log}
	if len(a.Settings.Redis.Addresses) > 0 {
		client, err := redisclient.New(a.Settings.Redis)
		if err != nil {
			return nil, err
		}
		s.client = client
		a.onClose(func(context.Context) error { client.Close(); return nil })
	}
	a.shared = s
	return s, nil
}

// Store is where joins are taken.
func (s *shared) Store() (waitingroom.Store, error) {
	if s.client == nil {
		return waitingroom.NewMemory(), nil
	}
	return roomredis.New(s.client, roomredis.Options{})
}

// limit makes a limiter count together with those of the other nodes.
func (s *shared) limit(l *guard.Limiter) {
	if s.client == nil {
		return
	}
	var silentUntil atomic.Int64
	l.Share(guardredis.New(s.client), func(err error) {
		now, until := time.Now().UnixNano(), silentUntil.Load()
		if now >= until && silentUntil.CompareAndSwap(until, now+int64(sharedSilence)) {
			s.logger.Warn("limits are not shared with the other nodes now: this one decides alone", "error", err)
		}
	})
}

// CheckRedis asks whether Redis is there and fit.
func CheckRedis(o redisclient.Options) Check {
	return Check{
		What: "Redis", Says: "there, new enough, and throws nothing away",
		Mend: "correct the redis settings, or let this machine reach it; Redis must be 6.2 or newer, with maxmemory-policy noeviction",
		Ask: func(ctx context.Context) error {
			client, err := redisclient.New(o)
			if err != nil {
				return err
			}
			defer client.Close()
			_, err = client.Check(ctx)
			return err
		},
	}
}
