-- Proves that scripts can write now. Full memory, a read-only server or a missing permission is an error, as in a send.
--
-- KEYS[1] a key that is never read and expires soon
-- ARGV[1] its time to live, ms
--
-- returns OK
return redis.call('set', KEYS[1], '', 'px', ARGV[1])
