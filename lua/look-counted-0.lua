-- Part of acquire-N.lua: looks at a value of a rule that counts (fixed, calendar, sliding with a large limit),
-- which holds cells of a time and the count of all uses so far. Such a part has one window.
-- returns the wait and the window; then what to write, for how long, and the time of the use
local unpack, pack, sub, floor, hourMs = struct.unpack, struct.pack, string.sub, math.floor, 3600000

local function counted(part, value, permits)
  local lead = part.stop and part.stop - now or part.granule and -now % part.granule or 0
  local limit, windowMs, cells, total = part[1], part[2], (#value - 5) / 10, unpack('>I4', value, #value - 3)
  local newest = cells > 0 and now - unpack('>I6', value, #value - 9)
  if part.stop and (now < part.start or now >= part.stop) then return -1 end
  if newest and newest < -lead - hourMs then return counted(part, sub(value, 1, -11), permits) end
  local holder, last = 0, cells -- find the newest cell that must leave before the permits fit
  while holder < last do
    local middle = floor((holder + last + 1) / 2)
    local used = (total - unpack('>I4', value, 10 * middle - 8)) % 4294967296
    if used > limit - permits then holder = middle else last = middle - 1 end
  end
  if permits > limit then return lead + windowMs, part.first end
  local wait = holder > 0 and windowMs - now + unpack('>I6', value, 10 * holder - 4) or 0
  if wait > 0 then return wait, part.first end
  local at, count = now + lead, (total + permits) % 4294967296
  if newest and (part.whole and newest < windowMs or -newest >= lead) then
    at, value = now - newest, sub(value, 1, -5) .. pack('>I4', count)
  else
    local gone = part.whole and cells or math.max(holder, cells - 129)
    value = sub(part.empty, 1, 1) .. sub(value, 10 * gone + 2) .. pack('>I6I4', at, count)
  end
  return 0, part.first, value, windowMs + at - now, at
end
