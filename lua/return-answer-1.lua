-- Returns the answer of a failed request, so that it can be used again. Changes nothing if another request has the
-- answer now. So the script can be repeated.
--
-- KEYS[1] the user of the answer, as in take-answer-1.lua
-- ARGV[1] the id of the request
-- ARGV[2] 1: the answer was right; 0: it was not checked
--
-- returns 1 if the request had it, else 0
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
