-- Forgets what rules know of a subject, and remembers when, so that nothing taken before is given back again.
-- KEYS    one per part, then one per part for the time of its reset
-- ARGV    how long requests are remembered, in ms
-- returns 1
local clock = redis.call('TIME')
local now = ('%.0f'):format(clock[1] * 1000000 + clock[2])
local parts = #KEYS / 2
for p = 1, parts do
  redis.call('DEL', KEYS[p])
  redis.call('SET', KEYS[parts + p], now, 'PX', ARGV[1])
end
return 1
