-- Adds what happened to the rings of recipients, by Redis' clock.
-- KEYS     per entry a ring: a list of "<ms since 1970>[…]", oldest first
-- ARGV[1]  entries a ring may have; [2] ms that an entry lives; then per entry how many ms ago it was, and its JSON
-- returns  nothing
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local maxEntries, livesMs = tonumber(ARGV[1]), tonumber(ARGV[2])
for place, key in ipairs(KEYS) do
  local at = now - ARGV[place * 2 + 1]
  local length = redis.call('RPUSH', key, string.format('%.0f', at) .. ARGV[place * 2 + 2])
  if length > maxEntries then redis.call('LTRIM', key, -maxEntries, -1) end
  -- A ring that others keep alive gives up what is past its time, a few at each turn.
  for _ = 1, 4 do
    local oldest = redis.call('LINDEX', key, 0)
    if not oldest or tonumber(oldest:match('^%d+') or 0) > now - livesMs then break end
    redis.call('LPOP', key)
  end
  redis.call('PEXPIRE', key, livesMs)
end
