-- remember: ends a lease and leaves a record in its key.
--
-- KEYS   1 lock   2 high-water mark   3 queue   (2 and 3 are left out while the lock's slot is moving from one node of
--        a cluster to another)
-- ARGV   1 token   2 fencing token, or ""   3 prefix of the managers' channels   4 grant in ms, as in the
--        queue's entry   5 lifetime of the record in ms   6 record   7 ttl of the lease in ms
-- Reply  1 the record is in the key   0 there is no such key   2 the key is another owner's
--        3 there is no memory for the record: the token stays for one more ttl
-- Error  READONLY, NOREPLICAS, MISCONF, a missing right   the server refuses the write; nothing was done
--
-- The value is "done/<token>/<end in ms of Unix time>/<fencing token>/<record>". It replaces this very token, and is
-- not written where the token does not stand, so that a late copy does not bring a deleted record back.
local value = redis.pcall('GET', KEYS[1])
if is_refused(value) then return value end
local done = 'done/' .. ARGV[1] .. '/'
if type(value) == 'string' and string.sub(value, 1, #done) == done then
  -- Written once more, because WAIT promises something about the writes of its own connection only, and the first copy
  -- may have gone by another one. (Redis 7.0 waits for the writes of all connections.) The key keeps its own end: the
  -- one in the value is by the clock of the node that wrote it, and the slot may have moved to another node since.
  local left = redis.pcall('PTTL', KEYS[1])
  if not is_refused(left) then redis.pcall('PEXPIRE', KEYS[1], left) end
  return 1
end
if value ~= ARGV[1] then
  -- A node of a quorum that has refused the lease may have it in the queue.
  if KEYS[3] and redis.pcall('EXISTS', KEYS[3]) ~= 0
    and is_refused(redis.pcall('ZREM', KEYS[3], ARGV[1] .. ' ' .. ARGV[4])) then
    return failed
  end
  return value and 2 or 0
end
local time = redis.call('TIME')
local ends = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[5])
local mark = KEYS[2] and redis.pcall('GET', KEYS[2])
local left = redis.pcall('SET', KEYS[1], done .. ends .. '/' .. ARGV[2] .. '/' .. ARGV[6], 'PXAT', ends)
if left.err then
  if not string.find(left.err, 'OOM', 1, true) then return left end
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
  return 3
end
if KEYS[2] then
  raise(KEYS[2], mark, ARGV[2])
  tell_all(KEYS[3], KEYS[1], ARGV[3])
end
return 1
