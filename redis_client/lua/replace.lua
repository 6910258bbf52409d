-- Writes ARGV[2] as the record of KEYS[1] if it still is ARGV[1] ('' for none), and nothing if KEYS[2] is a mark that is there
-- already. ARGV[3]: life in milliseconds; ARGV[4]: life of the mark, '' for none.
-- Answers 1 if it was written, 0 if the record is another, 2 if it was done before; the clock; the record that is there now.
local stored = redis.call('GET', KEYS[1]) or ''
local code = 0
if ARGV[4] ~= '' and redis.call('EXISTS', KEYS[2]) == 1 then
  code = 2
elseif stored == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  if ARGV[4] ~= '' then redis.call('SET', KEYS[2], '', 'PX', ARGV[4]) end
  code, stored = 1, ARGV[2]
end
return pack('<dd', code, now) .. stored
