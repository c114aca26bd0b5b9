package bench

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"onsale/internal/redisserver"
)

// The textbook's line: a counter gives each who joins their score, a sorted set keeps them, a poll asks for the rank, and each
// second the first are taken out, as many as there is room for. Everything is one round trip, on a client that gathers what
// many ask at once.
const (
	zsetLine    = "line"
	zsetCounter = "counter"
	zsetActive  = "active"
)

func queueZSet(ctx context.Context, server *redisserver.Server, o QueueOptions, r *QueueResult) (err error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Address()}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		return err
	}
	defer client.Close()
	before, err := usedMemory(ctx, server)
	if err != nil {
		return err
	}
	names := make([]string, o.Fans)
	for i := range names {
		names[i] = strconv.FormatInt(1<<50+int64(i), 10)
	}
	failed, took := together(o.Fans, func(i int) error {
		score, err := client.Do(ctx, client.B().Incr().Key(zsetCounter).Build()).AsInt64()
		if err != nil {
			return err
		}
		return client.Do(ctx, client.B().Zadd().Key(zsetLine).Nx().ScoreMember().ScoreMember(float64(score), names[i]).Build()).Error()
	})
	r.JoinsPerS, r.Errors = float64(o.Fans)/took.Seconds(), failed
	after, err := usedMemory(ctx, server)
	if err != nil {
		return err
	}
	r.BytesPerFan = float64(after-before) / float64(o.Fans)
	var ops atomic.Int64
	polls, failed, took := polling(o.Fans, o.PollFor, func(i int) error {
		ops.Add(1)
		return client.Do(ctx, client.B().Zrank().Key(zsetLine).Member(names[i]).Build()).Error()
	})
	r.PollsPerS, r.StoreOpsPerPoll = float64(polls)/took.Seconds(), thousandth(float64(ops.Load())/float64(polls))
	r.Errors += failed
	return zsetSale(ctx, client, o, r)
}

func usedMemory(ctx context.Context, server *redisserver.Server) (int64, error) {
	text, err := server.Info(ctx, "used_memory")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// zsetSale lets people in, each second, and out again when they have stayed.
func zsetSale(ctx context.Context, client rueidis.Client, o QueueOptions, r *QueueResult) error {
	var leaving sync.WaitGroup
	defer leaving.Wait()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	highest, perSecond := 0.0, map[int64]int{}
	began := time.Now()
	for time.Since(began) < o.SaleFor {
		inside, err := client.Do(ctx, client.B().Get().Key(zsetActive).Build()).AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) {
			return err
		}
		if free := min(int64(queueRate), queueRoom-inside); free > 0 {
			called, err := client.Do(ctx, client.B().Zpopmin().Key(zsetLine).Count(free).Build()).AsZScores()
			if err != nil {
				return err
			}
			inside, err = client.Do(ctx, client.B().Incrby().Key(zsetActive).Increment(int64(len(called))).Build()).AsInt64()
			if err != nil {
				return err
			}
			for _, one := range called {
				if one.Score < highest {
					r.Overtakes++
				}
				highest = max(highest, one.Score)
			}
			r.Admitted += len(called)
			r.MaxActiveSeen = max(r.MaxActiveSeen, int(inside))
			second := time.Now().Unix()
			perSecond[second] += len(called)
			r.AdmittedMax = max(r.AdmittedMax, perSecond[second])
			leaving.Go(func() {
				<-time.After(stays)
				client.Do(ctx, client.B().Decrby().Key(zsetActive).Decrement(int64(len(called))).Build())
			})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("interrupted")
		}
	}
	r.SaleSeconds = time.Since(began).Seconds()
	return nil
}
