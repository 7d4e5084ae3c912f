-- Deletes the values of subjects, and stores the time. Uses from before that time are never given back.
--
-- KEYS     the values of the parts, then for each the key with the time of its reset
-- ARGV[1]  ms for which requests are remembered
-- ARGV[2]  for tests: now, in ms
-- returns  1
local clock = ARGV[2] and { 0, ARGV[2] * 1000 } or redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local expiresAt = math.floor(micros / 1000) + ARGV[1]
local parts = #KEYS / 2
for p = 1, parts do
  redis.call('DEL', KEYS[p])
  redis.call('SET', KEYS[parts + p], string.format('%.0f', micros), 'PXAT', expiresAt)
end
return 1
