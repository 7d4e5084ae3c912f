-- Reads the values of policies for one or more calls, and the time.
--
-- KEYS     the values of the parts, as in acquire-N.lua
-- ARGV[1]  for tests: now, in ms
-- returns  now in ms, and the values (nil: none, or of another type)
local clock = ARGV[1] and { 0, ARGV[1] * 1000 } or redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
return { now, redis.call('MGET', unpack(KEYS)) }
