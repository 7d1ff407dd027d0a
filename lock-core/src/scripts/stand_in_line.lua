-- Put before the scripts that let a waiter stand in a queue.

-- Gives a waiter the last place in a queue, or leaves it the one it has; left is for how many ms the lock stays
-- taken. Answers 1 if it stands there, 0 if the server refused that.
--
-- The last place is behind all others, also when the clock has been set back since they came.
local function stand_in_line(queue, waiting, now, left)
  local last = redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES')
  local place = math.max(now, (tonumber(last[2]) or 0) + 1)
  local stands = redis.pcall('ZADD', queue, 'NX', string.format('%.0f', place), waiting)
  redis.pcall('PEXPIRE', queue, math.max(left, 0) + 60000)
  return type(stands) == 'number' and 1 or 0
end
