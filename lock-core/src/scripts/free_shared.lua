-- free_shared: deletes a lock whose last share has ended. For a lock whose slot is moving from one node of a cluster to
-- another, where no script may touch more than one of its keys.
--
-- KEYS   1 lock
-- ARGV   1 the value of a lock with several shares   2 the end of the lock when its value was read, in ms of Unix time
-- Reply  1 deleted, or there is no such key   2 the key is another owner's, or may be
--
-- No share enters a lock of several shares whose set is missing. So the value is the same lock's until the end that was
-- read, and a client that was stopped on the way deletes no later lock.
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) >= tonumber(ARGV[2]) then return 2 end
local value = redis.pcall('GET', KEYS[1])
if not value then return 1 end
if value ~= ARGV[1] then return 2 end
redis.call('DEL', KEYS[1])
return 1
