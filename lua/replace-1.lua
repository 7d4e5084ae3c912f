-- Puts a value in place of the one that was read, unless that has changed since.
-- KEYS    the value
-- ARGV    what was read (empty: nothing), what is to be there, ms it lives at least
-- returns 1 if it was replaced, else 0
local call = redis.call
if (call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[1] ~= '' then call('SET', KEYS[1], ARGV[2], 'PX', math.max(call('PTTL', KEYS[1]), ARGV[3])) end
return 1
