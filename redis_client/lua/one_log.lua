-- One decision of a sliding window of style log. KEYS[2]: its entries. ARGV: capacity, window, cost, '', life in milliseconds.
local stored, life = redis.call('GET', KEYS[1]), ARGV[5]
local code, retry_after, delay, at, start, used, previous, tail, newest =
  log_take(stored, KEYS[2], now, ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0)
if not stored or #stored == 48 or unpack_from('<d', stored, 49) <= at then
  if stored and unpack_from('<d', stored) > at then pull_back(KEYS[2], at) end
  if code == 1 then tail = add_entry(KEYS[2], used, ARGV[3] + 0, at, previous, tail, life) end
end
