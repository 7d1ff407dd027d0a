-- remove_share: ends a share that stands beside others. For a share whose slot is moving from one node of a cluster to
-- another, where no script may touch more than one of its keys.
--
-- KEYS   1 shares
-- ARGV   1 token
-- Reply  {ended, over}   1 if the share was inside, 0 if not; 1 if it was the last one, 0 if not
--
-- Only one call is told that its share was the last one, and only that call deletes the lock. A second one, told so too,
-- could delete the lock of later shares. So the set goes with its last share, and the shares in it whose end is over go
-- along. A set that is absent has lost its shares, whose owners may not know that yet, and ends nothing.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return {0, 0} end
-- The two latest, of which one may be the caller's.
local latest = redis.call('ZRANGE', KEYS[1], -2, -1, 'WITHSCORES')
for index = 1, #latest, 2 do
  if latest[index] ~= ARGV[1] and tonumber(latest[index + 1]) >= now then
    redis.call('ZREM', KEYS[1], ARGV[1])
    return {1, 0}
  end
end
redis.call('DEL', KEYS[1])
return {1, 1}
