-- tell: leaves the queue, and tells the first who wait that the key may be free. For a lock whose keys
-- are on their way from one node of a cluster to another: it cannot be given to anybody meanwhile.
--
-- KEYS   1 queue
-- ARGV   1 token   2 grant in ms, as it stands in the queue   3 prefix of the managers' channels
--        4 lock, of which only the name is told   5 when it will be free, in ms
-- Reply  1   2 the server refused to tell the waiters
-- Error  READONLY, NOREPLICAS, MISCONF, a missing right   the queue cannot be changed at the moment; the waiters are
--                                                         to be told later
local left = redis.pcall('ZREM', KEYS[1], ARGV[1] .. ' ' .. ARGV[2])
-- Its place still stands: the next to be told may be the very waiter that leaves, again and again.
if is_refused(left) then return left end
tell_next(KEYS[1], ARGV[4], ARGV[3], tonumber(ARGV[5]))
return failed or untold and 2 or 1
