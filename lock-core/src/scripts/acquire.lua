-- acquire: takes a lock, or says which owner has it. For waiters, for an acquire that supersedes a lease, and for a
-- token that may have been sent before. (A first attempt is native commands, or an entry of `batch.lua`.)
--
-- KEYS   1 lock   2 high-water mark   3 queue
-- ARGV   1 token   2 ttl in ms   3 grant in ms   4 "1": enter the queue if refused   5 the token of a lease to
--        supersede, because its release is under way, or ""   6 prefix of the managers' channels
--        7 fencing token of that lease, or ""
-- Reply  {1, fence}                       granted; fence is the fencing token, as a number or a decimal string
--        {0, value, pttl, time, queued}   refused: the value of the key, for how many ms (-1: for ever), the server's
--                                         time in microseconds, as a decimal string, and 1 if the token is in the
--                                         queue now, 0 if not
-- Error  WRONGTYPE, LOCKMARK              a key of the kit holds another value; nothing was done
--
-- A token that has been granted already, by itself or by a hand-over, is granted again, and lengthened to its ttl.
-- A late release of the superseded lease finds another token, and does nothing.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local token = ARGV[1]
local value = redis.call('GET', KEYS[1])
local mark = redis.call('GET', KEYS[2])
local highest = count(mark)
if not highest then
  return redis.error_reply('LOCKMARK no fencing token can be counted from the mark')
end
local left

if value and ARGV[5] ~= '' and value == ARGV[5] then
  -- Waiters come before the process that releases the lock.
  redis.pcall('ZREM', KEYS[3], waiting)
  -- The late release finds another token, and cannot report which fencing token was used.
  local used = tonumber(ARGV[7]) or 0
  raise(KEYS[2], mark, ARGV[7])
  highest = math.max(highest, used)
  value, left = hand_over(KEYS[3], KEYS[1], KEYS[2], ARGV[6], time, now, highest + 1, true)
end

if value and value ~= token then return refuse(value, left, now) end

local fence = now
if highest >= now then
  -- The clock is behind a token that was given. The token counts on from it, and the mark is raised at once by all
  -- tokens that this lease may use, because its end will not prove that the clock has passed them.
  fence = highest + 1
  redis.call('SET', KEYS[2], string.format('%.0f', fence + passes))
end
local lasts = tonumber(ARGV[2])
-- The lock is the token's own. This may be an earlier question that arrives late, when the lease has been extended to
-- a longer ttl and its owner counts on that. So it only lengthens.
if value then lasts = math.max(lasts, redis.call('PTTL', KEYS[1])) end
redis.call('SET', KEYS[1], token, 'PXAT', string.format('%.0f', math.floor(now / 1000) + lasts))
redis.pcall('ZREM', KEYS[3], waiting)
return {1, string.format('%.0f', fence)}
