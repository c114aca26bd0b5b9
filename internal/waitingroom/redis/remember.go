package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

// Remember puts numbers of the log back. Of each customer the last record is what counts, so the order in which Redis gets
// them does not matter.
func (s *Store) Remember(ctx context.Context, records []waitingroom.Record) error {
	for len(records) > 0 {
		n := min(len(records), rememberMax)
		if err := s.remember(ctx, records[:n]); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

func (s *Store) remember(ctx context.Context, records []waitingroom.Record) error {
	type customer struct{ event, customer id.ID }
	type document struct {
		event    id.ID
		identity waitingroom.Identity
	}
	last, owner := map[customer]waitingroom.Record{}, map[document]waitingroom.Record{}
	for _, r := range records {
		last[customer{r.Event, r.Customer}] = r
		if r.Identity != (waitingroom.Identity{}) {
			owner[document{r.Event, r.Identity}] = r
		}
	}
	members, documents := map[string][]string{}, map[string][]string{}
	for _, r := range last {
		value := strconv.FormatInt(pack(r), 10)
		switch {
		case r.Left:
			value = "-" + value
		case r.Identity != (waitingroom.Identity{}):
			value += ":" + identityText(r.Identity)
		}
		key := whoKey(r.Event, r.Customer)
		members[key] = append(members[key], decimal(r.Customer), value)
	}
	for d, r := range owner {
		key, theirs := documentKey(d.event, d.identity), "1"
		if r.Left {
			theirs = "0"
		}
		documents[key] = append(documents[key], identityText(d.identity), decimal(r.Customer), theirs)
	}
	if err := s.many(ctx, identifyScript, documents); err != nil {
		return err
	}
	return s.many(ctx, rememberScript, members)
}

// many runs a script on many keys at once, each with the seconds to keep and its own arguments.
func (s *Store) many(ctx context.Context, script *rueidis.Lua, args map[string][]string) error {
	if len(args) == 0 {
		return nil
	}
	runs := make([]rueidis.LuaExec, 0, len(args))
	for key, a := range args {
		runs = append(runs, rueidis.LuaExec{Keys: []string{key}, Args: append([]string{s.keep}, a...)})
	}
	return s.client.Do(ctx, func(ctx context.Context, conn rueidis.Client) error {
		for _, answer := range script.ExecMulti(ctx, conn, runs...) {
			if err := answer.Error(); err != nil {
				return fmt.Errorf("put numbers back: %w", err)
			}
		}
		return nil
	})
}
