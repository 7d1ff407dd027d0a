-- extend_shares: lengthens shares to their ttl. Never creates one.
--
-- KEYS   for each share: lock, shares
-- ARGV   for each share: token, ttl in ms; then "write", if replicas must acknowledge the lease
-- Reply  for each share: 1 extended   0 gone   2 another owner's   3 not known
--
-- As extend.lua, and the key ends with the latest of its shares. A share whose end is over is gone, also where it still
-- stands in the set.
local longest = 24 * 60 * 60 * 1000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local writes = ARGV[#KEYS + 1] == 'write'

local function lengthen(key, ends)
  return redis.pcall('PEXPIREAT', key, string.format('%.0f', ends)) == 1
end

local function extend_lone(lock, token, ttl)
  local left = redis.call('PTTL', lock)
  if left < ttl or left > longest then return lengthen(lock, now + ttl) end
  return not writes or redis.pcall('SET', lock, token, 'KEEPTTL').ok
end

-- The key is lengthened before the share. A server without memory allows that, and everything after a first write.
local function extend_beside(lock, shares, token, ttl, ends)
  local latest = now + redis.call('PTTL', lock)
  local lengthens = ends < now + ttl or ends > now + longest
  if lengthens then
    ends = now + ttl
  elseif not writes and latest >= ends then
    return true
  end
  latest = math.max(math.min(latest, now + longest), ends)
  if not lengthen(lock, latest) then return false end
  redis.call('PEXPIREAT', shares, string.format('%.0f', latest + 1000))
  if lengthens then redis.call('ZADD', shares, 'XX', string.format('%.0f', ends), token) end
  return true
end

local reply = {}
for index = 1, #KEYS / 2 do
  local lock, shares = KEYS[2 * index - 1], KEYS[2 * index]
  local token, ttl = ARGV[2 * index - 1], tonumber(ARGV[2 * index])
  local value = redis.pcall('GET', lock)
  if value == token then
    reply[index] = extend_lone(lock, token, ttl) and 1 or 3
  elseif value == 'shared/lockkit' then
    local ends = redis.pcall('ZSCORE', shares, token)
    if type(ends) == 'table' and ends.err then
      reply[index] = 3
    elseif ends and tonumber(ends) >= now then
      reply[index] = extend_beside(lock, shares, token, ttl, tonumber(ends)) and 1 or 3
    else
      reply[index] = 2
    end
  elseif not value then
    reply[index] = 0
  elseif type(value) == 'table' and not string.match(value.err, '^WRONGTYPE') then
    reply[index] = 3
  else
    reply[index] = 2
  end
end
return reply
