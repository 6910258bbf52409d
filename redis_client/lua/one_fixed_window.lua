-- One decision of a fixed window. ARGV: capacity, window, cost, an instant at which a window starts or '', life in milliseconds.
local stored, life = redis.call('GET', KEYS[1]), ARGV[5]
local code, retry_after, delay, at, start, used, previous, tail, newest =
  fixed_window_take(stored, now, ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, tonumber(ARGV[4]))
