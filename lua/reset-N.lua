-- Forgets what rules know of a subject, and remembers when, so that nothing taken before is given back again.
-- KEYS     the values of the parts, then as many for the time of their reset
-- ARGV[1]  how long requests are remembered, in ms
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
