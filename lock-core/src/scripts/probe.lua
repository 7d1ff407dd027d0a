-- probe: names the commands of the other scripts that the server's ACL forbids this user. It changes nothing.
--
-- KEYS   high-water mark, and the queue of a lock that no user can take; none on a node of a cluster, which may
--        have neither of their slots
-- ARGV   1 high-water mark   2 that queue
-- Reply  {"probed", command, ..}   the commands that are forbidden; "keys" where the keys are
--
-- The mark is only read. The queue does not exist, and no command here creates a key. A server that refuses for another
-- reason (it is a replica, or out of memory) may allow it later. PUBLISH is left out, because waiters poll without it.
local mark, queue = ARGV[1], ARGV[2]
local reply = {'probed'}
for _, command in ipairs({
  {'TIME'}, {'GET', mark}, {'MGET', mark}, {'EXISTS', queue}, {'PTTL', queue},
  {'SET', queue, '', 'XX', 'PXAT', '1'}, {'PEXPIRE', queue, '1'}, {'PEXPIREAT', queue, '1'},
  {'DEL', queue}, {'ZADD', queue, 'XX', '1', 'none'}, {'ZREM', queue, 'none'},
  {'ZRANGE', queue, '0', '0'}, {'ZPOPMIN', queue}, {'ZSCORE', queue, 'none'}, {'ZCARD', queue},
  {'ZREMRANGEBYSCORE', queue, '1', '0'},
}) do
  local answer = redis.pcall(unpack(command))
  local why = type(answer) == 'table' and answer.err
  -- The words of Redis 6.2 and 7.0, then of later ones.
  if why and (string.find(why, 'executing the script', 1, true) or string.find(why, 'ACL', 1, true)
    or string.find(why, 'NOPERM', 1, true)) then
    reply[#reply + 1] = string.find(why, 'access', 1, true) and 'keys' or command[1]
  end
end
return reply
