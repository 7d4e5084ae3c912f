-- Proves that scripts can write here now. Out of memory, read-only or forbidden is an error, as for a send.
--
-- KEYS[1] a key that is never read and expires soon
-- ARGV[1] its time to live, ms
--
-- returns OK
return redis.call('set', KEYS[1], '', 'px', ARGV[1])
