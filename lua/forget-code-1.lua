-- Removes a code whose notice was never made, unless a newer one has taken its place.
--
-- KEYS[1]  the code, as in remember-codes-N.lua
-- ARGV[1]  the notice id it must still belong to
-- returns  1 removed, 0 not there or another's
local stored = redis.call('GET', KEYS[1])
if stored and string.sub(stored, 1, #ARGV[1] + 1) == ARGV[1] .. ' ' then
  return redis.call('DEL', KEYS[1])
end
return 0
