-- propose_share: lets a reader in on one node of a quorum, and takes a number for its fencing token, or says why not.
--
-- KEYS   1 lock   2 registers   3 queue   4 shares
-- ARGV   1 token   2 ttl in ms   3 grant in ms, as in the queue's entry   4 prefix of the managers' channels
--        5 register   6 the number, 16 digits   7 the number without its block: it is accepted if this is above the
--        register   8 longest ttl in ms   9 "1": enter the queue if refused; "0": do not
-- Reply  as propose.lua, but for {3}
-- Error  as propose.lua, and OOM, READONLY, NOREPLICAS, MISCONF, a missing right: no reader was let in
--
-- A reader enters a free key. It enters beside other readers unless an earlier waiter wants the whole key. A node gives
-- the key to no waiter. Each reader that enters notifies the waiter behind it, so that all readers in a row enter.
local token, ttl, register = ARGV[1], tonumber(ARGV[2]), ARGV[5]
if type(value) == 'table' then return value end
local known = redis.call('HMGET', KEYS[2], 'opens', register)
local waits = closed_for(KEYS[2], known[1], tonumber(ARGV[8]))
if waits then return {4, waits} end
local highest = highest_of(known[2])
if not highest then return no_number() end
count_inside()

-- Answers whether a waiter for the whole key stands before the reader. It removes the dead waiters that it meets.
local function is_behind_a_lock()
  local place = 0
  while entries > 0 do
    local next = redis.pcall('ZRANGE', KEYS[3], place, place, 'WITHSCORES')
    if is_empty(next) then return false end
    local who = string.match(next[1], '^(%x+/%x+) %d+$')
    if who == token then
      return false
    elseif who and limit_of(who) then
      place = place + 1
    elseif who and (now - next[2] < 1000000 or publish(ARGV[4], who, 'p') ~= 0) then
      return true
    elseif redis.pcall('ZREM', KEYS[3], next[1]) ~= 1 then
      return true
    end
    entries = entries - 1
  end
  return true
end

local waiting = token .. ' ' .. ARGV[3]
local ends = now_ms + ttl
local has = is_inside(token)
if has then
  local lengthened, refused = enter(token, ends)
  if not lengthened then return refused end
elseif value and (value ~= several and not limit_of(value) or inside == math.huge or is_behind_a_lock()) then
  local left = redis.call('PTTL', lock)
  local stands = 0
  -- No caller waits beside a record, which is an answer.
  if ARGV[9] == '1' and string.sub(value, 1, 5) ~= 'done/' then
    stands = enter_queue(KEYS[3], waiting, now, left)
  end
  return {0, value, left, text(highest), stands}
else
  local entered, refused = enter(token, ends)
  if not entered then return refused end
end
local left_queue = redis.pcall('ZREM', KEYS[3], waiting)
if not has or left_queue == 1 then
  local next = redis.pcall('ZRANGE', KEYS[3], 0, 0)
  local who = not is_empty(next) and string.match(next[1], '^(%x+/%x+) %d+$')
  if who and limit_of(who) then notify_next(KEYS[3], lock, ARGV[4], 0) end
end

-- As in propose.lua. A register keeps the token of a lease without its limit.
local accepted = ARGV[6] .. string.sub(token, 1, 49)
if not known[2] or tonumber(ARGV[7]) > highest or known[2] == accepted then
  local noted = redis.pcall('HSET', KEYS[2], register, accepted)
  if type(noted) ~= 'table' then return 1 end
  -- A user may lack this right alone.
  if not has then remove(token) end
  return noted
end
return {2, text(highest)}
