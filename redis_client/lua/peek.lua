-- The clock and the records of KEYS as they are: what is not decided under contention is computed by the caller. Writes nothing.
local found = redis.call('MGET', unpack(KEYS))
local answer = {struct.pack('<d', now)}
for i = 1, #KEYS do answer[i + 1] = found[i] or '' end
return answer
