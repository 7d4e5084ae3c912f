-- Reads the clock and the latest reset of a recipient's known browsers in one step, after making a reset if asked to.
--
-- KEYS[1] the latest reset (s since 1970). A second reset in one second counts as one of the next second, because a token
--         that was made in between is of that second.
-- ARGV[1] s for which a reset made now is remembered; 0: none is made
--
-- returns {the time now (s since 1970), the latest reset (0: none)}
local now = tonumber(redis.call('TIME')[1])
local latest = tonumber(redis.call('GET', KEYS[1])) or 0
if ARGV[1] ~= '0' then
  latest = math.max(now, latest + 1)
  redis.call('SET', KEYS[1], string.format('%.0f', latest), 'EX', ARGV[1])
end
return { now, latest }
