-- Decides checks of one policy, one after the other. Each check takes from all parts or from none. A refusal writes
-- only the lock of a full lockout. Times ahead of the clock are corrected in the values that are read.
--
-- KEYS     per check: the value of every part of the policy, then the memory of its request
-- ARGV[1]  the parts of the policy as JSON, see src/limiter/redis/format.ts
-- ARGV[2]  ms for which requests are remembered
-- ARGV[3]  the ids of the calls, 8 bytes each. An id that ends with !: the memory is of this call, or of an earlier one
-- ARGV[4]  for tests: now, in ms
-- returns  now; nothing else if now is outside of the known period of a calendar. Then per check:
--          admitted: the value of every part; a 0 before it: its rule is full but lets the check pass
--          refused: the longest hold (see kinds.lua); before it, as a negative number, the longest hold by a lock that began
--          now, if one began
--          -1: a value is not the limiter's, so nothing is decided
-- include kinds.lua
local call, pcall = redis.call, redis.pcall
local plan, memoryMs = cjson.decode(ARGV[1]), tonumber(ARGV[2])
local clock = ARGV[4] and { 0, ARGV[4] * 1000 } or call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)

-- Returns the time of the newest use (0 without uses), the number of uses up to it, and how many of these are stored.
local function newest(part, value)
  if #value == #part.empty then return 0, 0, 0 end
  local at, made, before = unpack(last, value, #value - 13)
  return at, made, (made - before) % wrap
end

-- Adds the permits as the newest uses, and removes uses that have left every window. Returns the new value.
local function add(part, value, at)
  if value == part.empty and at == part.now then
    return part.firstUse
  end
  local newestAt, made, kept = newest(part, value)
  local oldest, before = part.first, (made - kept) % wrap
  local stop = #value - 3 - (newestAt == at and size or 0)
  while oldest < stop do
    local usedAt, madeThen = unpack(timed, value, oldest)
    if usedAt + part.longestMs > now then break end
    oldest, before = oldest + size, madeThen
  end
  made = (made + part.permits) % wrap
  return sub(value, 1, part.first - 1) .. sub(value, oldest, stop - 1) .. pack(last, at, made, before)
end

for _, part in ipairs(plan) do
  part.decide = kinds[part.kind]
  part.empty = string.rep('\0', part.first + 3)
  part.now = ceil(now / part.granuleMs) * part.granuleMs
  part.firstUse = sub(part.empty, 5) .. pack(last, part.now, part.permits, 0) -- because most subjects are new
  if part.kind == 'calendar' and (now < part.startsAt or now >= part.endsAt) then return { now } end
end

-- Corrects a value that a clock ahead of this one has written. Uses from far ahead are removed; others count from now on,
-- as one use. A bucket refills from now on, and a lock is as long as if it began now.
local function correct(part, value)
  local at, made, kept = newest(part, value)
  while at > now + part.trustMs do
    value = sub(value, 1, -size - 5) .. sub(value, -4)
    at, made, kept = newest(part, value)
  end
  if at > part.now then
    local place = #value - 3 - size
    while place > part.first and unpack(time, value, place - size) >= part.now do place = place - size end
    value = sub(value, 1, place - 1) .. pack(last, part.now, made, (made - kept) % wrap)
  end
  local head, number = headOf(part, value)
  local latest = latestHead(part, number, now)
  if head > latest and head <= now + part.trustMs + (part.maxLockMs or 0) then
    value = pack(timed, latest, number) .. sub(value, size + 1)
  end
  return value
end

-- Returns the value, the time of its newest use, the number of uses up to it, and how many of these are stored; then its
-- head. A corrected value is stored. Otherwise each call would begin its wait anew. Returns nothing if the value is not the
-- limiter's.
local function read(part, key)
  local value = pcall('GET', key)
  if not value or value == '' then return part.empty, 0, 0, 0, 0, 0 end
  if #value < #part.empty or #value % size ~= 4 then return end
  local at, made, kept = newest(part, value)
  local head, number = headOf(part, value)
  if at > part.now or head > now then
    local correction = correct(part, value)
    if correction ~= value then
      call('SET', key, correction, 'KEEPTTL')
      value, at, made, kept = correction, newest(part, correction)
      head, number = headOf(part, value)
    end
  end
  return value, at, made, kept, head, number
end

local texts = {} -- texts of the times of expiry, because Redis reads texts faster than numbers
local function set(key, value, expiresAt)
  texts[expiresAt] = texts[expiresAt] or string.format('%.0f', expiresAt)
  call('SET', key, value, 'PXAT', texts[expiresAt])
end

local KEYS, reply, parts, values, news, times, ends = KEYS, { now }, #plan, {}, {}, {}, {} -- the last four have one entry per part
local full = {} -- by rule: the last check in which the rule was full but let the check pass
local width = parts + 1
local begun, zeros = {}, string.rep('\0', 2 * size) -- per part: the head of the value with a lock that began now, and the head before
for check = 0, #KEYS / width - 1 do
  local key = check * width
  local requestKey, callId = KEYS[key + width], sub(ARGV[3], 8 * check + 1, 8 * check + 8)
  local memory = call('GET', requestKey)
  if memory and sub(callId, 8) == '!' and sub(memory, -8) ~= callId then memory = false end
  local isKnown = memory and sub(memory, 1, 6) ~= sub(zeros, 1, 6)
  local held, challenged, began = 0, 0, 0
  for p = 1, parts do
    local part, hold = plan[p], 0
    local value, at, made, kept, head, number = read(part, KEYS[key + p])
    values[p], begun[p] = value, zeros
    if not value then
      held = -1
      break
    elseif not isKnown then
      hold, news[p], times[p], ends[p] = part.decide(part, value, at, made, kept, now, head, number)
    end
    if hold > 0 then
      if news[p] then
        begun[p] = sub(news[p], 1, size) .. sub(value, 1, size)
        values[p], began = news[p], part.mode == 'observe' and began or max(began, hold)
        set(KEYS[key + p], news[p], ends[p])
      end
      if part.mode == 'observe' then full[part.rule] = check
      elseif part.mode == 'challenge' then challenged = hold > challenged and hold or challenged
      elseif hold > held then held = hold end
    end
  end
  held = held == 0 and challenged or held
  local taken = not isKnown and pack('>I6I4I2', now, clock[2] % 1000, parts)
  for p = 1, held == 0 and parts or 0 do
    local part = plan[p]
    if full[part.rule] == check then
      reply[#reply + 1], times[p] = 0, 0
    elseif not isKnown then
      values[p] = add(part, news[p], times[p])
      set(KEYS[key + p], values[p], ends[p])
    end
    reply[#reply + 1] = values[p]
    taken = taken and taken .. part.id .. pack(timed, times[p], part.permits)
  end
  if held ~= 0 then
    if began > 0 then reply[#reply + 1] = -began end
    reply[#reply + 1] = held
  end
  if began > 0 and held > 0 then
    set(requestKey, sub(zeros, 1, size) .. pack('>I2', parts) .. table.concat(begun, '', 1, parts) .. callId, now + memoryMs)
  elseif taken and held == 0 then
    set(requestKey, taken .. callId, now + memoryMs)
  elseif memory and held >= 0 and #memory < size * (2 * parts + 1) + 802 then
    call('APPEND', requestKey, callId)
  end
end
return reply
