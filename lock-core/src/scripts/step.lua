-- step: a first attempt that steps over a lease of its own process, where nobody waits behind that: what the
-- script for waiters would do, in short.
--
-- KEYS   1 lock   2 mark   3 queue
-- ARGV   1 token   2 ttl in ms   3 the token that is stepped over   4 its fencing token, or ""
-- Reply  the fencing token    granted: the time in microseconds, a number of at least 1e15, which no other
--                             answer of ours is
--        {3}                  to be asked by the script for waiters: nothing was done about it here
-- Error  WRONGTYPE            a key of ours holds something else; nothing was done
local call = redis.call
local value = call('GET', KEYS[1])
if value and value ~= ARGV[3] or redis.pcall('EXISTS', KEYS[3]) ~= 0 then return {3} end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local used = tonumber(ARGV[4]) or 0
local mark = call('GET', KEYS[2])
local highest = used
if mark then
  mark = #mark == 16 and string.match(mark, '^%d+$') and tonumber(mark)
  if not (mark and mark >= 1e15) then return {3} end
  if mark > used then highest = mark end
end
-- A clock behind what was used: the other script remembers what it gives.
if highest >= now or now < 1e15 then return {3} end
-- The release of what is stepped over comes too late to say what it used.
if value and used > (mark or 0) then call('SET', KEYS[2], ARGV[4]) end
call('SET', KEYS[1], ARGV[1], 'PXAT', (now - now % 1000) / 1000 + ARGV[2])
return now
