-- Reads what rules know of a subject, and the time by which to judge it.
-- KEYS    one per part
-- returns seconds, microseconds, list of values (nil: none, or of another type)
local clock = redis.call('TIME')
return { clock[1], clock[2], redis.call('MGET', unpack(KEYS)) }
