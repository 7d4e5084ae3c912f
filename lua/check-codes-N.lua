-- Checks guesses of codes in turn: counts each, compares it, and consumes the code when it is right.
-- One step, so that parallel guesses can't be compared before they are counted.
--
-- KEYS     per guess the code: "<notice id> <tries left> <digest>", written by remember-codes-N.lua
-- ARGV[1]  how many digests each guess has (one per secret in use)
-- ARGV[2…] per guess: the notice id it is for, or "" for whichever code is current; then its digests
-- returns  per guess: a notice id: right, and the code is gone
--          | tries left: wrong; at 0 the code is gone
--          | -1: there is no such code
local digests, answers = tonumber(ARGV[1]), {}

local function check(key, at)
  local stored = redis.pcall('GET', key)
  if type(stored) ~= 'string' then return -1 end
  local id, tries, digest = string.match(stored, '^(%S+) (%d+) (%S+)$')
  if ARGV[at] ~= '' and ARGV[at] ~= id then return -1 end

  local left = tonumber(tries) - 1
  local isRight = false
  for i = at + 1, at + digests do
    if ARGV[i] == digest then isRight = true end
  end
  if isRight or left <= 0 then
    redis.call('DEL', key)
  else
    redis.call('SET', key, id .. ' ' .. left .. ' ' .. digest, 'KEEPTTL')
  end
  return isRight and id or left
end

for guess, key in ipairs(KEYS) do
  answers[guess] = check(key, 2 + (guess - 1) * (digests + 1))
end
return answers
