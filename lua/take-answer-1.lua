-- Takes what is good once, an answer to a challenge or a pass, for one request.
-- KEYS[1]  who has the answer: the id of a request, and " right" behind it if the answer was known to be
--          right when it was taken; "right" alone: it is, and was given back
-- ARGV[1]  the id of the request
-- ARGV[2]  how long the answer could be given again, in ms
-- returns  1: nobody had it before | 2: it is known to be right, and was given back | 0: another request has it
local holder = redis.call('GET', KEYS[1])
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
elseif holder == 'right' then
  redis.call('SET', KEYS[1], ARGV[1] .. ' right', 'KEEPTTL')
  return 2
end
return 0
