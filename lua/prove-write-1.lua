-- Proves that scripts can write now. If memory is full, the server is read-only or a right is missing, it fails as a
-- send would.
--
-- KEYS[1] a key that is never read and expires soon
-- ARGV[1] its time to live, ms
--
-- returns OK
return redis.call('set', KEYS[1], '', 'px', ARGV[1])
