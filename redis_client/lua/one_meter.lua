-- One decision of a bucket or gcra. ARGV: capacity in grains, grains regained per microsecond, cost in grains, longest wait, life.
-- life: milliseconds the record is kept; it covers a debt up to the capacity. A place further ahead makes it longer.
local stored, life = redis.call('GET', KEYS[1]), ARGV[5]
local full, n = ARGV[1] + 0, ARGV[2] + 0
local code, retry_after, delay, at, start, used, previous, tail, newest = meter_take(stored, now, full, n, ARGV[3] + 0, ARGV[4] + 0)
if used > full and n > 0 then life = ceil((used - full) / n / 1000) + life end
