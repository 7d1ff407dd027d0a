-- share: a share of a lock enters, waits, or leaves. A share enters while fewer shares than its limit are inside.
--
-- KEYS   1 lock   2 high-water mark   3 queue   4 shares
-- ARGV   1 "ask", "wait" (as ask, and enters the queue if refused), "free" (ends a share or a lock), or "leave" (leaves
--        only the queue)   2 token   3 ttl in ms   4 grant in ms   5 prefix of the managers' channels
--        6 fencing token of the lease that ends, or with ask that the lease has used, or ""
-- Reply  to ask and wait:
--        {1, fence}                      granted; fence is the fencing token, as a decimal string
--        {0, value, ms, time, queued}    refused: the value of the key, in how many ms it may change (the end of the
--                                        earliest share, or of the lock), the server's time in microseconds, as a
--                                        decimal string, and 1 if the token is in the queue now, 0 if not
--        to free and leave: as release.lua
-- Error  WRONGTYPE, LOCKMARK             a key of the kit holds another value; nothing was done
--        READONLY, NOREPLICAS, MISCONF, OOM, a missing right   nothing was done
--
-- Admission is strictly first come, first served. Every call lets in the waiters at the head of the queue that fit, as
-- many as it may: a waiter gets the lock for its grant, and a push "s <token> <s> <us> <grant in ms> <fence> <lock>", or
-- "g …" if it waits for the whole lock. A share that was given the key by release.lua ("g") asks, which lets in those
-- behind it. A newcomer enters beside others only if no client waits.
--
-- A token that is inside already is granted again, and only lengthened. A second "free" ends nothing.
local op, token = ARGV[1], ARGV[2]
local asks = op == 'ask' or op == 'wait'
if type(value) == 'table' then return value end
local mark = redis.pcall('GET', KEYS[2])
if mark and mark.err then
  if asks then return mark end
  mark = 'none'
end
local highest = count(mark)
if not highest and asks then
  return redis.error_reply('LOCKMARK no fencing token can be counted from the mark')
end
count_inside()

-- The key counts as taken, with its value, for everything else than a share.
local function fits(who)
  if not value then return true end
  local limit = limit_of(who)
  return limit and inside < limit and (value == 'shared' or limit_of(value))
end

-- The fencing token of a grant. Where the clock is behind the mark, the end of the lease will not prove that the clock
-- has passed its tokens, so the mark is raised by all that it may use.
local function fence()
  if highest < now then return now end
  highest = highest + 1
  local given = highest
  highest = highest + passes
  redis.call('SET', KEYS[2], text(highest))
  return given
end

-- Answers whether the waiter at the head alone keeps the caller out, and is dead. It asks few waiters, because each living
-- one receives the question.
local deaf = 0
local function is_deaf(who, since)
  deaf = deaf + 1
  if not counted or deaf > 8 or not asks or not fits(token) or now - since < 1000000 then return false end
  return publish(ARGV[5], who, 'p') == 0
end

local mine, gave
local function admit()
  local left = highest and 64 or 0
  while entries > 0 and left > 0 do
    local head = redis.pcall('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
    if is_empty(head) then return end
    local who, grant = string.match(head[1], '^(%x+/%x+) (%d+)$')
    if who and not fits(who) and (who == token or not is_deaf(who, head[2])) then return end
    local removed = redis.pcall('ZREM', KEYS[3], head[1])
    if removed ~= 1 then
      is_refused(removed)
      return
    end
    if not who or not fits(who) then
      entries = entries - 1
    else
      local is_caller = who == token and asks
      if not enter(who, now_ms + (is_caller and ARGV[3] or grant)) then
        unnotified = true
        return put_back(KEYS[3], head, lock, ARGV[5])
      end
      local fenced = fence()
      local kind = limit_of(who) and 's ' or 'g '
      local receivers = is_caller or publish(ARGV[5], who, kind .. who .. ' ' .. time[1] .. ' ' .. time[2] .. ' '
        .. grant .. ' ' .. text(fenced) .. ' ' .. lock)
      if is_caller then
        mine = fenced
      elseif type(receivers) ~= 'number' then
        remove(who)
        unnotified = true
        return put_back(KEYS[3], head, lock, ARGV[5])
      elseif receivers == 0 then
        remove(who)
        entries = entries - 1
      else
        gave = true
        left = left - 1
      end
    end
  end
end

-- A queue of another type has no waiters.
local function is_awaited()
  local count = redis.pcall('ZCARD', KEYS[3])
  return type(count) == 'number' and count > 0
end

local waiting = token .. ' ' .. ARGV[4]
if asks then
  local used = tonumber(ARGV[6])
  if used and used > highest then
    raise(KEYS[2], mark, ARGV[6])
    highest = used
  end
  local queued = 0
  if is_inside(token) then
    enter(token, now_ms + ARGV[3])
    redis.pcall('ZREM', KEYS[3], waiting)
    mine = fence()
    admit()
  else
    local awaited = is_awaited()
    if awaited then admit() end
    if not mine and fits(token) and not (awaited and is_awaited()) then
      local entered, refused = enter(token, now_ms + ARGV[3])
      if not entered then return refused end
      mine = fence()
    -- No caller waits beside a record, which is an answer.
    elseif not mine and op == 'wait' and string.sub(value or '', 1, 5) ~= 'done/' then
      queued = enter_queue(KEYS[3], waiting, now, redis.call('PTTL', lock))
      if queued == 1 then admit() end
    end
  end
  if mine then return {1, text(mine)} end
  local left = redis.call('PTTL', lock)
  if value == 'shared' then
    left = math.max(tonumber(redis.call('ZRANGE', shares, 0, 0, 'WITHSCORES')[2]) - now_ms, 0)
  end
  return {0, value or '', left, text(now), queued}
end

local reply = value and 2 or 0
local sooner = 0
if op == 'free' then
  local removed, by = remove(token)
  if removed then
    reply, sooner = 1, by
    raise(KEYS[2], mark, ARGV[6])
    highest = highest and math.max(highest, tonumber(ARGV[6]) or 0)
  end
end
if reply ~= 1 and is_refused(redis.pcall('ZREM', KEYS[3], waiting)) and reply == 2 then return failed end
admit()
if not gave and value and sooner > 1000 then
  -- The waiters count on a later end.
  notify_next(KEYS[3], lock, ARGV[5], redis.call('PTTL', lock))
end
if reply == 2 then return reply end
if gave then return reply + 3 end
if entries == 0 then return reply + 5 end
if failed or unnotified then return reply + 7 end
return reply
