-- Puts a value in place of the one that was read, unless that has changed since.
-- KEYS    the value
-- ARGV    what was read, what is to be there, ms it lives at least
-- returns 1 if it was replaced, else 0
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', math.max(redis.call('PTTL', KEYS[1]), ARGV[3]))
return 1
