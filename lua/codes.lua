-- The steps of `codes-N.lua`. Each gets the codes that it may see, oldest first, and the time in `now`. It returns its answer,
-- true if it changed the codes, and true if it added a code or a digest.
--
-- returns  the table of the steps, by name, in `steps`
local steps, now = {}, nil
local maxCodes, repeatsForMs = 8, 60000

local function find(codes, id)
  for place, code in ipairs(codes) do if code.id == id then return place, code end end
end

local function add(codes, code, hasOthers)
  local isPending = #codes > 0 or hasOthers == '1'
  -- So many codes are left only by processes that died. The first code may be the current one.
  if #codes >= maxCodes then table.remove(codes, 2) end
  code.state, code.takers, code.knownTries = isPending and 'pending' or 'current', ',', code.tries
  table.insert(codes, code)
  return isPending and 1 or 0, true, true
end

-- The end of a code for several notices: the latest end of a digest that passes.
local function endOfDigests(code)
  local ends, length = 0, 0
  for _, one in pairs(code.digests) do
    if one.isLive and one.ends > ends then ends, length = one.ends, one.length end
  end
  return ends, length
end

-- The notice whose digest is among these; for a code of one notice, the id of the code.
local function rightOf(code, ...)
  for _, digest in ipairs({ ... }) do
    if digest == code.digest then return code.id end
    for notice, one in pairs(code.digests or {}) do
      if one.isLive and one.ends > now and one.digest == digest then return notice end
    end
  end
end

-- The tries of a lane. A code of a process without lanes has only `tries`, for both. Without a lane: all.
local function triesOf(code, lane) return lane == 'known' and code.knownTries and 'knownTries' or 'tries' end
local function isOver(code, lane)
  return code.state == 'used' or code[triesOf(code, lane or 'known')] == 0 and (lane or code.tries == 0)
end

function steps.remember(codes, id, tries, digest, ttlMs, hasOthers, onPass, length, notice, channel, isFirst, lane, ...)
  local made = { digest = digest, ends = now + ttlMs, length = tonumber(length) }
  if onPass ~= '' then made.onPass = onPass end
  if not notice then
    made.id, made.tries = id, tonumber(tries)
    return add(codes, made, hasOthers)
  end
  made.channel = channel
  local _, code = find(codes, id)
  if not code then
    if isFirst == '0' then return -1 end
    code = { id = id, tries = tonumber(tries), digest = '', ends = made.ends, digests = { [notice] = made } }
    local isPending = add(codes, code, hasOthers)
    made.isLive = isPending == 0
    return isPending, true, true
  end
  if isOver(code, lane) or code.state == 'current' and endOfDigests(code) <= now then return -1 end
  if rightOf(code, ...) then return -2 end
  code.digests[notice], code.ends = made, math.max(code.ends, made.ends)
  return 1, true, true
end

function steps.refer(codes, id, ttlMs, hasOthers, home)
  local _, code = find(codes, id)
  local answer = code and 0 or add(codes, { id = id, tries = 1, digest = '' }, hasOthers)
  code = code or codes[#codes]
  code.ends, code.home = now + ttlMs, home
  return answer, true, true
end

local function leadOf(code) return { 'home', code.home, code.id, string.format('%.0f', code.ends) } end

function steps.settle(codes, id, notice, isCleared)
  if #codes == 0 then return -1 end
  local place, code = find(codes, id)
  local digest = notice ~= '' and code and code.digests and code.digests[notice]
  if not code or isOver(code) or code.digests and not digest then return 0 end
  if (digest or code).ends <= now then return 0 end
  for before = 1, place - 1 do
    if codes[before].home and codes[before].state == 'current' and isCleared ~= '1' then return leadOf(codes[before]) end
  end
  local isPending = code.state == 'pending' or digest and not digest.isLive
  code.state = 'current'
  if digest then digest.isLive = true end
  for _ = 2, place do table.remove(codes, 1) end
  return code.home and leadOf(code) or (digest or code).ends, isPending
end

function steps.forget(codes, id, notice)
  local place, code = find(codes, id)
  if not code then return 0 end
  if code.digests then
    code.digests[notice] = nil
    if next(code.digests) or code.state == 'used' then return 1, true end
  end
  return 1, table.remove(codes, place)
end

local function endOf(code)
  local one = code.passed and code.digests[code.passed]
  if one then return { code.passed, one.onPass or '', code.id, one.channel } end
  return code.onPass and { code.id, code.onPass } or code.id
end

function steps.drop(codes, wanted, request)
  local answer, isChanged = 0, false
  for _, code in ipairs(codes) do
    if wanted == '' or wanted == code.id then
      if code.home then answer = leadOf(code)
      else
        if code.state ~= 'used' then code.endedBy = request end
        if code.endedBy == request then answer = endOf(code) end
        -- Takers are removed, so that no guess can be taken back. Otherwise that would bring back the code.
        code.state, code.takers, code.digest, isChanged = 'used', ',', '', true
        code.digests, code.passed = code.digests and {}, nil
      end
    end
  end
  return answer, isChanged
end

-- The reason why there is no current code, as in the answers of guess.
local function whyGone(code, wanted)
  if not code or code.state == 'pending' or wanted ~= '' and wanted ~= code.id then return -1 end
  if code.home then return leadOf(code) end
  if code.state == 'used' then return -3 end
  return code.digests and endOfDigests(code) <= now and -1 or nil
end

-- The answer to the right guess may be lost, so its repeat by the same key gets the same proof. One wrong code ends this:
-- all visitors of a page have one key.
function steps.again(codes, wanted, key, ...)
  local code = codes[1]
  local proof = code and code.state == 'used' and wanted == code.id and code.proof
  if not proof or proof.key ~= key or math.abs(now - proof.at) >= repeatsForMs then return -3 end
  if rightOf(code, ...) ~= (code.passed or code.id) then
    code.proof = nil
    return -3, true
  end
  -- A late take-back of the right guess would bring back the code.
  code.takers, code.isRepeated = ',', true
  return { 1, proof.sealed, code.passed and code.digests[code.passed].channel }, true
end

function steps.guess(codes, request, lane, wanted, key, sealed, ...)
  local code = codes[1]
  local tries = triesOf(code or {}, lane)
  local gone = whyGone(code, wanted) or code[tries] == 0 and -2
  if gone == -3 and sealed ~= '' then return steps.again(codes, wanted, key, ...) end
  if gone then return gone end
  code[tries], code.takers = code[tries] - 1, code.takers .. request .. ','
  local right = rightOf(code, ...)
  if not right then return code[tries] > 0 and code[tries] or { 0, code.id }, true end
  code.state, code.passed = 'used', code.digests and right
  if sealed ~= '' then code.proof = { key = key, sealed = sealed, at = now, request = request } end
  return endOf(code), true
end

function steps.takeBack(codes, request, lane)
  for _, code in ipairs(codes) do
    local from, to = code.takers:find(',' .. request .. ',', 1, true)
    if from then
      -- No guess is counted after the right one, so the last guess is the right one.
      if code.state == 'used' and to == #code.takers then code.state, code.proof, code.passed = 'current', nil, nil end
      local tries = triesOf(code, lane)
      code[tries], code.takers = code[tries] + 1, code.takers:sub(1, from) .. code.takers:sub(to + 1)
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
  local ends, length = code.ends, code.length or 0
  if code.digests then ends, length = endOfDigests(code) end
  local facts = string.format('%d %.0f %d %d', code.tries, ends, length, code[triesOf(code, 'known')])
  if not code.digests then return facts end
  local answer = { 'code', facts, code.id }
  for _, one in pairs(code.digests) do if one.isLive then table.insert(answer, one.channel) end end
  return answer
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
