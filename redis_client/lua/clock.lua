-- now: this server's clock, microseconds since 1970. One reading for the whole script.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
