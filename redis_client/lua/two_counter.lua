-- Twin of two_counter.hpp: advance and decide. `tick` and `ticks`, the ticks of a window, keep every product below 2^53.

-- How far into the following window `count` units have faded to `room`.
local function time_to_fade(window, tick, ticks, count, room)
  local faded = (ticks - floor(room * ticks / count)) * tick
  return faded < window and faded or window
end

local function two_counter_wait(capacity, window, tick, ticks, cost, at, start, used, previous)
  local need = capacity - cost
  local room, elapsed = need - used, at - start
  if room > 0 then return time_to_fade(window, tick, ticks, previous, room) - elapsed end
  if used <= need then return window - elapsed end
  return window + time_to_fade(window, tick, ticks, used, need) - elapsed
end

local function two_counter_take(stored, now, capacity, window, cost, anchor, tick, ticks)
  local at, start, used, previous, newest = window_state(stored, now, window, anchor)
  if at < start or at - start >= window then
    local first = window_holding(at, start, window)
    if at > start then
      previous = first - start == window and used or 0
      used = 0
    end
    start = first
  end
  local room = capacity - cost - used
  if room >= 0 and previous * (ticks - floor((at - start) / tick)) <= room * ticks then
    return 1, 0, 0, at, start, used + cost, previous, 0, newest
  end
  return 0, two_counter_wait(capacity, window, tick, ticks, cost, at, start, used, previous), 0, at, start, used, previous, 0, newest
end
