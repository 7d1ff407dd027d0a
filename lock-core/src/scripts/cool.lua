-- cool: ends a lease and keeps its key taken for a while, without an owner.
--
-- KEYS   1 lock   2 high-water mark   3 queue
-- ARGV   1 token   2 fencing token, or ""   3 prefix of the managers' channels   4 grant in ms, as in the
--        queue's entry   5 cooldown in ms   6 end of the cooldown in ms of Unix time, if that is later; may be left out
-- Reply  1 cooling down   0 there is no such key   2 the key is another owner's
--        6 as 1, and dead waiters have left the queue, but not all: ask again, so that the others are notified
--        8 as 1, and the server refused to notify the waiters: serve them when the cooldown is over
-- Error  READONLY, NOREPLICAS, MISCONF, a missing right   the server refuses a command; nothing was done
--
-- Replaces the value, so that late commands of the old token find another value. The waiters are notified, because the
-- key becomes free at another time than they expect. A cooldown whose end has passed frees the key.
local time = redis.call('TIME')
local value = redis.pcall('GET', KEYS[1])
if is_refused(value) then return value end
-- The value contains its end, because a first attempt that is refused does not ask for it.
local closed = 'cooling/' .. ARGV[1] .. '/'
if type(value) == 'string' and string.sub(value, 1, #closed) == closed then
  notify_next(KEYS[3], KEYS[1], ARGV[3], redis.call('PTTL', KEYS[1]))
  return entries == 0 and 6 or (failed or unnotified) and 8 or 1
end
if value ~= ARGV[1] then
  -- A node of a quorum that has refused the lease may have it in the queue.
  if redis.pcall('EXISTS', KEYS[3]) ~= 0 and is_refused(redis.pcall('ZREM', KEYS[3], ARGV[1] .. ' ' .. ARGV[4])) then
    return failed
  end
  return value and 2 or 0
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = math.max(now + ARGV[5], tonumber(ARGV[6] or 0))
local until_ms = string.format('%.0f', ends)
local mark = redis.pcall('GET', KEYS[2])
local function cool() return not redis.pcall('SET', KEYS[1], closed .. until_ms, 'PXAT', until_ms).err end
-- A server that is out of memory refuses no SET to a script that has written, and PEXPIREAT needs no memory.
local cooled = ends > now and (cool() or redis.pcall('PEXPIREAT', KEYS[1], until_ms) == 1 and cool())
raise(KEYS[2], mark, ARGV[2])
redis.pcall('ZREM', KEYS[3], ARGV[1] .. ' ' .. ARGV[4])
if not cooled then
  redis.call('DEL', KEYS[1])
  notify_next(KEYS[3], KEYS[1], ARGV[3], 0)
else
  notify_next(KEYS[3], KEYS[1], ARGV[3], ends - now)
end
return entries == 0 and 6 or (failed or unnotified) and 8 or 1
