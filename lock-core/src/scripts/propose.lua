-- propose: takes a lock on one node of a quorum, and a number for its fencing tokens, or says why not.
--
-- KEYS   1 lock   2 registers   3 queue, which is left out where ARGV[4] is
-- ARGV   1 the vote in one text, because each argument costs as much as half a command: the number without its block,
--        16 digits: it is accepted if this is above the register; a space; the number, 16 digits; the token; longest
--        ttl in ms; a space; grant in ms as in the queue's entry; a space; prefix of the managers' channels
--        2 ttl in ms   3 register
--        4 "1": enter the queue if refused; "0": do not   5 the token of a lease to supersede, because its
--        release is under way, or "". The last two are left out where they are "0" and ""
-- Reply  1                        locked, and the number accepted
--        {2, highest}             locked; the number is too low
--        {0, value, pttl, highest, queued}   refused: the value of the key, for how many ms (-1: for ever), and 1 if
--                                 the token is in the queue now, 0 if not
--        {3}                      free, and left to waiters, who were notified
--        {4, ms}                  it has no data, which it may have lost, and does not vote for this long
-- Error  WRONGTYPE, LOCKMARK, a missing right: nothing was done
--
-- A register holds the highest number that was accepted in it, and its token. A number is accepted if it is above that
-- with its whole block, or is the same number of the same token.
local max_ttl, grant, channels = string.match(vote, '^(%d+) (%d+) (.*)$', 83)
local entry = token .. ' ' .. grant
local waits = closed_for(KEYS[2], known[1], max_ttl)
if waits then return {4, waits} end
local highest = highest_of(register)
if not highest then return no_number() end

local asks_again = false
if not redis.call('SET', KEYS[1], token, 'NX', 'PX', ARGV[2]) then
  local value = redis.call('GET', KEYS[1])
  if value == token then
    asks_again = true
    -- The lease may have been extended to a longer ttl since, and its owner counts on that.
    if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
  elseif value == ARGV[5] and value ~= '' then
    redis.call('DEL', KEYS[1])
    redis.pcall('ZREM', KEYS[3], entry)
    if notify_next(KEYS[3], KEYS[1], channels, 0) > 0 then return {3} end
    redis.call('SET', KEYS[1], token, 'PX', ARGV[2])
  else
    local left = redis.call('PTTL', KEYS[1])
    local stands = 0
    -- No caller waits beside a record, which is an answer.
    if ARGV[4] == '1' and string.sub(value or '', 1, 5) ~= 'done/' then
      local time = redis.call('TIME')
      local now = time[1] * 1000000 + time[2]
      stands = enter_queue(KEYS[3], entry, now, left)
    end
    return {0, value, left, string.format('%.0f', highest), stands}
  end
end
if ARGV[4] == '1' then redis.pcall('ZREM', KEYS[3], entry) end

if not register or tonumber(string.sub(vote, 1, 16)) > highest or register == accepted then
  local noted = redis.pcall('HSET', KEYS[2], ARGV[3], accepted)
  if type(noted) ~= 'table' then return 1 end
  -- A user may lack this right alone.
  if not asks_again then redis.call('DEL', KEYS[1]) end
  return noted
end
return {2, string.format('%.0f', highest)}
