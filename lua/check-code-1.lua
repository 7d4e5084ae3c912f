-- Checks one guess of a code: counts it, compares it, and consumes the code when it is right.
-- One step, so that parallel guesses can't be compared before they are counted.
--
-- KEYS[1]  the code: "<notice id> <tries left> <digest>", written by the store with its time to live
-- ARGV[1]  the notice id the guess is for, or "" for whichever code is current
-- ARGV[2…] digests of the guess (one per secret in use)
-- returns  {1, notice id} right, and the code is gone
--          {0, tries left} wrong; at 0 the code is gone
--          {-1}            there is no such code
local stored = redis.call('GET', KEYS[1])
if not stored then return {-1} end
local id, tries, digest = string.match(stored, '^(%S+) (%d+) (%S+)$')
if ARGV[1] ~= '' and ARGV[1] ~= id then return {-1} end

local left = tonumber(tries) - 1
local right = false
for i = 2, #ARGV do
  if ARGV[i] == digest then right = true end
end

if right then
  redis.call('DEL', KEYS[1])
  return {1, id}
end
if left <= 0 then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], id .. ' ' .. left .. ' ' .. digest, 'KEEPTTL')
end
return {0, left}
