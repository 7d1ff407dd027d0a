-- vacate: releases a lock and hands it off to no waiter. The key is left free for a while, for clients that enter no
-- queue. The first two waiters are told to ask when that is over.
--
-- KEYS   1 lock   2 high-water mark   3 queue
-- ARGV   1 token   2 fencing token, or ""   3 prefix of the managers' channels   4 not read: the owner
--        of a key stands in no queue   5 for how long the key is left free, in ms
-- Reply  1 released   0 there is no such key   2 the key is another owner's
--        8 as 1, and not all waiters could be notified: serve them when the gap is over
-- Error  a missing right   the server refuses to read the key; nothing was done
--
-- Deletes only this very token, and cannot fail after that.
local value = redis.pcall('GET', KEYS[1])
if is_refused(value) then return value end
if not value then return 0 end
if value ~= ARGV[1] then return 2 end
raise(KEYS[2], redis.pcall('GET', KEYS[2]), ARGV[2])
redis.call('DEL', KEYS[1])
notify_next(KEYS[3], KEYS[1], ARGV[3], tonumber(ARGV[5]))
return (entries == 0 or failed or unnotified) and 8 or 1
