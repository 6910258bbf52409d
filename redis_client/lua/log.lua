-- Twin of log.hpp: skip_left and decide. An entry is a member of a sorted set: its last unit, its cost and its time as doubles, then its id (16
-- bytes); its score is the number of the last unit.

local function reaching(entries, unit, otherwise)
  local found = redis.call('ZRANGEBYSCORE', entries, unit, '+inf', 'LIMIT', 0, 1)
  if not found[1] then return unit, 1, otherwise end  -- evicted with the memory of others: as old as the oldest
  return unpack_from('<ddd', found[1])
end

local function has_left(window, entry_at, at)
  return at > entry_at and at - entry_at >= window
end

-- start and previous, past every entry that has left. First doubling steps, then halving.
local function log_skip_left(entries, window, at, start, used, previous, newest)
  if used == previous or not has_left(window, start, at) then return start, previous end
  if has_left(window, newest, at) then return start, used end
  local gone, there, step, first_at = previous, used, 1, newest
  while there - gone > 1 do
    local unit = gone + math.min(step, floor((there - gone) / 2))
    local upto, cost, entry_at = reaching(entries, unit, start)
    if has_left(window, entry_at, at) then
      gone, step = upto, step * 2
    else
      there, first_at, step = math.min(upto - cost + 1, unit), entry_at, never  -- it ends, whatever is stored
    end
  end
  return math.min(first_at, at), gone
end

local function log_advance(stored, entries, now, window)
  local at, start, used, previous, tail, newest = now, now, 0, 0, 0, now
  if stored then at, start, used, previous, tail, newest = unpack_from('<dddddd', stored) end
  if at > now + clock_step or at < now then at = now end
  if start > at then start = at end
  if newest > at then newest = at end
  start, previous = log_skip_left(entries, window, at, start, used, previous, newest)
  return at, start, used, previous, tail, newest
end

-- From the state that log_advance answered.
local function log_take(entries, capacity, window, cost, at, start, used, previous, tail, newest)
  local live = used - previous
  if live > capacity - cost then
    local must_leave, entry_at = used + cost - capacity, start
    if must_leave ~= previous + 1 then
      local _, _, found_at = reaching(entries, must_leave, start)
      entry_at = math.min(found_at, at)
    end
    return 0, entry_at + window - at, 0, at, start, used, previous, tail, newest
  end
  if live == 0 then start = at end
  return 1, 0, 0, at, start, used + cost, previous, tail, at
end

-- Stores the entry that log_take has counted, and deletes some that have left: bounded, so that no call takes long. Answers the new tail.
local function add_entry(entries, id, used, cost, at, previous, tail, life)
  if previous == used - cost and previous > tail then
    redis.call('UNLINK', entries)
    tail = previous
  elseif previous > tail then
    tail = math.min(previous, tail + 64)
    redis.call('ZREMRANGEBYSCORE', entries, '-inf', tail)
  end
  redis.call('ZADD', entries, used, pack('<ddd', used, cost, at) .. id)
  redis.call('PEXPIRE', entries, life)
  return tail
end

-- The clock was set back: entries of the future become entries of `at`.
local function pull_back(entries, at)
  local last = '+inf'
  while true do
    local some = redis.call('ZREVRANGEBYSCORE', entries, last, '-inf', 'LIMIT', 0, 100)
    for _, member in ipairs(some) do
      local upto, cost, entry_at = unpack_from('<ddd', member)
      if entry_at <= at then return end
      redis.call('ZREM', entries, member)
      redis.call('ZADD', entries, upto, pack('<ddd', upto, cost, at) .. string.sub(member, 25))
      last = string.format('(%.0f', upto)
    end
    if #some < 100 then return end
  end
end
