-- set_aside: raises a register to the number of a lease, on a node of a quorum where the lease has the key.
--
-- KEYS   1 lock   2 registers
-- ARGV   1 token   2 register   3 number, 16 digits
-- Reply  1 the register has the number, or a higher one   0 the key is not this token's
--
-- The next owner of the key needs a number above that of the register, and so above those of this lease.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local register = redis.call('HMGET', KEYS[2], ARGV[2])[1]
if not register or (tonumber(string.sub(register, 1, 16)) or 0) < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[3] .. ARGV[1])
end
return 1
