-- Decides checks of one policy in turn, each all or nothing. A refusal writes nothing, except that a lockout's
-- begins its lock. Read it beside src/limiter/memory/kinds.ts: the names are the same.
-- A value is what a part of a rule knows of a subject: the byte 2; of a lockout when its last lock ends, in ms
-- (6 bytes), and how many came in a row (4); of every use, oldest first, how many were made before it (4) and when
-- (6); last how many were made in all (4), modulo 2^32. So the uses since one of them are a difference.
--
-- KEYS     per check: the value of every part of the policy, then the memory of its request if it has an id
-- ARGV[1]  the parts of the policy as JSON, see src/limiter/redis/values.ts
-- ARGV[2]  how long requests are remembered, in ms; 0: the checks have no ids
-- ARGV[3]  the ids of the calls that ask, 8 bytes each, if the checks have ids
-- ARGV[4]  for tests: now, in ms
-- returns  now, and nothing more if that is outside the period of a calendar; then per check
--          the value of every part, after a 0 where the rule is passed over although it is full: admitted
--          | twice the longest hold (see below), and 1 more if its lock began now | -2: a value is not ours
local call, pcall, pack, unpack = redis.call, redis.pcall, struct.pack, struct.unpack
local sub, max, floor = string.sub, math.max, math.floor
local count, time, timed, size, wrap = '>I4', '>I6', '>I6I4', 10, 2 ^ 32
local plan, memoryMs = cjson.decode(ARGV[1]), tonumber(ARGV[2])
local clock = ARGV[4] and { 0, ARGV[4] * 1000 } or call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)

-- A wait and its window as one number: the greatest has the longest wait, and of those the first window.
local function holdOf(waitMs, window)
  return waitMs * 1024 + 1023 - window.index
end

-- The time of the newest use, 0 if there is none, and how many were made in all.
local function newest(part, value)
  if #value < part.first + size then
    return 0, 0
  end
  return unpack(timed, value, #value - size + 1)
end

-- The kinds: each returns the hold, 0 if the permits fit; what to add the permits to then, or on a refusal
-- what begins a lock; the time that the permits get; and when the value ends.

-- Each use comes back a window after it was made. The newest that is too many beside the permits must leave the
-- window first; it is found by halving. The lowest limit comes first, and a higher one has fewer too many.
local function sliding(part, value, permits)
  local at, made = newest(part, value)
  local first, uses = part.first, (#value - 3 - part.first) / size
  local tooMany, hold = uses, 0
  for w = 1, #part.windows do
    local window = part.windows[w]
    local room = window.limit - permits
    local low = room < uses and uses - room or 0
    while low < tooMany do
      local middle = floor((low + tooMany) / 2)
      if (made - unpack(count, value, first + middle * size)) % wrap > room then
        low = middle + 1
      else
        tooMany = middle
      end
    end
    if tooMany == 0 and room >= 0 then
      break
    end
    local leaving = room < 0 and part.now or unpack(time, value, first + tooMany * size - 6)
    if leaving + window.ms > now then
      hold = max(hold, holdOf(leaving + window.ms - now, window))
    end
  end
  at = hold == 0 and max(at, part.now)
  return hold, at and value, at, at and at + part.longestMs
end

-- All uses come back together, a window after the first of them. Of a calendar, when its cron expression fires.
local function fixed(part, value, permits)
  local window = part.windows[1]
  local at, used = newest(part, value)
  if part.endsAt and at < part.startsAt or not part.endsAt and at + window.ms <= now then
    at, used = now, 0
  end
  local endsAt = part.endsAt or at + window.ms
  local hold = used + permits > window.limit and holdOf(endsAt - now, window) or 0
  return hold, hold == 0 and '\2' .. pack('>I4I6I4', 0, at, used), at, endsAt
end

local function lockMs(part, locks)
  return math.min(floor(part.lockMs * part.growth ^ (locks - 1)), part.maxLockMs)
end
-- As sliding, but the try that does not fit begins a lock, and the tries before it are forgotten.
local function lockout(part, value, permits)
  local endsAt, locks = unpack(timed, value, 2)
  if endsAt > now and endsAt <= now + part.trustMs then
    return holdOf(endsAt - now, part.windows[1])
  elseif endsAt > now or part.growth == 1 or now - endsAt >= lockMs(part, locks) then
    endsAt, locks = 0, 0
  end
  local hold, tries, at, expiresAt = sliding(part, value, permits)
  if hold == 0 then
    tries = '\2' .. pack(timed, endsAt, locks) .. sub(tries, part.first)
    return 0, tries, at, max(expiresAt, endsAt + lockMs(part, locks))
  end
  local ms = lockMs(part, locks + 1)
  return holdOf(ms, part.windows[1]), '\2' .. pack('>I6I4I4', now + ms, locks + 1, 0), now, now + 2 * ms
end

-- The value with the permits as its newest uses, and without those that have left every window.
local function add(part, value, at, permits)
  if value == part.empty and at == part.now then
    return part.firstUse
  end
  local last, made = newest(part, value)
  if last == at then
    return sub(value, 1, -5) .. pack(count, (made + permits) % wrap)
  end
  local oldest = part.first
  while oldest + size < #value - 3 and unpack(time, value, oldest + 4) + part.longestMs <= now do
    oldest = oldest + size
  end
  return sub(value, 1, part.first - 1) .. sub(value, oldest) .. pack(timed, at, (made + permits) % wrap)
end

local kinds = { sliding = sliding, fixed = fixed, calendar = fixed, lockout = lockout }
for _, part in ipairs(plan) do
  part.decide = kinds[part.kind]
  part.empty = '\2' .. string.rep('\0', part.first + 2)
  part.now = math.ceil(now / part.granuleMs) * part.granuleMs
  part.firstUse = part.empty .. pack(timed, part.now, part.permits) -- made once, because most subjects are new
  if part.kind == 'calendar' and (now < part.startsAt or now >= part.endsAt) then
    return { now }
  end
end

-- A value, and what of it no clock far ahead of this one has written; nothing if it is not the limiter's.
local function read(part, key)
  local value = pcall('GET', key)
  if not value or value == '' then
    value = part.empty
  elseif value.err or sub(value, 1, 1) ~= '\2' or #value % size ~= 5 then
    return
  end
  local trusted = value
  while newest(part, trusted) > now + part.trustMs do
    trusted = sub(trusted, 1, -size - 1)
  end
  return value, trusted
end

local texts = {} -- of times of expiry: Redis takes texts faster than numbers
local function set(key, value, expiresAt)
  texts[expiresAt] = texts[expiresAt] or string.format('%.0f', expiresAt)
  call('SET', key, value, 'PXAT', texts[expiresAt])
end

local reply, parts, values, news, times, ends = { now }, #plan, {}, {}, {}, {} -- the last four by part
local full = {} -- by rule: the last check in which it was full and yet is passed over
for key = 0, #KEYS - 1, memoryMs > 0 and parts + 1 or parts do
  local requestKey = memoryMs > 0 and KEYS[key + parts + 1]
  local isKnown = requestKey and call('GET', requestKey)
  local place = 8 * key / (parts + 1) -- of the id of its call
  local held, challenged, began = 0, 0, 0
  for p = 1, parts do
    local part, hold, trusted = plan[p], 0, nil
    values[p], trusted = read(part, KEYS[key + p])
    if not trusted then
      held = -1
      break
    elseif not isKnown then
      hold, news[p], times[p], ends[p] = part.decide(part, trusted, part.permits)
    end
    if hold > 0 and news[p] then
      values[p] = news[p]
      began = max(began, hold)
      set(KEYS[key + p], news[p], ends[p])
    end
    local mode = hold > 0 and part.mode
    if mode == 'enforce' then
      held = max(held, hold)
    elseif mode == 'challenge' then
      challenged = max(challenged, hold)
    elseif mode then
      full[part.rule] = key
    end
  end
  held = held == 0 and challenged or held
  local memory = held == 0 and requestKey and not isKnown and pack(timed, now, clock[2] % 1000)
  for p = 1, held == 0 and parts or 0 do
    local part = plan[p]
    if full[part.rule] == key then
      reply[#reply + 1] = 0
      times[p] = 0
    elseif not isKnown then
      values[p] = add(part, news[p], times[p], part.permits)
      set(KEYS[key + p], values[p], ends[p])
    end
    reply[#reply + 1] = values[p]
    memory = memory and memory .. pack(timed, times[p], part.permits)
  end
  if memory then
    set(requestKey, memory .. sub(ARGV[3], place + 1, place + 8), now + memoryMs)
  elseif held == 0 and isKnown and #isKnown < size * (parts + 1) + 800 then
    call('APPEND', requestKey, sub(ARGV[3], place + 1, place + 8))
  elseif held ~= 0 then
    reply[#reply + 1] = 2 * held + (began == held and 1 or 0)
  end
end
return reply
