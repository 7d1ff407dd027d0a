-- remove_share: ends a share that stands beside others. For a share whose slot is moving from one node of a cluster to
-- another, where no script may touch more than one of its keys.
--
-- KEYS   1 shares
-- ARGV   1 token
-- Reply  {ended, live}   1 if the share was inside, 0 if not; 1 if other shares are inside still, 0 if not
--
-- The other shares are read first: the end of the last one deletes the set, and no script may touch an absent key of a
-- slot that is moving.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- The two latest, of which one may be the caller's.
local latest = redis.call('ZRANGE', KEYS[1], -2, -1, 'WITHSCORES')
local live = 0
for index = 1, #latest, 2 do
  if latest[index] ~= ARGV[1] and tonumber(latest[index + 1]) >= now then live = 1 end
end
return {redis.call('ZREM', KEYS[1], ARGV[1]), live}
