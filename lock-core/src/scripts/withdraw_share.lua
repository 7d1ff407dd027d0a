-- withdraw_share: withdraws a reader on one node of a quorum.
--
-- KEYS   1 lock   2 queue   3 shares
-- ARGV   1 token   2 grant in ms, as in the queue's entry   3 prefix of the managers' channels
--        4 as ARGV[2] of withdraw.lua
-- Reply  as withdraw.lua
-- Error  as withdraw.lua
--
-- Ends only this very reader. A waiter is notified if the key is free then, or if it ends sooner. A newer vote of the
-- same reader is not told apart: its process asks a node again when no copy of a withdrawal can arrive there any more.
local token, how = ARGV[1], ARGV[4]
if is_refused(value) then return value end
if type(value) == 'string' then count_inside() end
local reply = value and 2 or 0
local sooner = 0
if how == 'leave' then
  if is_inside(token) then reply = 1 end
else
  local removed, by = remove(token)
  if removed then reply, sooner = 1, by end
end
if how ~= 'pause' and redis.pcall('EXISTS', KEYS[2]) ~= 0 then
  local left = redis.pcall('ZREM', KEYS[2], token .. ' ' .. ARGV[2])
  -- The entry is still there, so a waiter that is gone would be notified again and again.
  if is_refused(left) and (how == 'leave' or reply ~= 1) then return left end
  local after
  if not value then
    after = tonumber(how) or 0
  elseif sooner > 1000 then
    after = redis.call('PTTL', lock)
  end
  if after then
    local notified = notify_next(KEYS[2], lock, ARGV[3], after)
    if unnotified then
      reply = reply + 30
    elseif notified > 0 then
      reply = reply + 10
    elseif entries == 0 then
      reply = reply + 20
    elseif failed then
      return failed
    end
  end
end
return reply
