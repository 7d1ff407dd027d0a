-- extend_share_part: lengthens a share where it stands in one of its two keys. For a share whose slot is moving from one
-- node of a cluster to another, where no script may touch more than one of its keys.
--
-- KEYS   1 the lock, or the set of its shares
-- ARGV   1 "lock" or "set"   2 token   3 ttl in ms
-- Reply  1 extended   0 gone   2 another owner's   3 not known   4 the lock lasts as long as that, and the set has to be
--        asked: the lock has several shares
--
-- The lock is asked first and last, so that it never ends before its shares. See extend_shares.lua for the other rules.
local longest = 24 * 60 * 60 * 1000
local key, token, ttl = KEYS[1], ARGV[2], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Writes the end in any case, because replicas acknowledge only what this connection has written.
local function lengthen(least)
  local ends = now + math.min(math.max(redis.call('PTTL', key), least), longest)
  return redis.pcall('PEXPIREAT', key, string.format('%.0f', ends)) == 1
end

if ARGV[1] == 'set' then
  local ends = redis.pcall('ZSCORE', key, token)
  if type(ends) == 'table' and ends.err then return 3 end
  if not ends or tonumber(ends) < now then return 2 end
  if not lengthen(ttl + 1000) then return 3 end
  local added = redis.pcall('ZADD', key, 'XX', string.format('%.0f', math.max(tonumber(ends), now + ttl)), token)
  return type(added) == 'number' and 1 or 3
end
local value = redis.pcall('GET', key)
if not value then return 0 end
if type(value) == 'table' then return string.match(value.err, '^WRONGTYPE') and 2 or 3 end
if value == token then return lengthen(ttl) and 1 or 3 end
if value ~= 'shared/lockkit' then return 2 end
return lengthen(ttl) and 4 or 3
