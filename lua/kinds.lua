-- The kinds of rules, included in acquire-N.lua. Each function has the name of its twin in src/limiter/kinds.ts. A
-- value is the state of one subject in one part: the numbers that src/limiter/uses.ts lists. Times have 6 bytes, counts
-- 4 bytes (modulo 2^32). The number of uses before the oldest stored one is at the end. The difference of two counts is
-- the number of uses between them.
--
-- arguments  the part; its value; the time of the newest use, or 0; the number of uses up to that use; how many of these
--            are stored; now
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
function kinds.bucket(part, value, at, made, _, now)
  local window, since, refilled = part.windows[1], unpack(timed, value)
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

-- Like sliding, but the first try above the limit begins a lock and clears the counted tries.
function kinds.lockout(part, value, at, made, kept, now)
  local endsAt, locks = unpack(timed, value)
  if endsAt > now and endsAt <= now + part.trustMs + part.maxLockMs then
    return holdOf(endsAt - now, part.windows[1])
  elseif endsAt > now or part.growth == 1 or now - endsAt >= lockMs(part, locks) then
    endsAt, locks = 0, 0
  end
  local hold, tries, newAt, expiresAt = kinds.sliding(part, value, at, made, kept, now)
  if hold == 0 then
    return 0, pack(timed, endsAt, locks) .. sub(tries, part.first), newAt, max(expiresAt, endsAt + lockMs(part, locks))
  end
  local ms = lockMs(part, locks + 1)
  return holdOf(ms, part.windows[1]), pack(last, now + ms, locks + 1, 0), now, now + 2 * ms
end
