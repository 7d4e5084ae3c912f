-- Proves that scripts may write here now: out of memory, read-only or not allowed is an error, as it would
-- be for a send.
--
-- KEYS[1] never read, gone after a moment
-- ARGV[1] how long it stays, ms
--
-- returns OK
return redis.call('set', KEYS[1], '', 'px', ARGV[1])
