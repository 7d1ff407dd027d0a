-- raise: raises the high-water mark, so that no later fencing token is lower. For a lock whose slot is moving from one
-- node of a cluster to another; the other scripts raise it themselves.
--
-- KEYS   1 high-water mark
-- ARGV   1 fencing token
-- Reply  1
local mark = redis.call('GET', KEYS[1])
if not mark or (tonumber(mark) or math.huge) < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1])
end
return 1
