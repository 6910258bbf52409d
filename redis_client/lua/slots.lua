-- Leased slots. KEYS: leases (a sorted set: numbers of slots, by the end of their leases; 0: free), holders (a hash: number of a slot to fence,
-- length and time of the lease as doubles, then the worker), and the last fence.
-- ARGV: acquire, release, renew, peek or sync; slots; lease; worker; number of a slot or -1; fence or 0; life of the keys in milliseconds.
-- A slot is there from its first use on. Never more leases live than there are slots: surplus slots that are held count, too.
-- Answers eight doubles: done; slot; fence; end of the lease; retry_after; held; surplus slots deleted; surplus slots that are held.
local leases, holders, fences = KEYS[1], KEYS[2], KEYS[3]
local op, slots, lease, worker, wanted, fence = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[4], ARGV[5], ARGV[6] + 0
local above_now = string.format('(%.0f', now)

-- A surplus slot goes once nobody holds it. Answers how many went, and how many are held.
local function drop_surplus()
  local deleted, kept, all = 0, 0, redis.call('ZRANGE', leases, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    if all[i] + 0 >= slots and all[i + 1] + 0 > now then
      kept = kept + 1
    elseif all[i] + 0 >= slots then
      redis.call('ZREM', leases, all[i])
      redis.call('HDEL', holders, all[i])
      deleted = deleted + 1
    end
  end
  return deleted, kept
end

-- Leases that were written in what is now the future, because the clock was set back, begin anew.
local function anchor()
  local last = redis.call('ZREVRANGE', leases, 0, 0, 'WITHSCORES')
  if not last[1] or last[2] + 0 <= now + lease + clock_step then return end
  for _, slot in ipairs(redis.call('ZRANGEBYSCORE', leases, above_now, '+inf')) do
    local its_fence, length, written = unpack_from('<ddd', redis.call('HGET', holders, slot))
    if written > now + clock_step then
      redis.call('ZADD', leases, now + length, slot)
      redis.call('HSET', holders, slot, pack('<ddd', its_fence, length, now) .. string.sub(redis.call('HGET', holders, slot), 25))
    end
  end
end

local function held()
  return redis.call('ZCOUNT', leases, above_now, '+inf')
end

-- Until so many leases have ended that one more may begin. REQUIRES: count >= slots.
local function wait_for(count)
  return redis.call('ZRANGEBYSCORE', leases, above_now, '+inf', 'WITHSCORES', 'LIMIT', count - slots, 1)[2] - now
end

local function free_slot()
  local free = redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, 1)[1]
  if free then return free end
  local number = redis.call('ZCARD', leases)
  while redis.call('ZSCORE', leases, number) do number = number - 1 end  -- there is a gap where a surplus slot went
  return number
end

local function write_lease(slot, its_fence, length, its_worker)
  redis.call('ZADD', leases, now + length, slot)
  redis.call('HSET', holders, slot, pack('<ddd', its_fence, length, now) .. its_worker)
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[7]) end
  return pack('<dddddddd', 1, slot, its_fence, now + length, 0, held(), 0, 0)
end

local function is_held_by_asker(slot)
  local ends, holder = redis.call('ZSCORE', leases, slot), redis.call('HGET', holders, slot)
  if not ends or not holder or ends + 0 <= now then return false end
  if fence ~= 0 and unpack_from('<d', holder) ~= fence then return false end
  return (fence ~= 0 or worker ~= '') and (worker == '' or string.sub(holder, 25) == worker)
end

-- The slot that is meant, if the asker holds it.
local function slot_of_asker()
  if wanted + 0 >= 0 then return is_held_by_asker(wanted) and wanted or nil end
  for _, slot in ipairs(redis.call('HKEYS', holders)) do
    if is_held_by_asker(slot) then return slot end
  end
end

if op == 'acquire' or op == 'peek' then
  local deleted = 0
  if redis.call('ZCARD', leases) > slots then deleted = drop_surplus() end
  local count = held()
  if count >= slots then
    anchor()
    count = held()
  end
  if count >= slots then return pack('<dddddddd', 0, -1, 0, 0, wait_for(count), count, deleted, 0) end
  if op == 'peek' then return pack('<dddddddd', 0, -1, 0, 0, 0, count, deleted, 0) end
  -- Grows with the clock, so that it grows even if its key is lost.
  local next_fence = math.max((redis.call('GET', fences) or 0) + 1, now)
  redis.call('SET', fences, string.format('%.0f', next_fence))
  return write_lease(free_slot(), next_fence, lease, worker)
end

if op == 'sync' then
  local deleted, kept = drop_surplus()
  return pack('<dddddddd', 1, -1, 0, 0, 0, held(), deleted, kept)
end

anchor()
local slot = slot_of_asker()
if not slot then return pack('<dddddddd', 0, -1, 0, 0, 0, held(), 0, 0) end
local holder = redis.call('HGET', holders, slot)
local its_fence, length = unpack_from('<dd', holder)
if op == 'renew' then return write_lease(slot, its_fence, length, string.sub(holder, 25)) end
redis.call('HDEL', holders, slot)
if slot + 0 >= slots then redis.call('ZREM', leases, slot) else redis.call('ZADD', leases, 0, slot) end
return pack('<dddddddd', 1, slot, its_fence, 0, 0, held(), 0, 0)
