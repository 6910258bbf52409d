-- One decision of a sliding window of style log. KEYS[2]: its entries. ARGV: capacity, window, cost, '', life in milliseconds, id of the entry.
local stored, life = redis.call('GET', KEYS[1]), ARGV[5]
local at, start, used, previous, tail, newest = log_advance(stored, KEYS[2], now, ARGV[2] + 0)
local stepped, paused = stored and unpack_from('<d', stored) > at, stored and #stored > 48 and unpack_from('<d', stored, 49) > at
if stepped then pull_back(KEYS[2], at) end
if paused then
  stored = pack('<dddddd', at, start, used, previous, tail, newest) .. string.sub(stored, 49)
  if stepped then redis.call('SET', KEYS[1], stored, 'KEEPTTL') end
end
local code, retry_after, delay
code, retry_after, delay, at, start, used, previous, tail, newest =
  log_take(KEYS[2], ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, at, start, used, previous, tail, newest)
if code == 1 and not paused then tail = add_entry(KEYS[2], ARGV[6], used, ARGV[3] + 0, at, previous, tail, life) end
