-- Gives back the uses of one request, once. The request may have been counted under other policies, by another process.
-- Then the parts that both policies have are given back.
--
-- KEYS     the values of the parts; for each, the key with the time of its reset (earlier uses are already given back);
--          then the memory of the request: its time (10 bytes), the number of its parts, per part its id and the time and
--          number of its uses, and the ids of the answered calls, 8 bytes each. For a refusal that began a lock: its time is
--          0, and per part it has the head of the value with the lock and the head before
-- ARGV     per part: its id, and the position of the first use in its value. 0: this part is not given back
--          Then '', or the id of a call without an answer. That id is removed, and nothing is given back if another call
--          was answered. A lock that began with that call is undone
-- returns  1 if the request was remembered, else 0
local call, pack, unpack = redis.call, struct.pack, struct.unpack
local timed, count, size, wrap, idLength = '>I6I4', '>I4', 10, 2 ^ 32, 6

local memory = call('GET', KEYS[#KEYS])
if not memory then
  call('GETEX', KEYS[#KEYS]) -- counts as a write, so a server that has become a replica refuses it
  return 0
end
local ms, micros, counted = unpack('>I6I4I2', memory)
local requestedAt = ms * 1000 + micros
local parts = (#KEYS - 1) / 2
local isLock = ms == 0
local start, width = size + 2, isLock and 2 * size or idLength + size
local head = start + counted * width

local callId = ARGV[parts + 1]
if callId ~= '' then
  local others = ''
  for place = head + 1, #memory, 8 do
    local other = memory:sub(place, place + 7)
    others = others .. (other == callId and '' or other)
  end
  if others ~= '' then call('SET', KEYS[#KEYS], memory:sub(1, head) .. others, 'KEEPTTL') end
  if others ~= '' or #memory == head then return 0 end
elseif isLock then
  return 0
end

-- Removes this many uses of that time, if the value still has them. A newest use before that time is one that was ahead of
-- the clock, and was corrected. Returns the new value; its format is in kinds.lua.
local function remove(value, first, at, permits)
  local later = value:sub(-4)
  local place = #value - 3 - size
  while place >= first do
    local time, made = unpack(timed, value, place)
    local before = unpack(count, value, place > first and place - 4 or #value - 3)
    local uses = (made - before) % wrap
    local isCorrected = time < at and place == #value - 3 - size
    if (time == at or isCorrected) and uses >= permits then
      local rest = uses > permits and pack(timed, time, (made - permits) % wrap) or ''
      return value:sub(1, place - 1) .. rest .. later
    end
    later = pack(timed, time, (made - permits) % wrap) .. later
    place = place - size
  end
  return value
end

local function replace(key, value, rest)
  if not rest:sub(1, -5):find('[^%z]') then
    call('DEL', key)
  elseif rest ~= value then
    call('SET', key, rest, 'KEEPTTL')
  end
end

local function giveBack(p, first, at, permits)
  local value = redis.pcall('GET', KEYS[p])
  local resetAt = tonumber(call('GET', KEYS[parts + p]) or 0)
  if not value or value.err or resetAt >= requestedAt then return end
  replace(KEYS[p], value, remove(value, first, at, permits))
end

-- The process that undoes a lock has the policies of the call.
for p = 1, isLock and parts or 0 do
  local value, place = redis.pcall('GET', KEYS[p]), start + (p - 1) * width
  local locked, before = memory:sub(place + 1, place + size), memory:sub(place + size + 1, place + width)
  if type(value) == 'string' and locked:find('[^%z]') and value:sub(1, size) == locked then
    replace(KEYS[p], value, before .. value:sub(size + 1))
  end
end
if isLock then
  call('DEL', KEYS[#KEYS])
  return 1
end

local places, firsts = {}, {}
for p = 1, parts do
  local id = ARGV[p]:sub(1, idLength)
  places[id], firsts[id] = p, tonumber(ARGV[p]:sub(idLength + 1))
end
local left = ''
for place = start + 1, head, width do
  local id = memory:sub(place, place + idLength - 1)
  local at, permits = unpack(timed, memory, place + idLength)
  local p = places[id]
  if p and firsts[id] > 0 then
    if at > 0 then giveBack(p, firsts[id], at, permits) end
  elseif at > 0 then
    left = left .. memory:sub(place, place + width - 1)
  end
end
if left == '' then
  call('DEL', KEYS[#KEYS])
else
  call('SET', KEYS[#KEYS], pack('>I6I4I2', ms, micros, #left / width) .. left .. memory:sub(head + 1), 'KEEPTTL')
end
return 1
