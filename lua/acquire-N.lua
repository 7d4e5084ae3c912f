-- Decides checks of one policy in turn, each all or nothing. A refusal writes nothing, except that a
-- lockout's refusal begins its lock. Read it beside src/limiter/memory/kinds.ts: the names are the same.
--
-- A value is what a part of a rule knows of a subject: the byte 1, then its uses, oldest first: a time in
-- ms (6 bytes) and how many uses it stands for (4). Before a lockout's: when its last lock ends, locks in a row.
--
-- KEYS     per check: the value of every part of the policy, then the memory of its request if it has an id
-- ARGV[1]  the parts of the policy as JSON, see src/limiter/redis/values.ts
-- ARGV[2]  how long requests are remembered, in ms; 0: the checks have no ids
-- ARGV[3]  for tests: now, in ms
-- returns  now, and nothing more if that is outside the period of a calendar; then per check
--          the value of every part, after a 0 where the rule is passed over although it is full: admitted
--          | twice the hold (see below) of what holds longest, and 1 more if that lock began now
--          | -1: a value is not one of the limiter's
-- So { 1790000000000, "\1…", 123456789 } is one check admitted, with its uses, and one refused.
local call, pcall, pack, unpack = redis.call, redis.pcall, struct.pack, struct.unpack
local sub, byte, max, floor = string.sub, string.byte, math.max, math.floor

local use, size = '>I6I4', 10
local plan, memoryMs = cjson.decode(ARGV[1]), tonumber(ARGV[2])
local clock = ARGV[3] and { 0, ARGV[3] * 1000 } or call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)

-- A wait and its window as one number: the greatest has the longest wait, and of those the first window.
local function holdOf(waitMs, window)
  return waitMs * 1024 + 1023 - window.index
end

-- The time of the newest use and how many uses it stands for.
local function newest(part, value)
  if #value < part.first then
    return 0, 0
  end
  return unpack(use, value, #value - size + 1)
end

-- When a use leaves a window.
local function leavesAt(part, window, at)
  return not part.endsAt and at + window.ms or at < part.startsAt and now or part.endsAt
end

-- The kinds: each returns the hold, 0 if the permits fit; what to add the permits to then, or on a refusal
-- what begins a lock; the time that the permits get; and when the value ends.

-- Each use comes back a window after it was made. From the newest on, uses are counted until they and the
-- permits are more than the limit: that one must leave the window first. The lowest limit comes first.
local function sliding(part, value, permits)
  local hold, used, time, uses, place = 0, permits, part.now, 0, #value - size + 1
  for w = 1, #part.windows do
    local window = part.windows[w]
    while used <= window.limit and place >= part.first do
      time, uses = unpack(use, value, place)
      used = used + uses
      place = place - size
    end
    if used <= window.limit then
      break
    elseif time + window.ms > now then
      hold = max(hold, holdOf(time + window.ms - now, window))
    end
  end
  local at = hold == 0 and (value == part.empty and part.now or max(part.now, (newest(part, value))))
  return hold, at and value, at, at and at + part.longestMs
end

-- All uses come back together, a window after the first of them. Of a calendar, when its cron expression fires.
local function fixed(part, value, permits)
  local window = part.windows[1]
  local at, used = newest(part, value)
  if leavesAt(part, window, at) <= now then
    at, used = now, 0
  end
  local endsAt = leavesAt(part, window, at)
  local hold = used + permits > window.limit and holdOf(endsAt - now, window) or 0
  return hold, hold == 0 and '\1' .. pack(use, at, used), at, endsAt
end

local function lockMs(part, locks)
  return math.min(floor(part.lockMs * part.growth ^ (locks - 1)), part.maxLockMs)
end

-- As sliding, but the try that does not fit begins a lock, and the tries before it are forgotten.
local function lockout(part, value, permits)
  local window = part.windows[1]
  local endsAt, locks = unpack(use, value, 2)
  if endsAt > now and endsAt <= now + part.trustMs then
    return holdOf(endsAt - now, window)
  end
  if endsAt > now or part.growth == 1 or now - endsAt >= lockMs(part, locks) then
    endsAt, locks = 0, 0
  end
  local hold, tries, at, expiresAt = sliding(part, value, permits)
  if hold == 0 then
    tries = '\1' .. pack(use, endsAt, locks) .. sub(tries, part.first)
    return 0, tries, at, max(expiresAt, endsAt + lockMs(part, locks))
  end
  local ms = lockMs(part, locks + 1)
  return holdOf(ms, window), '\1' .. pack(use, now + ms, locks + 1), now, now + 2 * ms
end

-- The value with the permits as its newest uses, and without those that have left every window.
local function add(part, value, at, permits)
  if #value < part.first then
    return value .. pack(use, at, permits)
  end
  local time, uses = newest(part, value)
  if time == at then
    return sub(value, 1, -size - 1) .. pack(use, at, uses + permits)
  end
  local oldest = part.first
  while oldest < #value and unpack(use, value, oldest) + part.longestMs <= now do
    oldest = oldest + size
  end
  local kept = oldest == part.first and value or sub(value, 1, part.first - 1) .. sub(value, oldest)
  return kept .. pack(use, at, permits)
end

local kinds = { sliding = sliding, fixed = fixed, calendar = fixed, lockout = lockout }
for _, part in ipairs(plan) do
  part.decide = kinds[part.kind]
  part.empty = part.kind == 'lockout' and '\1' .. pack(use, 0, 0) or '\1'
  part.first = #part.empty + 1
  part.now = math.ceil(now / part.granuleMs) * part.granuleMs
  if part.kind == 'calendar' and (now < part.startsAt or now >= part.endsAt) then
    return { now }
  end
end

-- A value, and what of it no clock far ahead of this one has written; nothing if it is not the limiter's.
local function read(part, key)
  local value = pcall('GET', key)
  if not value or value == '' then
    return part.empty, part.empty
  elseif type(value) == 'table' or byte(value) ~= 1 or #value % size ~= 1 then
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
  local text = texts[expiresAt] or string.format('%.0f', expiresAt)
  texts[expiresAt] = text
  call('SET', key, value, 'PXAT', text)
end

local reply, parts, values, news, times, ends = { now }, #plan, {}, {}, {}, {} -- the last four by part
for key = 0, #KEYS - 1, memoryMs > 0 and parts + 1 or parts do
  local requestKey = memoryMs > 0 and KEYS[key + parts + 1]
  local isKnown = requestKey and call('GET', requestKey)
  local held, challenged, began, full = 0, 0, 0, nil
  for p = 1, parts do
    local part, hold = plan[p], 0
    local value, trusted = read(part, KEYS[key + p])
    if not value then
      held = -1
      break
    elseif not isKnown then
      hold, news[p], times[p], ends[p] = part.decide(part, trusted, part.permits)
    end
    if hold > 0 and news[p] then
      value = news[p]
      began = max(began, hold)
      set(KEYS[key + p], value, ends[p])
    end
    values[p] = value
    if hold > 0 and part.mode == 'enforce' then
      held = max(held, hold)
    elseif hold > 0 and part.mode == 'challenge' then
      challenged = max(challenged, hold)
    elseif hold > 0 then
      full = full or {}
      full[part.rule] = true
    end
  end
  held = held == 0 and challenged or held
  local memory = held == 0 and requestKey and not isKnown and pack(use, now, clock[2] % 1000)
  for p = 1, held == 0 and parts or 0 do
    local part = plan[p]
    if full and full[part.rule] then
      reply[#reply + 1] = 0
      times[p] = 0
    elseif not isKnown then
      values[p] = add(part, news[p], times[p], part.permits)
      set(KEYS[key + p], values[p], ends[p])
    end
    reply[#reply + 1] = values[p]
    memory = memory and memory .. pack(use, times[p], part.permits)
  end
  if memory then
    set(requestKey, memory, now + memoryMs)
  elseif held ~= 0 then
    reply[#reply + 1] = held < 0 and held or 2 * held + (began == held and 1 or 0)
  end
end
return reply
