-- Writes ARGV[2] as the record of KEYS[1] if it is still ARGV[1] ('' for none); '' deletes it. Answers the clock and the record that is there now.
-- ARGV[3]: life in milliseconds.
local stored = redis.call('GET', KEYS[1]) or ''
if stored == ARGV[1] then
  if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
  stored = ARGV[2]
end
return {struct.pack('<d', now), stored}
