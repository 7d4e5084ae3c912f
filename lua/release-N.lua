-- Gives back what one request took, once: a second call finds no memory of the request.
-- KEYS    one per part of the policy, then one per part that tells when it was last reset (what was taken
--         before that is given back already), then the request's key
-- ARGV    per part: the form of its values (any other: nothing is given back), bytes before the first time,
--         bytes per time (0: cells that count)
-- returns 1 if the request was remembered, else 0
local call, unpack, pack = redis.call, struct.unpack, struct.pack
local memory = call('GET', KEYS[#KEYS])
if not memory then return 0 end
call('DEL', KEYS[#KEYS])

-- Without the newest `permits` uses of time `stamp`, as far as they are still there.
local function withoutTimes(value, head, size, stamp, permits)
  local time = pack('>I' .. size, stamp % 256 ^ size)
  for at = #value - size + 1, head + 1, -size do
    if permits > 0 and value:sub(at, at + size - 1) == time then
      value, permits = value:sub(1, at - 1) .. value:sub(at + size), permits - 1
    end
  end
  return value
end

local function withoutCounts(value, stamp, permits)
  local kept, given = { value:sub(1, 5) }, 0
  for at = 6, #value, 10 do
    local time, total, before = unpack('>I6I4', value, at), unpack('>I4', value, at + 6), unpack('>I4', value, at - 4)
    local own = (total - before) % 4294967296
    if time == stamp and own >= permits then given, own = permits, own - permits end
    if own > 0 then kept[#kept + 1] = pack('>I6I4', time, (total - given) % 4294967296) end
  end
  return table.concat(kept)
end

local parts, takenAt = (#KEYS - 1) / 2, unpack('>I7', memory)
for p = 1, parts do
  local value, resetAt = call('GET', KEYS[p]), call('GET', KEYS[parts + p])
  local form, head, size = tonumber(ARGV[p * 3 - 2]), tonumber(ARGV[p * 3 - 1]), tonumber(ARGV[p * 3])
  local stamp, permits = unpack('>I6I4', memory, p * 10 - 2)
  if resetAt and tonumber(resetAt) >= takenAt then stamp = 0 end
  if value and stamp > 0 and value:byte() == form then
    local rest = size == 0 and withoutCounts(value, stamp, permits) or withoutTimes(value, head, size, stamp, permits)
    if #rest == head and (size == 0 or not rest:find('[^%z]', 2)) then call('DEL', KEYS[p])
    elseif rest ~= value then call('SET', KEYS[p], rest, 'KEEPTTL') end
  end
end
return 1
