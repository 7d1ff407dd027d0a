-- A function for the scripts that let a waiter enter a queue.

-- Puts a waiter at the end of a queue, or leaves it where it is. left: for how many ms the lock stays taken. Answers 1
-- if the waiter is in the queue, and 0 if the server refused that: a server without memory, without enough replicas,
-- without snapshots, or that only reads, answers a question about a taken key and refuses the ZADD. A waiter that is not
-- in the queue is notified of nothing, and polls.
--
-- The end is one above the last entry where the clock shows less, so that the order of arrival holds also when the
-- clock has been set back.
local function enter_queue(queue, waiting, now, left)
  local last = redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES')
  local score = math.max(now, (tonumber(last[2]) or 0) + 1)
  local added = redis.pcall('ZADD', queue, 'NX', string.format('%.0f', score), waiting)
  if added == 0 then
    -- The question of share.lua whether it still waits is answered by this.
    local asked = tonumber(redis.pcall('ZSCORE', queue, waiting))
    if asked and asked < 0 and asked % 2 == 0 then
      redis.pcall('ZADD', queue, 'XX', string.format('%.0f', asked - 1), waiting)
    end
  end
  redis.pcall('PEXPIRE', queue, math.max(left, 0) + 60000)
  return type(added) == 'number' and 1 or 0
end
