-- Rewrites a value in the form that its rule has now (a reload made the rule wide, or narrow again).
-- What a narrow value can't count is beyond any narrow limit, so the newest uses are enough.
-- KEYS    the value
-- ARGV    1 if the rule is wide, ms to live for a value that has lost its time to live
-- returns 1, or an error if it is not a value of ours
local value = redis.call('GET', KEYS[1])
if not value then return 1 end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local unpack, pack, wide = struct.unpack, struct.pack, ARGV[1] == '1'
local narrowForm = { entry = '>I4B', count = '>B', size = 5, head = 1, uses = 256, span = 4294967296 }
local wideForm = { entry = '>I6I4', count = '>I4', size = 10, head = 4, uses = 4294967296, span = 2 ^ 48 }
local from, to = wide and narrowForm or wideForm, wide and wideForm or narrowForm
if (#value - to.head) % to.size == 0 then return 1 end
if (#value - from.head) % from.size ~= 0 then return redis.error_reply('DAMAGED not a value of the limiter') end

local cells, before = {}, unpack(from.count, value)
local first = before
for at = from.head + 1, #value, from.size do
  local time, total = unpack(from.entry, value, at)
  cells[#cells + 1] = { time, (total - before) % from.uses }
  before = total
end
local oldest, sum = #cells + 1, 0
while oldest > 1 and (wide or sum + math.min(cells[oldest - 1][2], 128) < 256) do
  oldest = oldest - 1
  if not wide then cells[oldest][2] = math.min(cells[oldest][2], 128) end
  sum = sum + cells[oldest][2]
end
local total = oldest == 1 and first % to.uses or 0
local out = { pack(to.count, total) }
for n = oldest, #cells do
  local age = (now - cells[n][1] + from.span / 2) % from.span - from.span / 2
  total = (total + cells[n][2]) % to.uses
  out[#out + 1] = pack(to.entry, (now - age) % to.span, total)
end
local ttl = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], table.concat(out), 'PX', ttl > 0 and ttl or ARGV[2])
return 1
