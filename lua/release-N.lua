-- Gives back what one request took, once: a second call finds no memory of the request.
-- KEYS    one per part of the policy, then one per part that tells when it was last reset (what was taken
--         before that is given back already), then the request's key
-- ARGV    per part: 1 if it is a lockout, where a lock that has begun stays
-- returns 1 if the request was remembered, else 0
local memory = redis.call('GET', KEYS[#KEYS])
if not memory then return 0 end
redis.call('DEL', KEYS[#KEYS])

local unpack, pack, lockMark, parts = struct.unpack, struct.pack, 128, (#KEYS - 1) / 2
local takenAt = unpack('>I7', memory)
for p = 1, parts do
  local value = redis.call('GET', KEYS[p])
  local stamp, permits = unpack('>I6I4', memory, p * 10 - 2)
  local resetAt = redis.call('GET', KEYS[parts + p])
  if resetAt and tonumber(resetAt) >= takenAt then stamp = 0 end
  if value and stamp > 0 then
    local entry, count, size, head, uses, span = '>I6I4', '>I4', 10, 4, 4294967296, 2 ^ 48
    if #value % 5 == 1 then entry, count, size, head, uses, span = '>I4B', '>B', 5, 1, 256, 4294967296 end
    local kept, before, given = { value:sub(1, head) }, unpack(count, value), 0
    for at = head + 1, #value, size do
      local time, total = unpack(entry, value, at)
      local own = (total - before) % uses
      if time == stamp % span and own >= permits and not (ARGV[p] == '1' and own == lockMark) then
        given, own = permits, own - permits
      end
      if own > 0 then kept[#kept + 1] = pack(entry, time, (total - given) % uses) end
      before = total
    end
    if #kept == 1 then redis.call('DEL', KEYS[p])
    elseif given > 0 then redis.call('SET', KEYS[p], table.concat(kept), 'KEEPTTL') end
  end
end
return 1
