-- withdraw: withdraws a vote on one node of a quorum. The key goes to no waiter, because one node cannot know who holds
-- a majority. The first waiter is notified that the key is free here.
--
-- KEYS   1 lock   2 queue   3 registers, where a register is named
-- ARGV   1 token, grant in ms as in the queue's entry, and prefix of the managers' channels, with spaces between
--        2 "", or "leave", to touch only the queue; "pause", when the same token asks again soon: it keeps its
--        entry, and no waiter is notified; a number of ms, to leave the key free for so long
--        3 register, or ""   4 the highest number, 16 digits, that was proposed for the votes that are
--        withdrawn, because a copy of this may arrive behind a newer vote. 2 to 4 are left out where they are ""
-- Reply  1 released   0 there is no such key   2 the key is another owner's, or a newer vote's; 10 more if a waiter
--        was notified; 20 more if dead waiters have left the queue, but not all: ask again, with "leave"; 30 more if
--        the server refused to notify the waiters: ask again later, with "leave"
-- Error  READONLY, NOREPLICAS, MISCONF, a missing right   the server refuses a command at the moment. Asked
--                              again, the script does the rest.
--
-- Deletes only this very token.
local grant, channels = string.match(ARGV[1], '^(%d+) (.*)$', 51)
local how, register = ARGV[2] or '', ARGV[3] or ''
local value = redis.pcall('GET', KEYS[1])
if is_refused(value) then return value end
local reply = 2
if value == token and register ~= '' then
  local registers = redis.pcall('HMGET', KEYS[3], register)
  if is_refused(registers) then return registers end
  local accepted = registers[1]
  if accepted and string.sub(accepted, 17) == value
    and string.sub(accepted, 1, 16) > ARGV[4] then
    return 2
  end
end
if value == token then
  reply = 1
  if how ~= 'leave' then
    redis.call('DEL', KEYS[1])
    value = false
  end
elseif not value then
  reply = 0
end
if how ~= 'pause' and redis.pcall('EXISTS', KEYS[2]) ~= 0 then
  local left = redis.pcall('ZREM', KEYS[2], token .. ' ' .. grant)
  -- The entry is still there, so a waiter that is gone would be notified again and again.
  if is_refused(left) and (how == 'leave' or reply ~= 1) then return left end
  -- The readers behind a waiter that leaves may enter beside others.
  if not value or value == 'shared/lockkit' or #value == 57 then
    local notified = notify_next(KEYS[2], KEYS[1], channels, tonumber(how) or 0)
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
