-- Writes the state if the call was allowed, or the clock was set back; a paused bucket stays as it is.
-- Answers ten doubles: 1 allowed, 0 denied or 2 paused; retry_after; delay (if paused: now); the six of the state; until when it is paused.
local until_when = -never
if stored and #stored > 48 then until_when = unpack_from('<d', stored, 49) end
if until_when > at then  -- the stored state, as nothing was taken
  return pack('<ddddddddd', 2, retry_after, now, unpack_from('<dddddd', stored)) .. pack('<d', until_when)
end
if code == 1 or (stored and unpack_from('<d', stored) > at) then
  redis.call('SET', KEYS[1], pack('<dddddd', at, start, used, previous, tail, newest), 'PX', life)
end
return pack('<dddddddddd', code, retry_after, delay, at, start, used, previous, tail, newest, until_when)
