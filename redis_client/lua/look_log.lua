-- What one_log.lua would decide ('' as fourth argument), or what is left ('peek'): the same answer, nothing written. KEYS and ARGV as there.
local stored = redis.call('GET', KEYS[1])
local at, start, used, previous, tail, newest = log_advance(stored, KEYS[2], now, ARGV[2] + 0)
local advanced = pack('<dddddd', at, start, used, previous, tail, newest)
local code, retry_after, delay
code, retry_after, delay, at, start, used, previous, tail, newest =
  log_take(KEYS[2], ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, at, start, used, previous, tail, newest)
local until_when = -never
if stored and #stored > 48 then until_when = unpack_from('<d', stored, 49) end
if code == 0 and at > now then retry_after = retry_after + (at - now) end
if until_when > at then code = 2 end
if code == 1 and ARGV[4] ~= 'peek' then advanced = pack('<dddddd', at, start, used, previous, tail, newest) end
return pack('<ddd', code, retry_after, code == 2 and now or 0) .. advanced .. pack('<d', until_when)
