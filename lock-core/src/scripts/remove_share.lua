-- remove_share: ends a share that stands beside others. For a share whose slot is moving from one node of a cluster to
-- another, where no script may touch more than one of its keys.
--
-- KEYS   1 shares
-- ARGV   1 token
-- Reply  {ended, live}   1 if the share was inside, 0 if not; the number of shares that are inside still
--
-- The shares are counted first: the end of the last one deletes the set, and no script may touch an absent key of a slot
-- that is moving.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local live = redis.call('ZCOUNT', KEYS[1], string.format('%.0f', now), '+inf')
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not ends then return {0, live} end
if tonumber(ends) >= now then live = live - 1 end
redis.call('ZREM', KEYS[1], ARGV[1])
return {1, live}
