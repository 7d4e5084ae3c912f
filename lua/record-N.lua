-- Adds lines about what was decided to bounded lists, by Redis' clock.
-- KEYS     per line its list of "<ms since 1970>[…]", oldest first
-- ARGV[1]  lines a list may have; [2] ms that a line lives; then per line how many ms ago it was, and its JSON
-- returns  of the last list: how many lines it has now, and how many ms it reaches back
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local maxLines, livesMs = tonumber(ARGV[1]), tonumber(ARGV[2])
local length, oldest
for place, key in ipairs(KEYS) do
  local at = now - ARGV[place * 2 + 1]
  length = redis.call('RPUSH', key, string.format('%.0f', at) .. ARGV[place * 2 + 2])
  if length > maxLines then redis.call('LTRIM', key, -maxLines, -1) end
  -- A list that new lines keep alive gives up what is past its time, a few at each line.
  for _ = 1, 4 do
    oldest = tonumber((redis.call('LINDEX', key, 0) or ''):match('^%d+')) or now
    if oldest > now - livesMs then break end
    redis.call('LPOP', key)
  end
  redis.call('PEXPIRE', key, livesMs)
end
return { math.min(length, maxLines), now - oldest }
