-- Adds lines about decisions to bounded lists, by the clock of Redis.
-- KEYS     per line its list of "<ms since 1970>[…]", oldest first
-- ARGV[1]  largest number of lines; [2] ms that a line lives; then per line its age in ms and its JSON
-- returns  for the last list: its number of lines, and the age of its oldest line in ms
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local maxLines, livesMs = tonumber(ARGV[1]), tonumber(ARGV[2])
local length, oldest
for place, key in ipairs(KEYS) do
  local at = now - ARGV[place * 2 + 1]
  length = redis.call('RPUSH', key, string.format('%.0f', at) .. ARGV[place * 2 + 2])
  if length > maxLines then redis.call('LTRIM', key, -maxLines, -1) end
  -- New lines keep a list alive, so each new line removes a few expired ones.
  for _ = 1, 4 do
    oldest = tonumber((redis.call('LINDEX', key, 0) or ''):match('^%d+')) or now
    if oldest > now - livesMs then break end
    redis.call('LPOP', key)
  end
  redis.call('PEXPIRE', key, livesMs)
end
return { math.min(length, maxLines), now - oldest }
