-- Writes the state if the call was allowed, or the clock was set back.
-- Answers ten doubles: 1 allowed, 0 denied or 2 paused; retry_after; delay (if paused: now); the six of the state; until when it is paused.
if code == 0 and at > now then retry_after = retry_after + (at - now) end  -- for_caller of decision.hpp
local until_when = -never
if stored and #stored > 48 then until_when = unpack_from('<d', stored, 49) end
if until_when > at then  -- the stored state, as nothing was taken
  if unpack_from('<d', stored) > at then  -- but the clock was set back
    if code == 1 then used = used - ARGV[3] end
    stored = pack('<ddddddd', at, start, used, previous, tail, newest, until_when)
    redis.call('SET', KEYS[1], stored, 'KEEPTTL')
  end
  return pack('<ddddddddd', 2, retry_after, now, unpack_from('<dddddd', stored)) .. pack('<d', until_when)
end
if code == 1 or (stored and unpack_from('<d', stored) > at) then
  local record = pack('<dddddd', at, start, used, previous, tail, newest)
  if until_when ~= -never then record = record .. pack('<d', until_when) end  -- it is over, unless the clock is set back
  redis.call('SET', KEYS[1], record, 'PX', life)
end
return pack('<dddddddddd', code, retry_after, delay, at, start, used, previous, tail, newest, until_when)
