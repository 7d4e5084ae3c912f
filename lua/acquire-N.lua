-- Decides the checks of one event-loop tick in turn, each all or nothing. A refusal writes nothing,
-- except that a lockout's refusal begins its lock. src/limiter/cells.ts explains the cells.
-- KEYS    per check: one per part of its plan, then its request id's key if its group has such ids
-- ARGV    per group of like checks: plan as JSON, how many checks, permits, ms to remember requests (or 0)
-- returns per check: 0, ms until the same would pass again, left per window (-1: observed, and full)
--         | wait in ms, its window
--         | -1, now (outside the plan's calendar period) | -2, part (its value has another form)
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local call, pcall, KEYS, ARGV = redis.call, redis.pcall, KEYS, ARGV -- locals are cheaper
local unpack, pack, floor, hourMs, lockMark = struct.unpack, struct.pack, math.floor, 3600000, 128
local reply, last, values, ttls, stamps = {}, 0, {}, {}, {} -- `last` of reply; the others per part

-- The value being looked at, and its form.
local value, cells, total
local cell, entry, count, size, head, uses, span = '>BI4', '>I4B', '>B', 5, 1, 256, 4294967296
local function age(n) -- of cell n; below 0 where its time is still to come
  local _, at = unpack(cell, value, (n - 1) * size + 1)
  return (now - at + span / 2) % span - span / 2
end
local function after(n) return (total - unpack(count, value, n * size + 1)) % uses end

-- Looks at one part: appends what will be left per window to `reply`, leaves in `values` and `ttls`
-- what an admission (or the beginning of a lock) writes. Returns the longest wait and its window, and how
-- long after an admission the same would have to wait.
local function look(part, p, permits, again)
  if part.wide then
    cell, entry, count, size, head, uses, span = '>I4I6', '>I6I4', '>I4', 10, 4, 4294967296, 2 ^ 48
  elseif size == 10 then
    cell, entry, count, size, head, uses, span = '>BI4', '>I4B', '>B', 5, 1, 256, 4294967296
  end
  value = value or head == 1 and '\0' or '\0\0\0\0'
  cells = (type(value) == 'string' and #value - head or 0.5) / size
  if cells % 1 ~= 0 then return -2, p - 1 end
  if part.stop and (now < part.start or now >= part.stop) then return -1, now end
  local lead = part.stop and part.stop - now or part.granule and -now % part.granule or 0
  local newest = cells > 0 and age(cells)
  while cells > 0 and newest < -(lead + hourMs + (part.maxLock or 0)) do -- its clock was wrong
    value, cells = value:sub(1, -size - 1), cells - 1
    newest = cells > 0 and age(cells)
  end
  total = unpack(count, value, cells * size + 1)

  local wait, window, next, kept, longest, used, windows = 0, 0, 0, cells, 0, 0, part.windows
  for w = 1, #windows, 2 do
    local limit, windowMs, gone, oldest = windows[w], windows[w + 1], 0, cells
    if cells > 0 and newest >= windowMs then gone = cells end
    while gone < oldest do -- find how many cells have left this window
      local middle = floor((gone + oldest + 1) / 2)
      if age(middle) >= windowMs then gone = middle else oldest = middle - 1 end
    end
    used = gone < cells and after(gone) or 0
    local left, holder = limit - used - permits, gone + 1
    last = last + 1
    reply[last] = left < 0 and -1 or left
    if left < again then -- find the cell that must leave before the permits fit, now or the next time
      local isRefused = left < 0 and permits > 0
      local room = limit - (isRefused and permits or permits + again)
      if not part.whole and not (part.lock and used >= lockMark) then
        while holder <= cells and after(holder) > room do holder = holder + 1 end
      end
      local waitMs = holder <= cells and windowMs - age(holder) or lead + windowMs
      if not isRefused then next = math.max(next, waitMs)
      elseif waitMs > wait then wait, window = waitMs, part.first + (w - 1) / 2 end
    end
    if gone < kept then kept = gone end
    if windowMs > longest then longest = windowMs end
  end

  -- A lock is a cell of `lockMark` uses that leaves the window when the lock ends. With growth the last
  -- one stays in front, after the number of locks before it, until as long again as it was has passed.
  local lock, locks, keepMs = part.lock, 0, 0
  if part.growth and cells > 0 and (after(0) - after(1)) % uses == lockMark then
    locks = unpack(count, value) + 1
    keepMs = longest - age(1) + math.min(floor(lock * part.growth ^ (locks - 1)), part.maxLock)
    if keepMs <= 0 then locks, keepMs = 0, 0
    elseif kept > 1 then value, kept = value:sub(1, head + size) .. value:sub(head + (kept - 1) * size + 1), 0
    else kept = 0 end
  end
  values[p] = false
  if wait == 0 then
    local joins = newest and (part.whole and newest < longest or -newest >= lead)
    if joins then lead = -newest end
    total, stamps[p], ttls[p] = (total + permits) % uses, now + lead, lead + longest
    if keepMs > ttls[p] then ttls[p] = keepMs end
    values[p] = joins and value:sub(kept * size + 1, -head - 1) .. pack(count, total)
      or value:sub(kept * size + 1) .. pack(entry, stamps[p] % span, total)
  elseif lock and used < lockMark then
    wait = math.min(floor(lock * (part.growth or 1) ^ locks), part.maxLock)
    ttls[p], stamps[p] = part.growth and 2 * wait or wait, 0
    values[p] = pack(count, locks) .. pack(entry, (now + wait - longest) % span, locks + lockMark)
  end
  return wait, window, next
end

local key, group = 0, 1 -- how many keys are done; where the group's arguments begin
while group < #ARGV do
  local plan, permits, memoryMs = cjson.decode(ARGV[group]), tonumber(ARGV[group + 2]), tonumber(ARGV[group + 3])
  for _ = 1, ARGV[group + 1] do
    local first, wait, window, full = last + 1, 0, 0, nil
    local request = memoryMs > 0 and KEYS[key + #plan + 1]
    local seen = request and call('GET', request)
    reply[first], reply[first + 1], last = 0, 0, first + 1
    for p = 1, #plan do
      value = pcall('GET', KEYS[key + p])
      local asked = permits * (plan[p].permits or 1)
      local partWait, partWindow, partNext = look(plan[p], p, seen and 0 or asked, asked)
      if partWait < 0 then wait, window = partWait, partWindow break end
      if plan[p].observe then
        if partWait > 0 then full = full or {} full[plan[p].observe] = true end
      else
        if partWait > wait then wait, window = partWait, partWindow end
        if partNext > reply[first + 1] then reply[first + 1] = partNext end
      end
    end
    if wait < 0 or wait > 0 and not seen then
      for n = last, first + 2, -1 do reply[n] = nil end
      reply[first], reply[first + 1], last = wait, window, first + 1
    end
    local memory = request and pack('>I7', clock[1] * 1000000 + clock[2])
    for p = 1, wait >= 0 and not seen and #plan or 0 do
      local isFull = full and full[plan[p].observe or 0]
      local writes = values[p] and (stamps[p] == 0 or wait == 0 and not isFull)
      if writes then call('SET', KEYS[key + p], values[p], 'PX', ttls[p]) end
      if request then memory = memory .. pack('>I6I4', writes and stamps[p] or 0, permits * (plan[p].permits or 1)) end
    end
    if request and wait == 0 and not seen then call('SET', request, memory, 'PX', memoryMs) end
    key = key + #plan + (request and 1 or 0)
  end
  group = group + 4
end
return reply
