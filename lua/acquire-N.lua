-- Decides checks of one policy in turn, each all or nothing. A refusal writes nothing, except that a
-- lockout's refusal begins its lock. src/limiter/redis-values.ts tells what values are made of.
-- KEYS    per check: one per part of the policy, then its request's key if the checks have ids
-- ARGV    permits, ms to remember requests (0: they have no ids), then start and end of each calendar's period
-- returns now, then per check the value of every part as it is now (after a 0: it is observed, and full)
--         | wait * 1024 + window | -1, outside a calendar's period | -2 - part, whose value has another form
local call, pcall, byte, type, KEYS, reply = redis.call, redis.pcall, string.byte, type, KEYS, {}
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Here stand the looks that the policy needs, and its parts; see src/limiter/acquire-script.ts.
local plan = {}

local permits, memoryMs, parts, last = tonumber(ARGV[1]), ARGV[2], #plan, 1
local hasIds = memoryMs ~= '0'
local keysPerCheck = hasIds and parts + 1 or parts
local values, waits, news, ttls, stamps = {}, {}, {}, {}, {} -- per part of a check
reply[1] = now
for key = 0, #KEYS - 1, keysPerCheck do
  local isKnown = hasIds and call('GET', KEYS[key + keysPerCheck])
  local code, longest, locks, full = 0, 0, false, nil
  for p = 1, parts do
    local part, value, wait, window = plan[p], pcall('GET', KEYS[key + p]), 0, nil
    if value and (type(value) == 'table' or byte(value) ~= part.form) then code = -1 - p break end
    values[p], news[p] = value or '', nil
    if not isKnown then
      wait, window, news[p], ttls[p], stamps[p] = part.look(part, value or part.empty, permits * part.weight)
      if wait < 0 then code = -1 break end
    end
    waits[p] = wait
    if wait > 0 then
      locks = locks or news[p]
      if part.observe then full = full or {} full[part.observe] = true
      elseif wait > longest then longest, code = wait, wait * 1024 + window end
    end
  end
  for p = 1, (code == 0 or code > 0 and locks) and parts or 0 do
    local isFull = full and full[plan[p].observe or 0]
    if news[p] and (waits[p] > 0 or code == 0 and not isFull) then
      call('SET', KEYS[key + p], news[p], 'PX', ttls[p])
      values[p] = news[p]
    end
    if waits[p] > 0 or isFull then stamps[p] = 0 end
    if code == 0 then
      if isFull then reply[last + 1], last = 0, last + 1 end
      reply[last + 1], last = values[p], last + 1
    end
  end
  if code ~= 0 then reply[last + 1], last = code, last + 1
  elseif hasIds and not isKnown then
    local memory = struct.pack('>I7', clock[1] * 1000000 + clock[2])
    for p = 1, parts do memory = memory .. struct.pack('>I6I4', stamps[p], permits * plan[p].weight) end
    call('SET', KEYS[key + keysPerCheck], memory, 'PX', memoryMs)
  end
end
return reply
