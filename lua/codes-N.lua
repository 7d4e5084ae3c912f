-- Runs steps on the codes of owners. It is one script so that a guess is always counted before it is compared, and a
-- code is replaced, used or given back in one step.
-- KEYS     per step the codes of a recipient, oldest first: JSON [{id, scene, tries (left), digest, ends (ms), state,
--          takers}]; state: current (this code passes), used, or pending (it neither passes nor replaces until it is settled);
--          takers: ",<request id>,…" of the guesses that used a try; onPass: data for the caller of the right guess;
--          proof: {key, sealed, at (ms), request} of the right guess, for its repeats; isRepeated: a repeat got it
-- ARGV     per step: the number of the arguments that follow, the name of the step, the scene of its codes, its arguments:
--          remember  notice id, tries, digest, ms to live, 1 if another key may have a code (else 0),
--                    data for the caller of the right guess ("": nothing), number of characters of the code
--          settle (its code replaces all earlier codes), forget  notice id
--          drop      notice id or "" for any (ends these codes, but keeps the fact that they existed), request id
--          guess     request id, notice id or "" for any, id of the API key, proof for repeats ("": none), digests (one per
--                    secret in use)
--          again     notice id, id of the API key, digests (takes no try)
--          takeBack  request id of a guess
--          look      notice id or "" for any
--          clear     ends (ms), notice id (removes the codes of the scene that come before this settled code of another key)
--          scenes    (of every code; its own scene is "")
-- returns  per step:
--          remember: 1 pending, 0 current at once, because there was no other code
--          settle: the end of the code (ms) if it is current now, -1 if the owner has no code
--          forget, clear: 1 if there was something
--          takeBack: 1 if there was something; a notice id, or {notice id, data}, if a repeat has the proof of this right guess,
--          which then stays
--          drop: a notice id, or {notice id, data}, of a code that was not used, or that this request ended; 0 if there was none
--          guess: a notice id, or {notice id, data}, if right (the code is used up); the tries left of a wrong guess;
--          {0, notice id} for the guess that took the last try; or why nothing was compared: -1 there is no such code,
--          -2 it is out of tries, -3 it was used or ended; {1, proof} for a repeat (guess, again: or -3)
--          look: "<tries left> <ends, ms since 1970> <characters>" of the current code; -1 or -3 as above
--          scenes: the scenes
local clock, steps, answers, at = redis.call('TIME'), {}, {}, 1
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local maxCodes, maxCodesOfAllScenes, repeatsForMs = 8, 64, 60000

local function find(codes, id)
  for place, code in ipairs(codes) do if code.id == id then return place, code end end
end

-- A step gets the codes of its scene. It returns its answer, true if it changed the codes, and true if it added a code.
function steps.remember(codes, id, tries, digest, ttlMs, hasOthers, onPass, length)
  local isPending = #codes > 0 or hasOthers == '1'
  -- So many codes are left only by processes that died. The first code may be the current one.
  if #codes >= maxCodes then table.remove(codes, 2) end
  local state = isPending and 'pending' or 'current'
  local code = { id = id, tries = tonumber(tries), digest = digest, ends = now + ttlMs, state = state, takers = ',' }
  code.length = tonumber(length)
  if onPass ~= '' then code.onPass = onPass end
  table.insert(codes, code)
  return isPending and 1 or 0, true, true
end

function steps.settle(codes, id)
  if #codes == 0 then return -1 end
  local place, code = find(codes, id)
  if not code or code.state == 'used' or code.tries == 0 then return 0 end
  local isPending = code.state == 'pending'
  code.state = 'current'
  for _ = 2, place do table.remove(codes, 1) end
  return code.ends, isPending
end

function steps.forget(codes, id)
  local place = find(codes, id)
  return place and 1 or 0, place and table.remove(codes, place)
end

local function endOf(code) return code.onPass and { code.id, code.onPass } or code.id end

function steps.drop(codes, wanted, request)
  local answer, isChanged = 0, false
  for _, code in ipairs(codes) do
    if wanted == '' or wanted == code.id then
      if code.state ~= 'used' then code.endedBy = request end
      if code.endedBy == request then answer = endOf(code) end
      -- Takers are removed, so that no guess can be taken back. Otherwise that would bring back the code.
      code.state, code.takers, code.digest, isChanged = 'used', ',', '', true
    end
  end
  return answer, isChanged
end

-- The reason why there is no current code, as in the answers of guess.
local function whyGone(code, wanted)
  if not code or code.state == 'pending' or wanted ~= '' and wanted ~= code.id then return -1 end
  return code.state == 'used' and -3 or nil
end

local function isRight(code, ...)
  for _, digest in ipairs({ ... }) do if digest == code.digest then return true end end
  return false
end

-- The answer to the right guess may be lost, so its repeat by the same key gets the same proof. One wrong code ends this:
-- all visitors of a page have one key.
function steps.again(codes, wanted, key, ...)
  local code = codes[1]
  local proof = code and code.state == 'used' and wanted == code.id and code.proof
  if not proof or proof.key ~= key or math.abs(now - proof.at) >= repeatsForMs then return -3 end
  if not isRight(code, ...) then
    code.proof = nil
    return -3, true
  end
  -- A late take-back of the right guess would bring back the code.
  code.takers, code.isRepeated = ',', true
  return { 1, proof.sealed }, true
end

function steps.guess(codes, request, wanted, key, sealed, ...)
  local code = codes[1]
  local gone = whyGone(code, wanted) or code.tries == 0 and -2
  if gone == -3 and sealed ~= '' then return steps.again(codes, wanted, key, ...) end
  if gone then return gone end
  code.tries, code.takers = code.tries - 1, code.takers .. request .. ','
  if not isRight(code, ...) then return code.tries > 0 and code.tries or { 0, code.id }, true end
  code.state = 'used'
  if sealed ~= '' then code.proof = { key = key, sealed = sealed, at = now, request = request } end
  return endOf(code), true
end

function steps.takeBack(codes, request)
  for _, code in ipairs(codes) do
    local from, to = code.takers:find(',' .. request .. ',', 1, true)
    if from then
      -- No guess is counted after the right one, so the last guess is the right one.
      if code.state == 'used' and to == #code.takers then code.state, code.proof = 'current', nil end
      code.tries, code.takers = code.tries + 1, code.takers:sub(1, from) .. code.takers:sub(to + 1)
      return 1, true
    end
    if code.isRepeated and code.proof and code.proof.request == request then return endOf(code) end
  end
  return 0
end

function steps.look(codes, wanted)
  local code = codes[1]
  local gone = whyGone(code, wanted)
  if gone then return gone end
  return string.format('%d %.0f %d', code.tries, code.ends, code.length or 0)
end

-- A code that ends later stays. Otherwise two codes that are settled at once, under two names, would remove each other.
function steps.clear(codes, ends, id)
  local count = #codes
  for place = count, 1, -1 do
    local code = codes[place]
    if code.ends < tonumber(ends) or code.ends == tonumber(ends) and code.id < id then table.remove(codes, place) end
  end
  return count > #codes and 1 or 0, count > #codes
end

local function scenesOf(codes)
  local scenes, isListed = {}, {}
  for _, code in ipairs(codes) do
    if not isListed[code.scene] then table.insert(scenes, code.scene) end
    isListed[code.scene] = true
  end
  return scenes
end

local hasWritten = false

local function take(key, name, scene, ...)
  local isRead, stored = false, redis.pcall('GET', key)
  -- Decoding nothing would be an error, which costs as much as the whole step.
  if type(stored) == 'string' then isRead, stored = pcall(cjson.decode, stored) end
  local codes, others = {}, {}
  for _, code in ipairs(isRead and type(stored) == 'table' and stored or {}) do
    if code.ends > now then table.insert(code.scene == scene and codes or others, code) end
  end
  if name == 'scenes' then return scenesOf(others) end
  local answer, isChanged, isNew = steps[name](codes, ...)
  if not isChanged then return answer end
  hasWritten = true
  for _, code in ipairs(codes) do
    code.scene = scene
    table.insert(others, code)
  end
  -- The oldest codes are removed. Each code needed a send to this recipient, so there are rarely so many.
  while #others > maxCodesOfAllScenes do table.remove(others, 1) end
  if #others == 0 then redis.call('DEL', key)
  elseif isNew then
    local ends = 0
    for _, code in ipairs(others) do ends = math.max(ends, code.ends) end
    redis.call('SET', key, cjson.encode(others), 'PXAT', string.format('%.0f', ends))
  else redis.call('SET', key, cjson.encode(others), 'KEEPTTL') end
  return answer
end

-- A server that has become a replica has old codes: it would report new codes as lost. GETEX counts as a write, so a replica
-- refuses it. Not before a step: after a first write, Redis lets a script exceed `maxmemory`.
local function refuseAsReplica()
  local reply = redis.pcall('GETEX', KEYS[1])
  if type(reply) == 'table' and reply.err and not reply.err:find('^WRONGTYPE') then error(reply, 0) end
end

for step, key in ipairs(KEYS) do
  answers[step], at = take(key, unpack(ARGV, at + 1, at + ARGV[at])), at + ARGV[at] + 1
end
if not hasWritten then refuseAsReplica() end
return answers
