-- notify: leaves the queue, and notifies the first waiters that the key may be free. For a lock whose slot is moving
-- from one node of a cluster to another, which cannot be handed off meanwhile.
--
-- KEYS   1 queue
-- ARGV   1 token   2 grant in ms, as in the queue's entry   3 prefix of the managers' channels
--        4 lock, only as a name in messages   5 when it will be free, in ms
-- Reply  1   2 the server refused to notify the waiters
-- Error  READONLY, NOREPLICAS, MISCONF, a missing right   the queue cannot be changed at the moment; the waiters are to
--                                                         be notified later
local left = redis.pcall('ZREM', KEYS[1], ARGV[1] .. ' ' .. ARGV[2])
-- The entry is still there, so the waiter that leaves would be notified again and again.
if is_refused(left) then return left end
notify_next(KEYS[1], ARGV[4], ARGV[3], tonumber(ARGV[5]))
return (failed or unnotified) and 2 or 1
