-- The kinds of rules, included in acquire-N.lua. Each function has the name of its twin in src/limiter/kinds.ts. A
-- value is the state of one subject in one part: the numbers that src/limiter/uses.ts lists. Times have 6 bytes, counts
-- 4 bytes (modulo 2^32). The number of uses before the oldest stored one is at the end. The difference of two counts is
-- the number of uses between them.
--
-- arguments  the part; its value; the time of the newest use, or 0; the number of uses up to that use; how many of these
--            are stored; now; of a bucket or lockout: the numbers at the head of the value
-- returns    the hold, or 0; the value to which permits are added, or the value with a new lock; the time of the
--            permits; the time at which the value expires
local pack, unpack, sub, max, min, floor, ceil = struct.pack, struct.unpack, string.sub, math.max, math.min, math.floor, math.ceil
local count, time, timed, last, size, wrap = '>I4', '>I6', '>I6I4', '>I6I4I4', 10, 2 ^ 32
local kinds = {}

-- Packs a wait and its window into one number. The greatest has the longest wait, and of equal waits the first window.
local function holdOf(waitMs, window)
  return waitMs > 0 and waitMs * 1024 + 1023 - window.index or 0
end

-- Each use comes back one window after it was made. The permits fit when enough uses have left, so the hold ends with
-- the newest use that must leave. Each entry has one use or more, and a value has some 128 entries at most. So the
-- search for that use can begin `room` entries from the end. Windows are sorted by their limit: uses that fit below one
-- limit fit below all higher ones.
function kinds.sliding(part, value, at, made, kept, now)
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

-- All uses come back together: one window after the first use. In a calendar rule, at the next firing of its cron
-- expression.
function kinds.fixed(part, value, at, used, _, now)
  local window = part.windows[1]
  if part.endsAt and at < part.startsAt or not part.endsAt and at + window.ms <= now then
    at, used = now, 0
  end
  local endsAt = part.endsAt or at + window.ms
  local hold = used + part.permits > window.limit and holdOf(endsAt - now, window) or 0
  return hold, hold == 0 and pack(last, at, used, 0), at, endsAt
end
kinds.calendar = kinds.fixed

-- The time at which this many permits of a bucket are back.
local function backAt(part, since, permits)
  return since + ceil(permits * part.everyMs / part.refill)
end

-- Permits come back one by one. All uses since the bucket was last full are stored as one use with the time of the
-- first. A reload may have changed rate and burst, so the number of missing permits is capped by both.
function kinds.bucket(part, _, at, made, _, now, since, refilled)
  local window = part.windows[1]
  local lacks = min((made - refilled + wrap / 2) % wrap - wrap / 2, window.limit + part.refill)
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
  return min(floor(part.lockMs * part.growth ^ (locks - 1)), part.maxLockMs)
end

-- The two numbers at the head of the value of a bucket or lockout.
local function headOf(part, value)
  if part.first == 1 then return 0, 0 end
  return unpack(timed, value)
end

-- The latest time at the head: a bucket refills from now on, or a lock begins now.
local function latestHead(part, locks, now)
  return part.lockMs and now + lockMs(part, locks) or now
end

-- The value without the tries from before the end of its last lock, which no longer count; then the newest use, the uses
-- up to it and the number of stored ones.
local function sinceLock(part, value, endsAt, at, made, kept)
  if at < endsAt then return sub(value, 1, part.first - 1) .. pack(count, 0), 0, 0, 0 end
  local place, before = part.first, (made - kept) % wrap
  while kept > 0 and unpack(time, value, place) < endsAt do
    place, before = place + size, unpack(count, value, place + 6)
  end
  return sub(value, 1, part.first - 1) .. sub(value, place, -5) .. pack(count, before), at, made, (made - before) % wrap
end

-- Like sliding, but the first try above the limit begins a lock. The counted tries stay in the value until the lock ends,
-- so that release-N.lua can undo a lock.
function kinds.lockout(part, value, at, made, kept, now, endsAt, locks)
  if endsAt > now and endsAt <= now + part.trustMs + part.maxLockMs then
    return holdOf(endsAt - now, part.windows[1])
  end
  if endsAt > 0 then value, at, made, kept = sinceLock(part, value, endsAt, at, made, kept) end
  if endsAt > now or part.growth == 1 or now - endsAt >= lockMs(part, locks) then endsAt, locks = 0, 0 end
  local hold, _, newAt, expiresAt = kinds.sliding(part, value, at, made, kept, now)
  local tries = sub(value, part.first)
  if hold == 0 then
    return 0, pack(timed, endsAt, locks) .. tries, newAt, max(expiresAt, endsAt + lockMs(part, locks))
  end
  local ms = lockMs(part, locks + 1)
  return holdOf(ms, part.windows[1]), pack(timed, now + ms, locks + 1) .. tries, now, max(now + 2 * ms, at + part.longestMs)
end
