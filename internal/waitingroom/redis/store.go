// Package redis keeps the joins of waiting rooms in Redis, so that many nodes take them (C2, C12).
//
// The one idea: what decides about a number lies in one key. An event's phase, counters and limits are one hash, in one slot,
// and a script reads the phase and takes the number of it in one step, as the freeze does. Who has which number lies beside
// it, in 32,768 small hashes an event, spread over all slots. Without a cluster one script does both. In a cluster, where no
// script reaches two slots, a customer is claimed for a moment, so that of any number of tabs one takes a number at a
// time; whoever dies in between leaves a number that nobody has, never two that count.
//
// Everything here can be lost: the ledger has the high-water mark, the Log has the joins, and the service restores both.
//
// Start reading at Join; scripts.go has what Redis does, keys.go how it lies there.
package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/redisclient"
	"onsale/internal/waitingroom"
)

// Bounds.
const (
	KeepDefault = 30 * 24 * time.Hour
	keepMin     = time.Minute
	keepMax     = 400 * 24 * time.Hour

	claimMax      = 3 * time.Second // for which a customer stays claimed by somebody who died
	claimAskEvery = 15 * time.Millisecond
	joinMax       = 2 * claimMax // for one join, waiting for a claim of somebody else included
	triesMax      = 8            // of a join whose claim passed to somebody else
	rememberMax   = 512          // customers, or scripts, sent at once
)

// Options of a Store.
type Options struct {
	// Keep is how long what Redis knows of an event is kept after the event was last restored, and a customer's number after
	// the last join beside it. What is gone is restored when it is asked for. Defaults to KeepDefault.
	Keep time.Duration
}

// Store is the waitingroom.Store in Redis.
type Store struct {
	client *redisclient.Client
	keep   string // seconds
	spread bool
	claims time.Duration // how long a customer stays claimed
	// between is told of the steps of a join in a cluster, so that tests can stop there.
	between func(step string)
}

var _ waitingroom.Store = (*Store)(nil)

// New makes a store. The client stays the caller's until Close, which closes it.
func New(client *redisclient.Client, o Options) (*Store, error) {
	if o.Keep == 0 {
		o.Keep = KeepDefault
	}
	if o.Keep < keepMin || o.Keep > keepMax {
		return nil, fmt.Errorf("waitingroom/redis: to keep what is known for %s is not between %s and %s", o.Keep, keepMin, keepMax)
	}
	return &Store{client: client, keep: strconv.FormatInt(int64(o.Keep/time.Second), 10), spread: client.Spread(), claims: claimMax, between: func(string) {}}, nil
}

// Close ends the connection.
func (s *Store) Close() error { s.client.Close(); return nil }

// Run is the name of the present life of all that the store knows.
func (s *Store) Run(ctx context.Context) (string, error) { return s.client.Run(ctx) }

// Join takes a number, or finds the one that the customer has.
func (s *Store) Join(ctx context.Context, j waitingroom.Join) (waitingroom.Joined, error) {
	if j.Lane < 0 || j.Lane >= ledger.RoomLanesMax {
		return waitingroom.Joined{}, waitingroom.ErrUnknown
	}
	if s.spread {
		return s.joinSpread(ctx, j)
	}
	answer, err := s.client.Ints(ctx, joinScript,
		[]string{roomKey(j.Event), whoKey(j.Event, j.Customer), documentKey(j.Event, j.Identity)},
		[]string{strconv.Itoa(j.Lane), decimal(j.Customer), identityText(j.Identity), s.keep})
	if err != nil {
		return waitingroom.Joined{}, err
	}
	return joinedOf(j.Lane, answer)
}

// joinedOf reads what a script that joins has answered.
func joinedOf(lane int, answer []int64) (waitingroom.Joined, error) {
	switch {
	case len(answer) == 3 && answer[0] == took:
		return waitingroom.Joined{Lane: lane, Number: answer[1], Drawn: answer[2] == 1, New: true}, nil
	case len(answer) == 2 && answer[0] == had:
		return unpack(answer[1]), nil
	case len(answer) != 1:
	case answer[0] == unknown:
		return waitingroom.Joined{}, waitingroom.ErrUnknown
	case answer[0] == closed:
		return waitingroom.Joined{}, waitingroom.ErrClosed
	case answer[0] == limit:
		return waitingroom.Joined{}, waitingroom.ErrLimit
	case answer[0] == identity:
		return waitingroom.Joined{}, waitingroom.ErrIdentityTaken
	}
	return waitingroom.Joined{}, fmt.Errorf("waitingroom/redis: a join was answered %v", answer)
}

// joinSpread is Join in a cluster.
func (s *Store) joinSpread(ctx context.Context, j waitingroom.Join) (waitingroom.Joined, error) {
	ctx, cancel := context.WithTimeout(ctx, joinMax)
	defer cancel()
	c := claim{store: s, join: j, nonce: rand.Text(),
		keys: []string{whoKey(j.Event, j.Customer), claimKey(j.Event, j.Customer)}, customer: decimal(j.Customer)}
	for range triesMax {
		joined, again, err := c.try(ctx)
		if !again {
			return joined, err
		}
	}
	return waitingroom.Joined{}, fmt.Errorf("%w: a customer joined from too many places at once", redisclient.ErrAway)
}

// A claim is one join in a cluster on its way.
type claim struct {
	store    *Store
	join     waitingroom.Join
	nonce    string
	keys     []string // of the customer and of the claim, in one slot
	customer string
}

// try goes once through the steps. again says that the claim passed to somebody else in between: the number taken here, if any,
// is void.
func (c *claim) try(ctx context.Context) (joined waitingroom.Joined, again bool, err error) {
	answer, err := c.take(ctx)
	if err != nil || answer[0] == had {
		if err == nil {
			joined, err = joinedOf(c.join.Lane, answer)
		}
		return joined, false, err
	}
	c.store.between("claimed")
	fresh, err := c.holdIdentity(ctx)
	if err == nil {
		c.store.between("identified")
		if answer, err = c.store.client.Ints(ctx, takeScript, []string{roomKey(c.join.Event)}, []string{strconv.Itoa(c.join.Lane)}); err == nil {
			joined, err = joinedOf(c.join.Lane, answer)
		}
	}
	if err != nil {
		c.giveUp(ctx, fresh)
		return waitingroom.Joined{}, false, err
	}
	c.store.between("taken")
	drawn := "0"
	if joined.Drawn {
		drawn = "1"
	}
	answer, err = c.store.client.Ints(ctx, settleScript, c.keys,
		[]string{c.customer, c.nonce, strconv.Itoa(c.join.Lane), strconv.FormatInt(joined.Number, 10), drawn, identityText(c.join.Identity), c.store.keep})
	switch {
	case err != nil:
		return waitingroom.Joined{}, false, err // it may have been kept: the next join finds it
	case len(answer) == 1 && answer[0] == forgotten:
		return waitingroom.Joined{}, true, nil
	case len(answer) == 2:
		joined, err = joinedOf(c.join.Lane, answer)
		return joined, false, err
	}
	return joined, false, nil
}

// take claims the customer, waiting for whoever has claimed them already; or finds their number.
func (c *claim) take(ctx context.Context) ([]int64, error) {
	wait := time.NewTicker(claimAskEvery)
	defer wait.Stop()
	for {
		answer, err := c.store.client.Ints(ctx, claimScript, c.keys, []string{c.customer, c.nonce, strconv.FormatInt(c.store.claims.Milliseconds(), 10)})
		if err != nil {
			return nil, err
		}
		if len(answer) == 0 {
			return nil, errors.New("waitingroom/redis: a claim was not answered")
		}
		if answer[0] != busy {
			return answer, nil
		}
		select {
		case <-wait.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: the customer is joining from elsewhere: %w", redisclient.ErrAway, ctx.Err())
		}
	}
}

// holdIdentity makes the identity, if there is one, the customer's. fresh says that it was nobody's.
func (c *claim) holdIdentity(ctx context.Context) (fresh bool, err error) {
	if c.join.Identity == (waitingroom.Identity{}) {
		return false, nil
	}
	answer, err := c.store.client.Ints(ctx, holdScript, []string{documentKey(c.join.Event, c.join.Identity)},
		[]string{identityText(c.join.Identity), c.customer, c.store.keep})
	if err == nil && len(answer) == 1 && answer[0] == identity {
		err = waitingroom.ErrIdentityTaken
	}
	return err == nil && len(answer) == 1 && answer[0] == took, err
}

// giveUp lets others claim the customer at once, and the identity go if it was not theirs before. What cannot be said is said
// by the claim's end.
func (c *claim) giveUp(ctx context.Context, fresh bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.store.client.Timeout())
	defer cancel()
	if fresh {
		_ = c.store.forgetIdentity(ctx, c.join.Event, c.join.Customer, c.join.Identity)
	}
	_, _ = c.store.client.Ints(ctx, unclaimScript, c.keys[1:], []string{c.nonce})
}

// Freeze ends the waiting phase.
func (s *Store) Freeze(ctx context.Context, event id.ID) ([]waitingroom.Count, error) {
	counts, err := s.client.Ints(ctx, freezeScript, []string{roomKey(event)}, nil)
	if err != nil {
		return nil, err
	}
	if len(counts) == 0 {
		return nil, waitingroom.ErrUnknown
	}
	all := make([]waitingroom.Count, len(counts))
	for i, n := range counts {
		all[i] = waitingroom.Count{Lane: i, Count: n}
	}
	return all, nil
}

// Restore raises what is known of an event.
func (s *Store) Restore(ctx context.Context, event id.ID, state waitingroom.State) error {
	if len(state.Lanes) > ledger.RoomLanesMax {
		return fmt.Errorf("waitingroom/redis: %d lanes are more than %d", len(state.Lanes), ledger.RoomLanesMax)
	}
	args := []string{strconv.Itoa(int(state.Phase)), s.keep}
	for _, lane := range state.Lanes {
		args = append(args, strconv.FormatInt(lane.Next, 10), strconv.FormatInt(lane.Limit, 10))
	}
	_, err := s.client.Ints(ctx, restoreScript, []string{roomKey(event)}, args)
	return err
}

// Counts are the numbers given out so far.
func (s *Store) Counts(ctx context.Context, event id.ID) ([]waitingroom.Count, error) {
	var fields map[string]string
	err := s.client.Do(ctx, func(ctx context.Context, conn rueidis.Client) (err error) {
		fields, err = conn.Do(ctx, conn.B().Hgetall().Key(roomKey(event)).Build()).AsStrMap()
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, waitingroom.ErrUnknown
	}
	lanes, err := strconv.Atoi(fields["lanes"])
	if err != nil || lanes < 0 || lanes > ledger.RoomLanesMax {
		return nil, fmt.Errorf("waitingroom/redis: the room of %v has %q lanes", event, fields["lanes"])
	}
	all := make([]waitingroom.Count, lanes)
	for i := range all {
		n, err := strconv.ParseInt(fields["n"+strconv.Itoa(i)], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("waitingroom/redis: a counter of %v: %w", event, err)
		}
		all[i] = waitingroom.Count{Lane: i, Count: n}
	}
	return all, nil
}

// Leave forgets a customer's number.
func (s *Store) Leave(ctx context.Context, event, customer id.ID, number int64) error {
	var left []string
	err := s.client.Do(ctx, func(ctx context.Context, conn rueidis.Client) (err error) {
		left, err = leaveScript.Exec(ctx, conn, []string{whoKey(event, customer)}, []string{decimal(customer), strconv.FormatInt(number, 10)}).AsStrSlice()
		return err
	})
	if err != nil || len(left) == 0 || len(left[0]) != len(waitingroom.Identity{}) {
		return err
	}
	return s.forgetIdentity(ctx, event, customer, waitingroom.Identity([]byte(left[0])))
}

func (s *Store) forgetIdentity(ctx context.Context, event, customer id.ID, who waitingroom.Identity) error {
	_, err := s.client.Ints(ctx, identifyScript, []string{documentKey(event, who)}, []string{s.keep, identityText(who), decimal(customer), "0"})
	return err
}
