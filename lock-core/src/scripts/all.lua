-- all: takes several locks, each for a token of its own, or none of them.
--
-- KEYS   1 high-water mark   2… locks
-- ARGV   1 ttl in ms   2… for each lock: token
-- Reply  fence                   all granted; the fencing token of all, as a decimal string
--        {index, value, pttl}    refused: the lock with this index, from 0 on, holds this value, for how many ms
--                                (-1: for ever); nothing was done
-- Error  WRONGTYPE, LOCKMARK     a key holds another value than the kit's; nothing was done
--        any other               the server refused to set a lock; those that were set before are deleted again
--
-- A lock that holds its token already was granted by an earlier send, or by itself. It is granted again, and lengthened
-- to the ttl. No waiter enters a queue.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local lasts = tonumber(ARGV[1])
local mark = redis.call('GET', KEYS[1])
local highest = 0
if mark then highest = #mark <= 16 and string.match(mark, '^%d+$') and tonumber(mark) end
if not highest or highest >= 9e15 then
  return redis.error_reply('LOCKMARK no fencing token can be counted from the mark')
end

-- EXISTS sees keys of every type, which MGET would call absent and SET would overwrite.
local own = {}
if redis.call('EXISTS', unpack(KEYS, 2)) > 0 then
  for index = 2, #KEYS do
    local value = redis.call('GET', KEYS[index])
    if value and value ~= ARGV[index] then return {index - 2, value, redis.call('PTTL', KEYS[index])} end
    own[index] = value
  end
end

local fence = now
if highest >= now then
  -- The clock is behind a token that was given. See acquire.lua; 1000 is its `passes`.
  fence = highest + 1
  redis.call('SET', KEYS[1], string.format('%.0f', fence + 1000))
end
for index = 2, #KEYS do
  local ms = lasts
  -- This may be an earlier question that arrives late, when the lease has been extended. So it only lengthens.
  if own[index] then ms = math.max(ms, redis.call('PTTL', KEYS[index])) end
  local set = redis.pcall('SET', KEYS[index], ARGV[index], 'PXAT', string.format('%.0f', math.floor(now / 1000) + ms))
  if set.err then
    for before = 2, index - 1 do
      if not own[before] then redis.pcall('DEL', KEYS[before]) end
    end
    return set
  end
end
return string.format('%.0f', fence)
