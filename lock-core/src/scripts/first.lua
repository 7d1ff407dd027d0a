-- first: a first attempt. Takes a lock that is free, or says who is in the way.
--
-- KEYS   1 lock   2 mark
-- ARGV   1 token   2 ttl in ms
-- Reply  the fencing token    granted: the time in microseconds, a number of at least 1e15, which no other
--                             answer of ours is
--        {0, value, pttl}     refused: what stands in the key, for how many ms (-1: for ever)
--        {3}                  to be asked by the script for waiters: nothing was done about it here
-- Error  WRONGTYPE            a key of ours holds something else; nothing was done
--
-- As short as it can be: it is run more often than all the others together.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local mark = call('GET', KEYS[2])
-- A clock behind the mark: the other script remembers what it gives. No time of the last decades: it looks
-- closely.
if mark then
  mark = tonumber(mark)
  if not (mark and mark >= 1e15 and mark < now) then return {3} end
elseif now < 1e15 then
  return {3}
end
local expires = (now - now % 1000) / 1000 + ARGV[2]
if call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', expires) then return now end
local value = call('GET', KEYS[1])
-- Its own, by an earlier send; or gone at this very moment.
if not value or value == ARGV[1] then return {3} end
return {0, value, call('PTTL', KEYS[1])}
