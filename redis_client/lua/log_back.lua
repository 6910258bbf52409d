-- Gives units of a sliding log back, or debits some. KEYS: the bucket, its entries, and a mark that this was done ('' as its life: none).
-- ARGV: window; 'newest', 'entry', 'debit' or 'reset'; units; id and time of the entry; life of the record; life of the mark.
-- Answers eight doubles: units given back, now, the six of the state.

-- The rank of the first entry that is not older than `at`. Entries lie in the order of time.
local function first_rank_at(entries, at)
  local low, high = 0, redis.call('ZCARD', entries)
  while low < high do
    local middle = floor((low + high) / 2)
    local _, _, entry_at = unpack_from('<ddd', redis.call('ZRANGE', entries, middle, middle)[1])
    if entry_at < at then low = middle + 1 else high = middle end
  end
  return low
end

-- Entries lie at the time of their decision, or earlier if the clock was set back since: then some before are looked at, too.
local function entry_with_id(entries, id, at)
  local rank = first_rank_at(entries, at + 1)
  if rank == 0 then return nil end
  for _, member in ipairs(redis.call('ZRANGE', entries, math.max(0, rank - 1000), rank - 1)) do
    if string.sub(member, 25) == id then return member end
  end
end

-- Takes up to `units` off one entry and numbers the later ones anew.
local function take_from(entries, member, units)
  local upto, cost, entry_at = unpack_from('<ddd', member)
  local taken, id = math.min(units, cost), string.sub(member, 25)
  local later = redis.call('ZRANGEBYSCORE', entries, string.format('(%.0f', upto), '+inf')
  redis.call('ZREM', entries, member)
  if cost > taken then redis.call('ZADD', entries, upto - taken, pack('<ddd', upto - taken, cost - taken, entry_at) .. id) end
  for _, other in ipairs(later) do
    local other_upto, other_cost, other_at = unpack_from('<ddd', other)
    redis.call('ZREM', entries, other)
    redis.call('ZADD', entries, other_upto - taken, pack('<ddd', other_upto - taken, other_cost, other_at) .. string.sub(other, 25))
  end
  return taken
end

local stored = redis.call('GET', KEYS[1])
local window, units = ARGV[1] + 0, ARGV[3] + 0
-- What is given back comes after all that was decided before, be it by a microsecond: so no two decisions of a bucket look alike.
if ARGV[7] ~= '' or ARGV[2] == 'newest' then
  local last = math.max(stored and unpack_from('<d', stored) or now, ARGV[5] + 0)
  if last <= now + clock_step then now = math.max(now, last + 1) end
end
local at, start, used, previous, tail, newest = log_advance(stored, KEYS[2], now, window)
if stored and unpack_from('<d', stored) > at then pull_back(KEYS[2], at) end

local first_time = ARGV[7] == '' or redis.call('SET', KEYS[3], '', 'NX', 'PX', ARGV[7])
local given_back = 0
if not first_time then
  units = 0
elseif ARGV[2] == 'reset' then
  redis.call('UNLINK', KEYS[2])
  at, start, used, previous, tail, newest = now, now, 0, 0, 0, now
elseif ARGV[2] == 'debit' then
  units = math.max(0, math.min(units, 4503599627370496 - (used - previous), 9007199254740991 - used))
  if units > 0 then
    if used == previous then start = at end
    used, newest = used + units, at
    tail = add_entry(KEYS[2], ARGV[4], used, units, at, previous, tail, ARGV[6])
  end
  given_back = -units
else
  local member = ARGV[2] == 'entry' and entry_with_id(KEYS[2], ARGV[4], ARGV[5] + 0) or redis.call('ZREVRANGE', KEYS[2], 0, 0)[1]
  if ARGV[2] == 'entry' and member and string.sub(member, 25) ~= ARGV[4] then member = nil end
  while member and given_back < units and used > previous and unpack_from('<d', member) > previous do
    local taken = take_from(KEYS[2], member, units - given_back)
    given_back, used = given_back + taken, used - taken
    member = ARGV[2] == 'newest' and redis.call('ZREVRANGE', KEYS[2], 0, 0)[1] or nil
  end
  if given_back > 0 and used > previous then
    local _, _, first_at = reaching(KEYS[2], previous + 1, start)
    local _, _, last_at = unpack_from('<ddd', redis.call('ZREVRANGE', KEYS[2], 0, 0)[1])
    start, newest = first_at, last_at
  end
end
if stored or first_time then
  local pause = stored and #stored > 48 and string.sub(stored, 49) or ''
  redis.call('SET', KEYS[1], pack('<dddddd', at, start, used, previous, tail, newest) .. pause, 'PX', ARGV[6])
end
return pack('<dddddddd', given_back, now, at, start, used, previous, tail, newest)
