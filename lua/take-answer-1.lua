-- Takes a value that can be used once, an answer to a challenge or a pass, for one request.
--
-- KEYS[1] the user of the answer: the id of a request, followed by " right" if the answer is known to be right; only
--         "right" if a right answer was returned
-- ARGV[1] the id of the request
-- ARGV[2] ms for which the answer would stay valid
--
-- returns 1: not used before | 2: known to be right, and returned before | 0: another request has it
local holder = redis.call('GET', KEYS[1])
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
elseif holder == 'right' then
  redis.call('SET', KEYS[1], ARGV[1] .. ' right', 'KEEPTTL')
  return 2
end
return 0
