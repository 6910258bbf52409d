-- A bucket's record: the six integers of state.hpp as doubles, and a seventh if the bucket is paused: until when.
-- All are whole numbers below 2^53, so doubles hold them exactly. Few functions: each costs every call the making of a closure.
local floor, ceil, never, clock_step = math.floor, math.ceil, math.huge, 1000000
local pack, unpack_from = struct.pack, struct.unpack
