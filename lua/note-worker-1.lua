-- Stores the note of a worker until it expires, and reads all notes. It uses the clock of Redis, so that a wrong clock of
-- a worker neither hides it nor keeps it listed.
--
-- KEYS[1]  the hash of all workers
-- ARGV[1]  id of the worker, empty for readers; [2] its note, empty when it ends; [3] time to live of a note, ms
--
-- returns  the notes that have not expired
local now = redis.call('TIME')
local nowMs = now[1] * 1000 + math.floor(now[2] / 1000)
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], ARGV[1], nowMs .. ' ' .. ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
elseif ARGV[1] ~= '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
end
local notes = {}
local all = redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  local saidMs, note = string.match(all[at + 1], '^(%d+) (.*)$')
  if nowMs - tonumber(saidMs) > tonumber(ARGV[3]) then
    redis.call('HDEL', KEYS[1], all[at])
  else
    notes[#notes + 1] = note
  end
end
return notes
