-- Twin of fixed_window.hpp: advance and decide.

-- The start of the window that holds `now` when one window starts at `phase`.
local function window_holding(now, phase, window)
  return phase + floor((now - phase) / window) * window
end

-- The stored state, or a fresh one, with its newest time at `now`; not yet moved to the window that holds it.
local function window_state(stored, now, window, anchor)
  local at, start, used, previous, tail, newest = now, nil, 0, 0, 0, now
  if stored then
    at, start, used, previous, tail, newest = unpack_from('<dddddd', stored)
  else
    start = anchor and window_holding(now, anchor, window) or now
  end
  if at > now + clock_step or at < now then at = now end
  if newest > at then newest = at end
  return at, start, used, previous, newest
end

local function fixed_window_take(stored, now, capacity, window, cost, anchor)
  local at, start, used, _, newest = window_state(stored, now, window, anchor)
  if at < start or at - start >= window then
    if at > start then used = 0 end
    start = window_holding(at, start, window)
  end
  if used <= capacity - cost then return 1, 0, 0, at, start, used + cost, 0, 0, newest end
  return 0, start + window - at, 0, at, start, used, 0, 0, newest
end
