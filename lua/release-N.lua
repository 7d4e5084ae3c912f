-- Gives back the uses of one request, once.
--
-- KEYS     the values of the parts; for each, the key with the time of its reset (earlier uses are already given back);
--          then the memory of the request: its time, per part the time and number of its uses, and the ids of the
--          answered calls, 8 bytes each. For a refusal that began a lock: its time is 0, and per part it has the head of the
--          value with the lock and the head before
-- ARGV     per part: the position of the first use in its value, and the mark of its client if it has one. Uses in a client
--          are given back only if the id of the first call begins with that mark. 0: this part is not given back
--          Then '', or the id of a call without an answer. That id is removed, and nothing is given back if another call
--          was answered. A lock that began with that call is undone
-- returns  1 if the request was remembered, else 0
local call, pack, unpack = redis.call, struct.pack, struct.unpack
local timed, count, size, wrap = '>I6I4', '>I4', 10, 2 ^ 32

local memory = call('GETEX', KEYS[#KEYS]) -- a write, so a server that has become a replica refuses it
if not memory then return 0 end
local ms, micros = unpack(timed, memory)
local requestedAt = ms * 1000 + micros
local parts = (#KEYS - 1) / 2
local isLock = ms == 0
local head = (1 + parts * (isLock and 2 or 1)) * size
local firstId = memory:sub(head + 1, head + 8)

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

-- Removes this many uses of that time, if the value still has them. Returns the new value; its format is in kinds.lua.
local function remove(value, first, at, permits)
  local later = value:sub(-4)
  local place = #value - 3 - size
  while place >= first do
    local time, made = unpack(timed, value, place)
    local before = unpack(count, value, place > first and place - 4 or #value - 3)
    local uses = (made - before) % wrap
    if time == at and uses >= permits then
      local rest = uses > permits and pack(timed, at, (made - permits) % wrap) or ''
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

for p = 1, isLock and parts or 0 do
  local value, place = redis.pcall('GET', KEYS[p]), size + (p - 1) * 2 * size
  local locked, before = memory:sub(place + 1, place + size), memory:sub(place + size + 1, place + 2 * size)
  if type(value) == 'string' and locked:find('[^%z]') and value:sub(1, size) == locked then
    replace(KEYS[p], value, before .. value:sub(size + 1))
  end
end
if isLock then
  call('DEL', KEYS[#KEYS])
  return 1
end

local isLeft = false
for p = 1, parts do
  local first, mark = ARGV[p]:match('^(%d+) ?(.*)$')
  local at, permits = unpack(timed, memory, 1 + p * size)
  if first ~= '0' and at > 0 and firstId:sub(1, #mark) == mark then
    giveBack(p, tonumber(first), at, permits)
    memory = memory:sub(1, p * size) .. pack(timed, 0, 0) .. memory:sub(1 + (p + 1) * size)
  elseif at > 0 then
    isLeft = true
  end
end
if isLeft then
  call('SET', KEYS[#KEYS], memory, 'KEEPTTL')
else
  call('DEL', KEYS[#KEYS])
end
return 1
