package redis

import "github.com/redis/rueidis"

// What the scripts that join answer first.
const (
	took      = iota // a new number; then the number, and 1 where it was taken in the waiting phase
	had              // a number from before; then it, packed
	unknown          // the room is not known
	closed           // nobody may join now
	limit            // no number is left below the limit
	identity         // another customer has the identity
	claimed          // the customer is ours for a while
	busy             // somebody else is taking a number for the customer
	forgotten        // the claim has passed to somebody else
)

// A room is a hash: phase, lanes (how many), and for each lane n (the next number), l (the limit), f (how many there were at
// the freeze). take is how each script takes a number of it: the phase and the counter lie in one key, so that no number can
// be taken as drawn once N is frozen.
const take = `
local function take(room, lane)
  local r = redis.call('HMGET', room, 'phase', 'n'..lane, 'l'..lane)
  if not r[1] then return {2} end
  local phase = tonumber(r[1])
  if phase ~= 1 and phase ~= 2 then return {3} end
  if not r[2] or tonumber(r[2]) >= tonumber(r[3]) then return {4} end
  local number = redis.call('HINCRBY', room, 'n'..lane, 1) - 1
  return {0, number, phase == 1 and 1 or 0}
end
`

// A member is what a customer has, in a hash of a few dozen customers, which Redis keeps in a few bytes each: the packed number
// (number × 32 + lane × 2 + drawn), and behind a colon the identity, where there is one.
const member = `
local function pack(lane, got) return string.format('%.0f', got[2]*32 + lane*2 + got[3]) end
local function packed(value) return tonumber(string.match(value, '^%d+')) end
local function keep(who, customer, value, doc, ttl)
  if doc ~= '' then value = value..':'..doc end
  redis.call('HSET', who, customer, value)
  redis.call('EXPIRE', who, ttl)
end
`

// joinScript does all in one step, where all keys lie on one server.
// KEYS: room, who, doc. ARGV: lane, customer, identity, seconds to keep.
var joinScript = rueidis.NewLuaScript(take + member + `
local lane, customer, id, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('EXISTS', KEYS[1]) == 0 then return {2} end
local has = redis.call('HGET', KEYS[2], customer)
if has then return {1, packed(has)} end
if id ~= '' then
  local other = redis.call('HGET', KEYS[3], id)
  if other and other ~= customer then return {5} end
end
local got = take(KEYS[1], lane)
if got[1] ~= 0 then return got end
keep(KEYS[2], customer, pack(tonumber(lane), got), id, ttl)
if id ~= '' then
  redis.call('HSET', KEYS[3], id, customer)
  redis.call('EXPIRE', KEYS[3], ttl)
end
return got
`)

// In a cluster a customer lies in another slot than the room, so joining is three steps under a claim on the customer.
var (
	// claimScript. KEYS: who, claim. ARGV: customer, nonce, milliseconds.
	claimScript = rueidis.NewLuaScript(member + `
local has = redis.call('HGET', KEYS[1], ARGV[1])
if has then return {1, packed(has)} end
if redis.call('SET', KEYS[2], ARGV[2], 'NX', 'PX', ARGV[3]) then return {6} end
return {7}
`)
	// takeScript. KEYS: room. ARGV: lane.
	takeScript = rueidis.NewLuaScript(take + `return take(KEYS[1], ARGV[1])`)

	// settleScript keeps the number, unless the claim has passed to somebody else meanwhile.
	// KEYS: who, claim. ARGV: customer, nonce, lane, number, drawn, identity, seconds to keep.
	settleScript = rueidis.NewLuaScript(member + `
local has = redis.call('HGET', KEYS[1], ARGV[1])
if has then return {1, packed(has)} end
local mine = redis.call('GET', KEYS[2])
if mine and mine ~= ARGV[2] then return {8} end
keep(KEYS[1], ARGV[1], pack(tonumber(ARGV[3]), {0, tonumber(ARGV[4]), tonumber(ARGV[5])}), ARGV[6], ARGV[7])
if mine then redis.call('DEL', KEYS[2]) end
return {0}
`)
	// unclaimScript. KEYS: claim. ARGV: nonce.
	unclaimScript = rueidis.NewLuaScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return {0}
`)
	// holdScript makes an identity the customer's. KEYS: doc. ARGV: identity, customer, seconds to keep.
	// It answers 0 where it was nobody's, 1 where it was the customer's.
	holdScript = rueidis.NewLuaScript(`
local other = redis.call('HGET', KEYS[1], ARGV[1])
if other then
  if other ~= ARGV[2] then return {5} end
  return {1}
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return {0}
`)
)

// freezeScript. KEYS: room. It answers nothing for an unknown room.
var freezeScript = rueidis.NewLuaScript(`
local r = redis.call('HMGET', KEYS[1], 'phase', 'lanes')
if not r[1] then return {} end
local frozen = tonumber(r[1]) >= 2
local counts = {}
for i = 0, tonumber(r[2]) - 1 do
  local f = frozen and redis.call('HGET', KEYS[1], 'f'..i)
  if not f then -- a lane that came later had nobody then
    f = frozen and '0' or redis.call('HGET', KEYS[1], 'n'..i)
    redis.call('HSET', KEYS[1], 'f'..i, f)
  end
  counts[i+1] = tonumber(f)
end
if not frozen then redis.call('HSET', KEYS[1], 'phase', 2) end
return counts
`)

// restoreScript lowers nothing. KEYS: room. ARGV: phase, seconds to keep, then the next number and limit of each lane.
var restoreScript = rueidis.NewLuaScript(`
local room = KEYS[1]
local was = redis.call('HMGET', room, 'phase', 'lanes')
local before, lanes = tonumber(was[1] or -1), tonumber(was[2] or 0)
local phase = math.max(before, tonumber(ARGV[1]))
for i = 0, (#ARGV - 2) / 2 - 1 do
  for k, field in ipairs({'n', 'l'}) do
    local wanted = ARGV[2 + 2*i + k]
    local has = redis.call('HGET', room, field..i)
    if not has or tonumber(has) < tonumber(wanted) then redis.call('HSET', room, field..i, wanted) end
  end
  lanes = math.max(lanes, i + 1)
end
if phase >= 2 and before < 2 then -- frozen by somebody else, or before the room was lost
  for i = 0, lanes - 1 do redis.call('HSET', room, 'f'..i, redis.call('HGET', room, 'n'..i)) end
end
redis.call('HSET', room, 'phase', phase, 'lanes', lanes)
redis.call('EXPIRE', room, ARGV[2])
return {0}
`)

// What Remember and Leave do.
var (
	// rememberScript. KEYS: who. ARGV: seconds to keep, then for each customer: the customer, and the member's value, or a minus
	// and the packed number which they have given up.
	rememberScript = rueidis.NewLuaScript(member + `
for i = 2, #ARGV, 2 do
  local customer, value = ARGV[i], ARGV[i+1]
  if string.sub(value, 1, 1) == '-' then
    local has = redis.call('HGET', KEYS[1], customer)
    if has and math.floor(packed(has) / 2) == math.floor(-tonumber(value) / 2) then redis.call('HDEL', KEYS[1], customer) end
  else
    redis.call('HSET', KEYS[1], customer, value)
  end
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return {0}
`)
	// identifyScript. KEYS: doc. ARGV: seconds to keep, then for each identity: it, its customer, and whether it is theirs.
	identifyScript = rueidis.NewLuaScript(`
for i = 2, #ARGV, 3 do
  if ARGV[i+2] == '1' then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i+1])
  elseif redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i+1] then
    redis.call('HDEL', KEYS[1], ARGV[i])
  end
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return {0}
`)
	// leaveScript answers the identity of a member who had the number, "" where there was none; nothing where they had not.
	// KEYS: who. ARGV: customer, number.
	leaveScript = rueidis.NewLuaScript(member + `
local has = redis.call('HGET', KEYS[1], ARGV[1])
if not has or math.floor(packed(has) / 32) ~= tonumber(ARGV[2]) then return {} end
redis.call('HDEL', KEYS[1], ARGV[1])
local colon = string.find(has, ':', 1, true)
return {colon and string.sub(has, colon + 1) or ''}
`)
)
