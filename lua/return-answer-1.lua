-- Takes it back from a request that came to nothing. Changes nothing when another
-- request has it by now, so it may be done twice.
-- KEYS[1]  who has the answer, as in take-answer-1.lua
-- ARGV[1]  the id of the request
-- ARGV[2]  1: the answer has turned out right; 0: it was not looked at
-- returns  1 if the request had it, else 0
local holder = redis.call('GET', KEYS[1])
local wasRight = holder == ARGV[1] .. ' right'
if holder ~= ARGV[1] and not wasRight then
  return 0
elseif wasRight or ARGV[2] == '1' then
  redis.call('SET', KEYS[1], 'right', 'KEEPTTL')
else
  redis.call('DEL', KEYS[1])
end
return 1
