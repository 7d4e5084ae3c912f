-- Decides checks of one policy in turn, each all or nothing. A refusal writes nothing, except that a
-- lockout's refusal begins its lock. src/limiter/redis-values.ts tells what values are made of.
-- KEYS    per check: one per part of the policy, then its request's key if the checks have ids
-- ARGV    permits, ms to remember requests (0: they have no ids), then start and end of each calendar's period
-- returns now, then per check the value of every part as it is now (after a 0: it is observed, and full)
--         | wait * 1024 + window | -1, outside a calendar's period | -2 - part, whose value has another form
local call, pcall, byte, KEYS, reply = redis.call, redis.pcall, string.byte, KEYS, {}
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Here stand the looks that the policy needs, and its parts; see src/limiter/acquire-script.ts.
local plan = {}

local permits, memoryMs, parts = tonumber(ARGV[1]), ARGV[2], #plan
local keysPerCheck = memoryMs == '0' and parts or parts + 1
local values, waits, news, ttls, stamps = {}, {}, {}, {}, {} -- per part
reply[1] = now
for key = 0, #KEYS - 1, keysPerCheck do
  local request, code, longest, full = KEYS[key + parts + 1], 0, 0, nil
  local isNew = keysPerCheck == parts or not call('GET', request)
  for p = 1, parts do
    local part, value = plan[p], pcall('GET', KEYS[key + p])
    if value and (type(value) == 'table' or byte(value) ~= part.form) then code = -1 - p break end
    values[p], news[p], waits[p], stamps[p] = value or '', false, 0, 0
    if isNew then
      local wait, window
      wait, window, news[p], ttls[p], stamps[p] = part.look(part, value or part.empty, permits * part.weight)
      if wait < 0 then code = -1 break end
      waits[p] = wait
      if wait > 0 and part.observe then
        full = full or {}
        full[part.observe] = true
      elseif wait > longest then longest, code = wait, wait * 1024 + window end
    end
  end
  for p = 1, code < 0 and 0 or parts do
    local isHeld, isFull = waits[p] > 0, full and full[plan[p].observe or 0]
    if news[p] and (isHeld or code == 0 and not isFull) then
      call('SET', KEYS[key + p], news[p], 'PX', ttls[p])
      values[p] = news[p]
    end
    if code == 0 and isFull then reply[#reply + 1] = 0 end
    if isHeld or isFull then stamps[p] = 0 end
    if code == 0 then reply[#reply + 1] = values[p] end
  end
  if code ~= 0 then reply[#reply + 1] = code
  elseif isNew and keysPerCheck > parts then
    local memory = struct.pack('>I7', clock[1] * 1000000 + clock[2])
    for p = 1, parts do memory = memory .. struct.pack('>I6I4', stamps[p], permits * plan[p].weight) end
    call('SET', request, memory, 'PX', memoryMs)
  end
end
return reply
