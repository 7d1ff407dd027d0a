-- release: gives a lock back, or undoes an acquire that nobody wants; or only leaves the queue.
--
-- KEYS   1 lock   2 mark   3 queue
-- ARGV   1 token   2 fencing token, or ""   3 prefix of the managers' channels
--        4 "leave", to touch nothing but the queue
-- Reply  1 released   0 there is no such key   2 the key is another owner's
--
-- Deletes only what holds this very token. DEL comes first: it is allowed when the server is out of
-- memory. Nothing after it can fail the script.
local values = redis.pcall('MGET', KEYS[1], KEYS[2])
if values.err then return values end
local value, mark = values[1], values[2]
local reply = 2
if value == ARGV[1] and not ARGV[4] then
  redis.call('DEL', KEYS[1])
  reply = 1
elseif not value then
  reply = 0
end
if reply == 1 then raise(KEYS[2], mark, ARGV[2]) end
if redis.pcall('EXISTS', KEYS[3]) == 1 then
  redis.pcall('ZREM', KEYS[3], ARGV[1])
  if reply ~= 2 then wake(KEYS[3], KEYS[1], ARGV[3]) end
end
return reply
