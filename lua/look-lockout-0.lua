-- Part of acquire-N.lua: looks at a value of a lockout, which begins with the end of its last lock and how
-- many it was. A try that does not fit begins the next lock, and the tries before it are forgotten.
-- returns the wait and the window; then what to write, for how long, and the time of the use

local function lockMs(part, locks)
  return math.min(math.floor(part.lock * part.growth ^ (locks - 1)), part.maxLock)
end

local function lockout(part, value, permits)
  local span, time, head = part.wide and 2 ^ 48 or 4294967296, part.wide and '>I6' or '>I4', part.head
  local locks, recallMs = value:byte(head), 0
  if locks > 0 then
    local leftMs = (struct.unpack(time, value, 2) - now + span / 2) % span - span / 2
    if leftMs > part.trust + part.longest then leftMs = -part.trust end -- a wrong clock's
    if leftMs > 0 then return leftMs, part.first end
    recallMs = part.growth > 1 and leftMs + lockMs(part, locks) or 0
    if recallMs <= 0 then locks, value = 0, part.empty .. value:sub(head + 1) end
  end
  local wait, window, new, ttl, at = times(part, value, permits)
  if wait == 0 then return 0, window, new, recallMs > ttl + 0 and recallMs or ttl, at end
  locks = math.min(locks + 1, 255)
  wait = lockMs(part, locks)
  new = part.empty:sub(1, 1) .. struct.pack(time .. 'B', (now + wait) % span, locks)
  return wait, window, new, part.growth > 1 and 2 * wait or wait
end
