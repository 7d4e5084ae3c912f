-- Runs steps on the codes of owners. It is one script so that a guess is always counted before it is compared, and a
-- code is replaced, used or given back in one step.
-- KEYS     per step the codes of an address, oldest first: JSON [{id, scene, channel, tries (left), knownTries, digest, ends (ms), state,
--          takers}]; channel: absent for the first channel of the kind of address; state: current (this code passes), used, or
--          pending (it neither passes nor replaces until it is settled); takers: ",<request id>,…" of the guesses that used a
--          try; onPass: data for the caller of the right guess; proof: {key, sealed, at (ms), request} of the right guess, for
--          its repeats; isRepeated: a repeat got it.
--          A code for several notices has one budget of tries, and in place of digest and channel: channels (that it
--          replaces), digests {<notice id>: {digest, ends, channel, length, onPass, isLive (settled)}}, passed (notice id).
--          A lead has home: data that leads to a code under another key, with the same id
-- ARGV     per step: the number of the arguments that follow, the name of the step, the scene of its codes, their channels
--          (joined by commas, "" is the first channel of the kind), its arguments:
--          remember  code id, tries, digest, ms to live, 1 if another key may have a code (else 0), data for the caller of the
--                    right guess ("": nothing), number of characters; for a code with several notices: notice id, channel, 0 if
--                    an earlier notice must have it (else 1), lane of the send, digests of the same characters for its other channels
--          refer     code id, ms to live, 1 if another key may have a code (else 0), data that leads to the code
--          settle (its code replaces all earlier codes)  code id, notice id ("": the code's own), 1 if earlier leads are ended
--          forget    code id, notice id
--          drop      code id or "" for any (ends these codes, but keeps the fact that they existed), request id
--          guess     request id, lane, code id or "" for any, id of the API key, proof for repeats ("": none), digests (one per
--                    secret in use)
--          again     code id, id of the API key, digests (takes no try)
--          takeBack  request id of a guess, lane
--          look      code id or "" for any
--          clear     ends (ms), code id (removes the codes of the scene that come before this settled code of another key)
--          scenes    (of every code; its own scene is "")
-- returns  per step:
--          remember: 1 pending, 0 current at once, because there was no other code; for a code with several notices also -1 it
--          has ended, -2 these characters are in use
--          settle: the end of the code (ms) if it is current now, -1 if the owner has no code, else 0
--          refer: as remember; forget, clear: 1 if there was something
--          takeBack: 1 if there was something; an end, if a repeat has the proof of this right guess, which then stays
--          drop: the end of a code that was not used, or that this request ended; 0 if there was none
--          guess: an end, if right (the code is used up); the tries left of a wrong guess; {0, code id} for the guess that took
--          the last try; or why nothing was compared: -1 there is no such code, -2 it is out of tries, -3 it was used or
--          ended; {1, proof, channel} for a repeat (guess, again: or -3)
--          An end is a code id, {code id, data}, or for several notices {notice id, data or "", code id, channel}
--          look: "<tries left> <ends, ms since 1970> <characters> <tries of known browsers>" of the current code; for several notices {code, this text,
--          code id, channels}; -1 or -3 as above
--          settle, drop, guess, look: {home, data, code id, ends} for a lead. The step has not reached the code itself. Settle
--          returns an earlier lead before it does anything
--          scenes: the scenes
-- include codes.lua
local clock, answers, at = redis.call('TIME'), {}, 1
local maxCodesOfAllScenes = 64
now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function scenesOf(codes)
  local scenes, isListed = {}, {}
  for _, code in ipairs(codes) do
    if not isListed[code.scene] then table.insert(scenes, code.scene) end
    isListed[code.scene] = true
  end
  return scenes
end

local hasWritten = false

-- True if a step for these channels sees the code. A code for several notices is seen by all, because any send replaces it.
local function isSeen(code, scene, view)
  if code.scene ~= scene then return false end
  return code.digests or code.home or (',' .. view .. ','):find(',' .. (code.channel or '') .. ',', 1, true)
end

local function take(key, name, scene, view, ...)
  local isRead, stored = false, redis.pcall('GET', key)
  -- Decoding nothing would be an error, which costs as much as the whole step.
  if type(stored) == 'string' then isRead, stored = pcall(cjson.decode, stored) end
  if not isRead or type(stored) ~= 'table' then stored = {} end
  local codes, others, order = {}, {}, {}
  for _, code in ipairs(name == 'settle' and stored or {}) do
    if code.id == ... and code.channels then view = code.channels end
  end
  for place, code in ipairs(stored) do
    order[code] = place
    if code.ends > now then table.insert(isSeen(code, scene, view) and codes or others, code) end
  end
  if name == 'scenes' then return scenesOf(others) end
  local answer, isChanged, isNew = steps[name](codes, ...)
  if not isChanged then return answer end
  hasWritten = true
  for _, code in ipairs(codes) do
    if not order[code] then
      code.scene, order[code] = scene, #stored + 1
      if code.digests then code.channels = view elseif view ~= '' then code.channel = view end
    end
    table.insert(others, code)
  end
  table.sort(others, function(one, other) return order[one] < order[other] end)
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
