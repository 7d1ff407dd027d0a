-- force: takes a key, or one share of it, from the holder that an operator has seen, and from no other.
--
-- KEYS   1 lock   2 high-water mark; on a node of a quorum the registers   3 queue   4 shares
-- ARGV   1 the holder's token: the value of the key, or a member of its shares   2 the holder's fencing token, or ""
--        3 prefix of the managers' channels   4 grace in ms   5 register, or ""   6 the number that the register
--        must have at least, 16 digits
-- Reply  1 freed; a free key was given to the first waiter   3 freed, and the key, or the share, stays taken for the
--        grace, because the holder's process may still have to stop   0 there is no such key   2 the key is another
--        holder's. After 0 and 2 nothing was done
-- Error  OOM, READONLY, NOREPLICAS, MISCONF, LOCKMARK, WRONGTYPE, a missing right   nothing was done
--
-- The high-water mark is raised first, so that the next fencing token is above all that the holder may still use,
-- which a process that is stopped now cannot report. The mark is raised above the clock too, because the holder's own
-- token may be the time of a moment ago. Where it cannot be raised, nothing is done. After that, nothing can fail.
--
-- The holder is told by "l <token> <lock>" at the address in its token. A runtime whose connection was replaced listens
-- there only after its next request, so its manager is told then, whose address ends with three zeros. A node of a quorum
-- gives the key to no waiter, because one node cannot know who holds a majority.
local token, grace, register = ARGV[1], tonumber(ARGV[4]), ARGV[5]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = (now - now % 1000) / 1000
local function text(number) return string.format('%.0f', number) end

local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local is_shared = value == 'shared/lockkit'
if is_shared then
  local ends = redis.call('ZSCORE', KEYS[4], token)
  if not ends or tonumber(ends) < now_ms then return 2 end
elseif value ~= token then
  return 2
end

local least = 0
if register == '' then
  local highest = count(redis.call('GET', KEYS[2]))
  if not highest then
    return redis.error_reply('LOCKMARK no fencing token can be counted from the mark')
  end
  least = math.max(highest, now, tonumber(ARGV[2]) or 0) + passes
  redis.call('SET', KEYS[2], text(least))
else
  local accepted = redis.call('HMGET', KEYS[2], register)[1]
  if not accepted or string.sub(accepted, 1, 16) < ARGV[6] then
    accepted = ARGV[6] .. string.sub(token, 1, 49)
  end
  -- Written also where it stays the same, because a server without memory must refuse before the holder is told.
  redis.call('HSET', KEYS[2], register, accepted)
end

-- A client of another library listens nowhere.
local is_ours = (#token == 49 or #token == 57) and string.find(token, '^%x+/%x+$')
local told = 'l ' .. token .. ' ' .. KEYS[1]
local manager = string.sub(token, 1, 13) .. '000'
local listens = is_ours and (publish(ARGV[3], token, told) ~= 0 or publish(ARGV[3], manager, told) ~= 0)
-- The value of a cooldown, so that late commands of the holder find another value.
local closed = 'cooling/' .. string.sub(token, 1, 49) .. '/' .. text(now_ms + grace)

if is_shared then
  redis.call('ZREM', KEYS[4], token)
  if listens then redis.pcall('ZADD', KEYS[4], text(now_ms + grace), closed) end
  local last = tonumber(redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2])
  if last and last >= now_ms then
    redis.call('PEXPIREAT', KEYS[1], text(last))
    redis.call('PEXPIREAT', KEYS[4], text(last + 1000))
    notify_next(KEYS[3], KEYS[1], ARGV[3], listens and grace or 0)
    return listens and 3 or 1
  end
  redis.call('DEL', KEYS[4])
elseif listens then
  redis.call('SET', KEYS[1], closed, 'PXAT', text(now_ms + grace))
  notify_next(KEYS[3], KEYS[1], ARGV[3], grace)
  return 3
end

if register == '' then
  hand_over(KEYS[3], KEYS[1], KEYS[2], ARGV[3], time, now, least + 1, true)
else
  redis.call('DEL', KEYS[1])
  notify_next(KEYS[3], KEYS[1], ARGV[3], 0)
end
return 1
