-- raise: no later fencing token is lower than this one. For a lock whose keys are on their way from one
-- node of a cluster to another: the other scripts do it by themselves.
--
-- KEYS   1 mark
-- ARGV   1 fencing token
-- Reply  1
local mark = redis.call('GET', KEYS[1])
if not mark or (tonumber(mark) or math.huge) < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1])
end
return 1
