-- Part of acquire-N.lua: looks at a value that holds the times of the newest uses, for exact windows. In
-- each of them the use that must leave before the permits fit is found by counting from the newest.
-- returns the longest wait and its window; then what to write, for how long, and the time of the use
local unpack, pack, sub = struct.unpack, struct.pack, string.sub

local function times(part, value, permits)
  local size, time, span, half, head, length, at = 4, '>I4', 4294967296, 2147483648, part.head, #value, now
  if part.wide then size, time, span, half = 6, '>I6', 2 ^ 48, 2 ^ 47 end
  local wait, window = 0, part.first
  if length > head then
    local newest = (now - unpack(time, value, length - size + 1) + half) % span - half
    if newest < -part.trust then return times(part, sub(value, 1, -size - 1), permits) end -- a wrong clock's
    if newest < 0 then at = now - newest end
  end
  for w = 1, #part, 2 do
    local start, left = length - (part[w] - permits + 1) * size, 0
    if start >= length then left = part[w + 1] -- more permits than the window ever has
    elseif start >= head then
      left = part[w + 1] - ((now - unpack(time, value, start + 1) + half) % span - half)
    end
    if left > wait then wait, window = left, part.first + (w - 1) / 2 end
  end
  if wait > 0 then return wait, window end
  local use, start = pack(time, at % span), length - (part.most - permits) * size
  if permits > 1 then use = use:rep(permits) end
  -- What is older than the newest uses has left every window.
  if start > head then value = sub(value, 1, head) .. sub(value, start + 1) .. use else value = value .. use end
  return 0, window, value, at == now and part.ttl or part.longest + at - now, at
end
