-- swap: replaces the token of a lock by another token, with an end of its own. A ticket takes the place of a lease, and
-- the lease of the next owner takes the place of the ticket.
--
-- KEYS   1 lock   2 high-water mark (left out for a ticket and its use, and while the lock's slot is moving)
-- ARGV   1 the token that is replaced   2 the token that takes its place   3 its ttl in ms   4 fencing token of the
--        lock (left out with 2)
-- Reply  1 the second token has the key   0 there is no such key   2 the key is another owner's
-- Error  OOM, READONLY, NOREPLICAS, MISCONF, a missing right   the server refuses a command; nothing was done
--
-- The key is never free between the two tokens. So no other client can be granted it, and the fencing token stays. If the
-- second token is a share, others may enter beside it at once. Their fencing tokens are above the lock's also where the
-- server's clock was set back, because the high-water mark is raised to it.
--
-- A second copy finds the second token. It only lengthens the end, and writes it in any case, because WAIT counts the
-- writes of its own connection, and the first copy may have gone by another one.
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' and value.err then
  if string.find(value.err, 'WRONGTYPE', 1, true) then return 2 end
  return value
end
if not value then return 0 end
local lasts = tonumber(ARGV[3])
if value == ARGV[2] then
  lasts = math.max(lasts, redis.call('PTTL', KEYS[1]))
elseif value ~= ARGV[1] then
  return 2
end
local time = redis.call('TIME')
if KEYS[2] then
  local mark = redis.pcall('GET', KEYS[2])
  if not mark or (tonumber(mark) or math.huge) < tonumber(ARGV[4]) then redis.pcall('SET', KEYS[2], ARGV[4]) end
end
local ends = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + lasts)
local set = redis.pcall('SET', KEYS[1], ARGV[2], 'PXAT', ends)
if set.err then return set end
return 1
