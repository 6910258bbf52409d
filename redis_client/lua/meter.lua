-- Twin of meter.hpp: advance and reserve.
-- Divisions are exact: for whole numbers below 2^53 a quotient never rounds to the next whole number.

local function meter_advance(n, now, at, start, used, tail, newest)
  if at > now + clock_step then  -- set back
    if tail > at then tail = now + (tail - at) else tail = now end
    if start > now then start = now end
    if newest > now then newest = now end
    return now, start, used, tail, newest
  end
  if at >= now then return at, start, used, tail, newest end
  if used > 0 and n > 0 then
    local elapsed = now - at
    if elapsed >= ceil(used / n) then used = 0 else used = used - n * elapsed end
  end
  return now, start, used, tail, newest
end

-- full: capacity in grains; n: grains regained per microsecond; grains: the cost.
local function meter_take(stored, now, full, n, grains, max_wait)
  local at, start, used, previous, tail, newest = now, now - 1, 0, 0, now, now
  if stored then at, start, used, previous, tail, newest = unpack_from('<dddddd', stored) end
  at, start, used, tail, newest = meter_advance(n, now, at, start, used, tail, newest)
  local over, wait = used - (full - grains), 0
  local too_much = used - (9007199254740991 - grains)
  if over > 0 then wait = n == 0 and never or ceil(over / n) end
  if wait > max_wait or wait == never or too_much > 0 then
    local retry_after = wait - max_wait
    if too_much > 0 and n > 0 and ceil(too_much / n) > retry_after then retry_after = ceil(too_much / n) end
    if wait == never or (too_much > 0 and n == 0) then retry_after = never end
    return 0, retry_after, 0, at, start, used, 0, tail, newest
  end
  used = used + grains
  if at + wait > tail then tail = at + wait end
  return 1, 0, wait, at, start, used, 0, tail, newest
end
