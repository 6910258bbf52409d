-- The clock and the record of KEYS[1]. Writes nothing: what follows is computed by the caller.
-- Answers the clock as a double, then the record ('' for none).
return pack('<d', now) .. (redis.call('GET', KEYS[1]) or '')
