-- Remembers codes, each in place of the one before it.
-- KEYS     the codes
-- ARGV[1]  ms to live
-- ARGV[2…] per code: "<notice id> <tries left> <digest>"
-- returns  1
for code, key in ipairs(KEYS) do redis.call('SET', key, ARGV[code + 1], 'PX', ARGV[1]) end
return 1
