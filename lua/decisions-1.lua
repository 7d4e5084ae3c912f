-- Adds what was decided to the record, by Redis' clock.
-- KEYS[1]  the record: a stream of {d = "<ms since 1970>[…]"}
-- ARGV[1]  how many it may have; [2] ms that one lives; then per record how many ms ago it was, and its JSON
-- returns  how many it has now, and how many ms it reaches back
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local key, maxRecords, livesMs = KEYS[1], ARGV[1], tonumber(ARGV[2])
for place = 3, #ARGV, 2 do
  redis.call('XADD', key, '*', 'd', string.format('%.0f', now - ARGV[place]) .. ARGV[place + 1])
end
redis.call('XTRIM', key, 'MINID', '~', string.format('%.0f', now - livesMs))
redis.call('XTRIM', key, 'MAXLEN', '~', maxRecords)
redis.call('PEXPIRE', key, livesMs)
local oldest = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
return { redis.call('XLEN', key), oldest and now - tonumber(oldest[1]:match('^%d+')) or 0 }
