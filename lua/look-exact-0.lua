-- Part of acquire-N.lua: looks at a value of a rule with exact windows (sliding, lockout), which holds the
-- times of the newest uses. In each window the use that must leave before the permits fit is found by
-- counting from the newest.
-- returns the longest wait and its window; then what to write, for how long, and the time of the use
local unpack, pack, sub, byte, min, floor = struct.unpack, struct.pack, string.sub, string.byte, math.min, math.floor

local function lockMs(part, locks) return min(floor(part.lock * part.growth ^ (locks - 1)), part.maxLock) end

local function exact(part, value, permits)
  local size, time, span, half, head, length = 4, '>I4', 4294967296, 2147483648, 1, #value
  if part.wide then size, time, span, half = 6, '>I6', 2 ^ 48, 2 ^ 47 end
  local at, locks, recallMs, wait, window = now, 0, 0, 0, part.first
  if part.lock then
    head, locks = size + 2, byte(value, size + 2)
    local leftMs = (unpack(time, value, 2) - now + half) % span - half
    if locks == 0 or leftMs > part.trust + part.longest then locks = 0
    elseif leftMs > 0 then return leftMs, window end
    recallMs = locks > 0 and part.growth > 1 and leftMs + lockMs(part, locks) or 0
  end
  if length > head then
    local newest = (now - unpack(time, value, length - size + 1) + half) % span - half
    if newest < -part.trust then return exact(part, sub(value, 1, -size - 1), permits) end -- a wrong clock's
    if newest < 0 then at = now - newest end
  end
  for w = 1, #part, 2 do
    local limit, windowMs = part[w], part[w + 1]
    local start, left = length - (limit - permits + 1) * size, 0
    if permits > limit then left = windowMs
    elseif start >= head then left = windowMs - ((now - unpack(time, value, start + 1) + half) % span - half) end
    if left > wait then wait, window = left, part.first + (w - 1) / 2 end
  end
  if wait > 0 and not part.lock then return wait, window end
  if recallMs <= 0 then locks = 0 end
  if wait > 0 then
    locks = min(locks + 1, 255)
    wait = lockMs(part, locks)
    return wait, window, sub(part.empty, 1, 1) .. pack(time .. 'B', (now + wait) % span, locks), part.growth > 1 and 2 * wait or wait
  end
  local start, kept = length - (part.most - permits) * size, locks > 0 and sub(value, 1, head) or part.empty
  if start < head then start = head end -- what is older than the newest uses has left every window
  value = kept .. sub(value, start + 1) .. string.rep(pack(time, at % span), permits)
  if at == now and recallMs <= 0 then return 0, window, value, part.ttl, at end
  return 0, window, value, math.max(part.longest + at - now, recallMs), at
end
