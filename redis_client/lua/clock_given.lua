-- now: given as the last argument, in builds of the tests only.
local now = ARGV[#ARGV] + 0
