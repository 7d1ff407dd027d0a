-- set_aside: more fencing tokens for a lease that goes on from task to task, on one node of a quorum; and
-- whether anybody waits for its lock.
--
-- KEYS   1 lock   2 registers   3 queue
-- ARGV   1 token   2 register   3 number up to which, 16 digits
-- Reply  1 set aside, and nobody waits   2 set aside, and somebody waits   0 the key is not this token's
--
-- Whoever takes the key later needs a number above the register's: none of those that were set aside.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local register = redis.call('HMGET', KEYS[2], ARGV[2])[1]
if not register or (tonumber(string.sub(register, 1, 16)) or 0) < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[3] .. ARGV[1])
end
return 1 + redis.call('EXISTS', KEYS[3])
