-- release: releases a lock, or undoes an acquire, or only leaves the queue. A free key goes to the first waiter.
--
-- KEYS   1 lock   2 high-water mark   3 queue
-- ARGV   1 token   2 fencing token, or ""   3 prefix of the managers' channels   4 grant in ms, as in the
--        queue's entry   5 "leave", to touch only the queue
-- Reply  1 released   0 there is no such key   2 the key is another owner's
--        4, 3   as 1 and 0, and the key was handed off to a waiter
--        6, 5   as 1 and 0, and dead waiters have left the queue, but not all: ask again, with "leave"
--        8, 7   as 1 and 0, and the server refused to serve or to notify the waiters: ask again later, with "leave"
-- Error  READONLY, NOREPLICAS, MISCONF, a missing right   the server refuses a command at the moment; no lock
--                                                         was deleted, and every waiter keeps its entry
--
-- Deletes only this very token. Nothing after the first line can fail the script once a key is deleted. In any case a
-- key that was the token's is deleted or handed off.
local value = ARGV[1]
if not head then
  local values = redis.pcall('MGET', KEYS[1], KEYS[2])
  if values.err then return values end
  value, mark = values[1], values[2]
end
local reply = 2
if value == ARGV[1] and not ARGV[5] then
  reply = 1
  raise(KEYS[2], mark, ARGV[2])
elseif not value then
  reply = 0
end
if reply == 1 or call('EXISTS', KEYS[3]) ~= 0 then
  -- The owner of the key left the queue when it was granted.
  if reply ~= 1 and is_refused(redis.pcall('ZREM', KEYS[3], ARGV[1] .. ' ' .. ARGV[4])) and reply == 2 then
    return failed
  end
  if reply ~= 2 then
    local time = redis.pcall('TIME')
    if time.err then
      if head and head[1] then put_back(KEYS[3], head, KEYS[1], ARGV[3]) end
      return time
    end
    local now = time[1] * 1000000 + time[2]
    local used = math.max(count(mark) or 0, tonumber(ARGV[2]) or 0)
    if hand_over(KEYS[3], KEYS[1], KEYS[2], ARGV[3], time, now, used + 1, reply == 1, head) then
      reply = reply + 3
    elseif entries == 0 then
      reply = reply + 5
    elseif failed and reply == 0 then
      return failed
    elseif failed or unnotified then
      reply = reply + 7
    end
  end
end
return reply
