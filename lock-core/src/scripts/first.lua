-- first: a first attempt. Takes a lock that is free, or says who is in the way.
--
-- KEYS   1 lock   2 mark
-- ARGV   1 token   2 ttl in ms
-- Reply  granted <fence>      in one text, that nothing else could be taken for; the fencing token
--        {0, value, pttl}     refused: what stands in the key, for how many ms (-1: for ever)
--        {3}                  to be asked by the script for waiters: nothing was done about it here
-- Error  WRONGTYPE, LOCKMARK  a key of ours holds something else; nothing was done
--
-- As short as it can be: it is run more often than all the others together.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local mark = redis.call('GET', KEYS[2])
if mark then
  if #mark > 16 or not string.match(mark, '^%d+$') then
    return redis.error_reply('LOCKMARK the mark of the fencing tokens is not a number')
  end
  -- A clock behind the mark: the other script remembers what it gives.
  if tonumber(mark) >= now then return {3} end
end
local expires = string.format('%.0f', math.floor(now / 1000) + ARGV[2])
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', expires) then
  return string.format('granted %.0f', now)
end
local value = redis.call('GET', KEYS[1])
-- Its own, by an earlier send; or gone at this very moment.
if not value or value == ARGV[1] then return {3} end
return {0, value, redis.call('PTTL', KEYS[1])}
