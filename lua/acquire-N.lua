-- Decides checks of one policy in turn, each all or nothing. A refusal writes nothing, except that a lockout's
-- begins its lock. Read it beside src/limiter/kinds.ts: the names are the same.
-- A value is what a part of a rule knows of a subject: the numbers that kinds.ts lists, times in 6 bytes, counts modulo
-- 2^32 in 4. The count before the oldest use stands last. How many uses were made since one of them is a difference.
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
local count, time, timed, last, size, wrap = '>I4', '>I6', '>I6I4', '>I6I4I4', 10, 2 ^ 32
local plan, memoryMs = cjson.decode(ARGV[1]), tonumber(ARGV[2])
local clock = ARGV[4] and { 0, ARGV[4] * 1000 } or call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)

-- A wait and its window as one number: the greatest has the longest wait, and of those the first window.
local function holdOf(waitMs, window)
  return waitMs > 0 and waitMs * 1024 + 1023 - window.index or 0
end

-- The time of the newest use, 0 if there is none; how many were made up to it, and how many of those are kept.
local function newest(part, value)
  if #value == #part.empty then return 0, 0, 0 end
  local at, made, before = unpack(last, value, #value - 13)
  return at, made, (made - before) % wrap
end

-- A kind returns its hold or 0; the value to add to, or that begins a lock; the permits' time; the value's end.

-- Each use comes back a window after it was made. The newest that is too many beside the permits must leave the
-- window first: looked for from where it stands if every use is one permit, because none is less. A value has some
-- 128 uses at most. The lowest limit comes first: where all uses fit, they fit below a higher one.
local function sliding(part, value, at, made, kept)
  local first, uses, hold = part.first, (#value - 3 - part.first) / size, 0
  for w = 1, #part.windows do
    local window = part.windows[w]
    local room = window.limit - part.permits
    if kept <= room then break end
    local tooMany = room < uses and uses - room or 1
    while tooMany < uses and (made - unpack(count, value, first + tooMany * size - 4)) % wrap > room do
      tooMany = tooMany + 1
    end
    local leaving = room < 0 and part.now or tooMany < uses and unpack(time, value, first + (tooMany - 1) * size) or at
    local own = holdOf(leaving + window.ms - now, window)
    hold = own > hold and own or hold
  end
  if hold > 0 then return hold end
  at = at > part.now and at or part.now
  return 0, value, at, at + part.longestMs
end

-- All uses come back together, a window after the first of them. Of a calendar, when its cron expression fires.
local function fixed(part, value, at, used)
  local window = part.windows[1]
  if part.endsAt and at < part.startsAt or not part.endsAt and at + window.ms <= now then
    at, used = now, 0
  end
  local endsAt = part.endsAt or at + window.ms
  local hold = used + part.permits > window.limit and holdOf(endsAt - now, window) or 0
  return hold, hold == 0 and pack(last, at, used, 0), at, endsAt
end
-- When so many permits of a bucket are back.
local function backAt(part, since, permits)
  return since + math.ceil(permits * part.everyMs / part.refill)
end
-- Permits come back one after the other. All uses since the bucket was full are one use, with the time of the first of
-- them. A bucket lacks no more than its rate and burst allow. A reload may have changed them.
local function bucket(part, value, at, made)
  local window, since, refilled = part.windows[1], unpack(timed, value)
  local lacks = math.min((made - refilled + wrap / 2) % wrap - wrap / 2, window.limit + part.refill)
  if lacks <= 0 or since > now + part.trustMs or backAt(part, since, lacks) <= now then
    at, since, made, lacks = now, now, 0, 0
  end
  local turns = max(0, floor((now - since) / part.everyMs))
  since, lacks = since + turns * part.everyMs, lacks - turns * part.refill
  local tooMany = lacks + part.permits - window.limit
  local hold = tooMany > 0 and holdOf(backAt(part, since, tooMany) - now, window) or 0
  local new = hold == 0 and pack(timed, since, (made - lacks) % wrap) .. pack(last, at, made, 0)
  return hold, new, at, backAt(part, since, lacks + part.permits)
end
local function lockMs(part, locks)
  return math.min(floor(part.lockMs * part.growth ^ (locks - 1)), part.maxLockMs)
end
-- As sliding, but the try that does not fit begins a lock, and the tries before it are forgotten.
local function lockout(part, value, at, made, kept)
  local endsAt, locks = unpack(timed, value)
  if endsAt > now and endsAt <= now + part.trustMs then
    return holdOf(endsAt - now, part.windows[1])
  elseif endsAt > now or part.growth == 1 or now - endsAt >= lockMs(part, locks) then
    endsAt, locks = 0, 0
  end
  local hold, tries, newAt, expiresAt = sliding(part, value, at, made, kept)
  if hold == 0 then
    return 0, pack(timed, endsAt, locks) .. sub(tries, part.first), newAt, max(expiresAt, endsAt + lockMs(part, locks))
  end
  local ms = lockMs(part, locks + 1)
  return holdOf(ms, part.windows[1]), pack(last, now + ms, locks + 1, 0), now, now + 2 * ms
end

-- The value with the permits as its newest uses, and without those that have left every window.
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

local kinds = { sliding = sliding, fixed = fixed, bucket = bucket, calendar = fixed, lockout = lockout }
for _, part in ipairs(plan) do
  part.decide = kinds[part.kind]
  part.empty = string.rep('\0', part.first + 3)
  part.now = math.ceil(now / part.granuleMs) * part.granuleMs
  part.firstUse = sub(part.empty, 5) .. pack(last, part.now, part.permits, 0) -- because most subjects are new
  if part.kind == 'calendar' and (now < part.startsAt or now >= part.endsAt) then return { now } end
end

-- A value, and what of it no clock far ahead of this one has written; nothing if it is not the limiter's.
local function read(part, key)
  local value = pcall('GET', key)
  if not value or value == '' then return part.empty, part.empty, 0, 0, 0 end
  if #value < #part.empty or #value % size ~= 4 then return end
  local trusted, at, made, kept = value, newest(part, value)
  while at > now + part.trustMs do
    trusted = sub(trusted, 1, -size - 5) .. sub(value, -4)
    at, made, kept = newest(part, trusted)
  end
  return value, trusted, at, made, kept
end

local texts = {} -- of times of expiry: Redis takes texts faster than numbers
local function set(key, value, expiresAt)
  texts[expiresAt] = texts[expiresAt] or string.format('%.0f', expiresAt)
  call('SET', key, value, 'PXAT', texts[expiresAt])
end

local KEYS, reply, parts, values, news, times, ends = KEYS, { now }, #plan, {}, {}, {}, {} -- the last four by part
local full = {} -- by rule: the last check in which it was full and yet is passed over
local width = memoryMs > 0 and parts + 1 or parts
for check = 0, #KEYS / width - 1 do
  local key = check * width
  local requestKey = memoryMs > 0 and KEYS[key + width]
  local isKnown = requestKey and call('GET', requestKey)
  local held, challenged, began = 0, 0, 0
  for p = 1, parts do
    local part, hold = plan[p], 0
    local value, trusted, at, made, kept = read(part, KEYS[key + p])
    values[p] = value
    if not value then
      held = -1
      break
    elseif not isKnown then
      hold, news[p], times[p], ends[p] = part.decide(part, trusted, at, made, kept)
    end
    if hold > 0 then
      if news[p] then
        values[p], began = news[p], max(began, hold)
        set(KEYS[key + p], news[p], ends[p])
      end
      if part.mode == 'observe' then full[part.rule] = check
      elseif part.mode == 'challenge' then challenged = hold > challenged and hold or challenged
      elseif hold > held then held = hold end
    end
  end
  held = held == 0 and challenged or held
  local taken = requestKey and not isKnown and pack(timed, now, clock[2] % 1000)
  for p = 1, held == 0 and parts or 0 do
    local part = plan[p]
    if full[part.rule] == check then
      reply[#reply + 1], times[p] = 0, 0
    elseif not isKnown then
      values[p] = add(part, news[p], times[p])
      set(KEYS[key + p], values[p], ends[p])
    end
    reply[#reply + 1] = values[p]
    taken = taken and taken .. pack(timed, times[p], part.permits)
  end
  local callId = requestKey and sub(ARGV[3], 8 * check + 1, 8 * check + 8)
  if held ~= 0 then
    reply[#reply + 1] = 2 * held + (began == held and 1 or 0)
  elseif taken then
    set(requestKey, taken .. callId, now + memoryMs)
  elseif isKnown and #isKnown < size * (parts + 1) + 800 then
    call('APPEND', requestKey, callId)
  end
end
return reply
