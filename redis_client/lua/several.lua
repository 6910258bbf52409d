-- Several decisions: all or nothing, or each on its own. KEYS: a bucket and its entries (the bucket again, if it has none) for each.
-- ARGV: 'all' or 'each'; then eight for each: m, f, c or l; the seven of its script for one decision ('' where it has less).
-- Answers the doubles of answer.lua for each, in one string. For 'all' no bucket may come twice.
local all, allowed, answers, codes, writes = ARGV[1] == 'all', true, {}, {}, {}

local function take(i)
  local a, key, entries = (i - 1) * 8 + 2, KEYS[2 * i - 1], KEYS[2 * i]
  local kind, life, stored = ARGV[a], ARGV[a + 5], redis.call('GET', KEYS[2 * i - 1])
  local x, y, cost = ARGV[a + 1] + 0, ARGV[a + 2] + 0, ARGV[a + 3] + 0
  local code, retry_after, delay, at, start, used, previous, tail, newest
  if kind == 'm' then
    code, retry_after, delay, at, start, used, previous, tail, newest = meter_take(stored, now, x, y, cost, ARGV[a + 4] + 0)
    if used > x and y > 0 then life = ceil((used - x) / y / 1000) + life end
  elseif kind == 'f' then
    code, retry_after, delay, at, start, used, previous, tail, newest = fixed_window_take(stored, now, x, y, cost, tonumber(ARGV[a + 4]))
  elseif kind == 'c' then
    code, retry_after, delay, at, start, used, previous, tail, newest =
      two_counter_take(stored, now, x, y, cost, tonumber(ARGV[a + 4]), ARGV[a + 6] + 0, ARGV[a + 7] + 0)
  else
    at, start, used, previous, tail, newest = log_advance(stored, entries, now, y)
    code, retry_after, delay, at, start, used, previous, tail, newest = log_take(entries, x, y, cost, at, start, used, previous, tail, newest)
  end
  if code == 0 and at > now then retry_after = retry_after + (at - now) end  -- for_caller of decision.hpp
  local until_when = -never
  if stored and #stored > 48 then until_when = unpack_from('<d', stored, 49) end
  if until_when > at then
    allowed = false
    if unpack_from('<d', stored) > at then  -- the clock was set back
      if code == 1 then used = used - cost end
      stored = pack('<ddddddd', at, start, used, previous, tail, newest, until_when)
      redis.call('SET', key, stored, 'KEEPTTL')
    end
    answers[i] = pack('<ddddddddd', 2, retry_after, now, unpack_from('<dddddd', stored)) .. pack('<d', until_when)
    return
  end
  local stepped = stored and unpack_from('<d', stored) > at
  codes[i] = code
  if code == 0 then allowed = false end
  answers[i] = pack('<dddddddddd', code, retry_after, delay, at, start, used, previous, tail, newest, until_when)
  if code == 0 and not stepped then return end
  writes[i] = function()
    if kind == 'l' and stepped then pull_back(entries, at) end
    if kind == 'l' and code == 1 then tail = add_entry(entries, ARGV[a + 6], used, cost, at, previous, tail, life) end
    local record = pack('<dddddd', at, start, used, previous, tail, newest)
    if until_when ~= -never then record = record .. pack('<d', until_when) end  -- it is over, unless the clock is set back
    redis.call('SET', key, record, 'PX', life)
  end
end

for i = 1, #KEYS / 2 do
  take(i)
  if not all and writes[i] then writes[i]() end
end
-- Refused together: nothing is taken, but whoever refused goes on from the new time if the clock was set back.
for i = 1, all and #KEYS / 2 or 0 do
  if writes[i] and (allowed or codes[i] == 0) then writes[i]() end
end
return table.concat(answers)
