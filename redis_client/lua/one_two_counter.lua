-- One decision of a sliding window of style counter. ARGV: as for a fixed window, then tick and ticks of a window.
local stored, life = redis.call('GET', KEYS[1]), ARGV[5]
local code, retry_after, delay, at, start, used, previous, tail, newest =
  two_counter_take(stored, now, ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, tonumber(ARGV[4]), ARGV[6] + 0, ARGV[7] + 0)
