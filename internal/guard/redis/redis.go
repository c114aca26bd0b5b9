// Package redis keeps the cells of limits in Redis, so that all nodes count together.
//
// The one idea: a cell is one number with an end (the generic cell rate algorithm, as package guard has it), a script moves
// those of one caller together, and everything that one request asks for is one round trip. Redis's clock decides, so that
// nodes whose clocks differ agree.
//
// Start reading at Take. What a node does while Redis is away is guard's business: see guard.Limiter.Share.
package redis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"onsale/internal/guard"
	"onsale/internal/redisclient"
)

// prefix carries the version of how cells lie in Redis.
const prefix = "onsale:1:"

// A cell is the instant until which what was taken is used up, in microseconds since 2025: small enough that sums of fractions
// stay exact to a hundredth. It ends then.
//
// KEYS: cells. ARGV: for each: microseconds of one request, quota, count, and 1 where it is counted whatever the quota. It answers
// which refused, counted from 0, or -1, and how far ahead of now each cell is, in nanoseconds.
const moveText = `
local time = redis.call('TIME')
local now = (time[1] - 1735689600) * 1e6 + time[2]
local rounding = 0.5
local refused, cells = -1, {}
for i = 1, #KEYS do
  local each, quota, count, always = tonumber(ARGV[4*i-3]), tonumber(ARGV[4*i-2]), tonumber(ARGV[4*i-1]), ARGV[4*i] == '1'
  local full = each * quota
  local was = tonumber(redis.call('GET', KEYS[i]) or now)
  local tat = math.min(math.max(was, now), now + full) -- a clock that went back locks nobody out for longer than that
  local next = tat + each * count
  if always then
    next = math.min(next, now + full)
  elseif refused < 0 and next - now > full + rounding then
    refused = i - 1
  end
  cells[i] = {always = always, was = was, tat = tat, next = next}
end
local answer = {refused}
for i, cell in ipairs(cells) do
  local at = cell.tat
  if cell.always or refused < 0 then at = cell.next end
  if at ~= cell.was then
    redis.call('SET', KEYS[i], string.format('%.3f', at), 'PX', math.max(1, math.ceil((at - now) / 1000)))
  end
  answer[i+1] = math.max(0, math.floor((at - now) * 1000))
end
return answer
`

var (
	move     = rueidis.NewLuaScript(moveText)
	moveHash = func() string { sum := sha1.Sum([]byte(moveText)); return hex.EncodeToString(sum[:]) }()
)

// Cells is guard.Shared in Redis.
type Cells struct{ client *redisclient.Client }

var _ guard.Shared = (*Cells)(nil)

// New makes cells. The client stays the caller's.
func New(client *redisclient.Client) *Cells { return &Cells{client: client} }

// A call is one run of the script: cells that lie in one slot.
type call struct {
	keys, args []string
	takes      []int // which they are
}

// Take is guard.Shared's.
func (c *Cells) Take(ctx context.Context, takes []guard.Take) (ahead [guard.SharedTakes]time.Duration, refused int, err error) {
	if len(takes) == 0 || len(takes) > guard.SharedTakes {
		return ahead, -1, fmt.Errorf("guard/redis: %d takes at once are not between 1 and %d", len(takes), guard.SharedTakes)
	}
	calls := callsOf(takes)
	answers := make([][]int64, len(calls))
	if err := c.client.Do(ctx, func(ctx context.Context, conn rueidis.Client) error { return run(ctx, conn, calls, answers) }); err != nil {
		return ahead, -1, err
	}
	refused = -1
	for i, one := range calls {
		if len(answers[i]) != 1+len(one.takes) || answers[i][0] >= int64(len(one.takes)) {
			return ahead, -1, fmt.Errorf("guard/redis: a take of %d was answered %v", len(one.takes), answers[i])
		}
		if n := answers[i][0]; n >= 0 {
			refused = one.takes[n]
		}
		for k, take := range one.takes {
			ahead[take] = time.Duration(answers[i][1+k])
		}
	}
	return ahead, refused, nil
}

// callsOf puts the takes that may refuse, which have one key, into one call, and each of the others into one of its own.
func callsOf(takes []guard.Take) []call {
	calls := make([]call, 0, len(takes))
	may := -1 // the call of those that may refuse
	for i, t := range takes {
		into := len(calls)
		if !t.Always && may >= 0 {
			into = may
		} else {
			calls = append(calls, call{})
		}
		always := "1"
		if !t.Always {
			always, may = "0", into
		}
		one := &calls[into]
		one.keys = append(one.keys, prefix+"{"+hex.EncodeToString(t.Key[:])+"}:rate:"+t.Name)
		one.args = append(one.args, strconv.FormatFloat(float64(t.Each)/1000, 'f', 3, 64), strconv.FormatInt(t.Quota, 10), strconv.FormatInt(t.Count, 10), always)
		one.takes = append(one.takes, i)
	}
	return calls
}

// run sends all calls together; a server that does not have the script yet gets it.
func run(ctx context.Context, conn rueidis.Client, calls []call, answers [][]int64) (err error) {
	commands := make(rueidis.Commands, len(calls))
	for i, one := range calls {
		commands[i] = conn.B().Evalsha().Sha1(moveHash).Numkeys(int64(len(one.keys))).Key(one.keys...).Arg(one.args...).Build()
	}
	for i, answer := range conn.DoMulti(ctx, commands...) {
		if refusal, ok := rueidis.IsRedisErr(answer.Error()); ok && refusal.IsNoScript() {
			answer = move.Exec(ctx, conn, calls[i].keys, calls[i].args)
		}
		if answers[i], err = answer.AsIntSlice(); err != nil {
			return err
		}
	}
	return nil
}
