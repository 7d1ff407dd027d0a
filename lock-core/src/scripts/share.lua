-- share: a share of a lock enters, waits, or leaves. A share enters while fewer shares than its limit are inside.
--
-- KEYS   1 lock   2 high-water mark   3 queue   4 shares
-- ARGV   1 "ask", "wait" (as ask, and enters the queue if refused), "free" (ends a share or a lock), or "leave" (leaves
--        only the queue)   2 token   3 ttl in ms   4 grant in ms   5 prefix of the managers' channels
--        6 fencing token of the lease that ends, or with ask that the lease has used, or ""
-- Reply  to ask and wait:
--        {1, fence, more}    granted; fence is the fencing token, as a decimal string; more is 1 if further waiters
--                            fit or may fit, which this call did not let in: call again, with "leave"; else 0
--        {0, value, ms, time, queued, more, full}    refused: the value of the key, in how many ms it may change (the
--                            end of the earliest share, or of the lock) or the caller is to ask again, the server's time
--                            in microseconds, as a decimal string, 1 if the token is in the queue now, 1 if further
--                            waiters fit or may fit: call again, and 1 if as many shares as the limit are inside; else 0
--        to free and leave: as release.lua, where 6 and 5 say also that further waiters fit. 11, 9 and 10 are as 2, where
--                            4, 6 and 8 are as 1
-- Error  WRONGTYPE, LOCKMARK             a key of the kit holds another value; nothing was done
--        READONLY, NOREPLICAS, MISCONF, OOM, a missing right   nothing was done
--
-- Admission is strictly first come, first served. Every call lets in the waiters at the head of the queue that fit, as
-- many as it may: a waiter gets the lock for its grant, and a push "s <token> <s> <us> <grant in ms> <fence> <lock>", or
-- "g …" if it waits for the whole lock. A share that was given the key by release.lua ("g") asks, which lets in those
-- behind it. A newcomer enters beside others only if no client waits.
--
-- A waiter at the head that alone keeps a caller out is asked whether it still waits. It answers by a question of its own.
-- If it has not done so within its grant, all waiters of its process leave the queue. Its score says when it was asked: -2
-- for each ms, and 1 less once it has answered, so that it stays the first.
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
  return limit and inside < limit and is_alike(who)
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

-- In how many ms the caller asks again about the waiter that keeps it out.
local again
-- The address of a process that has not answered, or does not listen.
local silent

-- Answers whether the waiter at the head alone keeps the caller out, and is dead or stopped.
local function is_gone(who, grant, head)
  if not asks or not fits(token) then return false end
  local score = tonumber(head[2])
  local age, patience = (now - score) / 1000, 1000
  if score < 0 then age, patience = now_ms - math.floor(-score / 2), tonumber(grant) end
  -- Where the clock was set back, nothing is known of the time.
  if age >= 0 and age < patience then
    again = patience - age
    return false
  end
  if score >= 0 or score % 2 == 1 or age < 0 then
    local listens = publish(ARGV[5], who, 'n ' .. head[1] .. ' 0 ' .. lock)
    if listens ~= 0 then
      if type(listens) == 'number' then redis.pcall('ZADD', KEYS[3], 'XX', text(-2 * now_ms), head[1]) end
      again = tonumber(grant)
      return false
    end
  end
  -- The caller's own process runs, so only the head is removed then.
  local address = string.sub(who, 1, 16)
  if address ~= string.sub(token, 1, 16) then silent = address end
  return true
end

local mine, gave
-- The grant of the last waiter that was let in, if it may be dead.
local doubtful
-- How many waiters this call still lets in, so that the server is not held up, and 1 if more of them fit.
local room, more = highest and 64 or 0, 0
local function admit()
  while entries > 0 do
    local head = redis.pcall('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
    if is_empty(head) then return end
    local who, grant = string.match(head[1], '^(%x+/%x+) (%d+)$')
    local gone = who and string.sub(who, 1, 16) == silent
    if who and not gone and not fits(who) then
      gone = who ~= token and is_gone(who, grant, head)
      if not gone then return end
    end
    if who and not gone and room == 0 then
      more = highest and 1 or 0
      return
    end
    local removed = redis.pcall('ZREM', KEYS[3], head[1])
    if removed ~= 1 then
      is_refused(removed)
      return
    end
    if gone or not who then
      -- If its process goes on after all, it asks at once.
      if who then publish(ARGV[5], who, 'n ' .. head[1] .. ' 0 ' .. lock) end
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
        -- As in hand_over.
        if value == who and redis.pcall('SET', lock, who, 'PXAT', 1).ok then
          value, inside = false, 0
        else
          remove(who)
        end
        unnotified = true
        return put_back(KEYS[3], head, lock, ARGV[5])
      elseif receivers == 0 then
        remove(who)
        entries = entries - 1
      else
        gave = true
        room = room - 1
        -- As in hand_over.
        local age = now - head[2]
        doubtful = (age > 1000000 or age < 0) and tonumber(grant)
      end
    end
  end
end

-- Lets waiters in, and tells the next ones when to ask if the last of those is dead.
local function serve()
  admit()
  if doubtful then notify_next(KEYS[3], lock, ARGV[5], doubtful) end
  doubtful = nil
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
    -- A server without memory does not lengthen it.
    local lengthened, refused = enter(token, now_ms + ARGV[3])
    if not lengthened then return refused end
    redis.pcall('ZREM', KEYS[3], waiting)
    mine = fence()
    serve()
  else
    local awaited = is_awaited()
    if awaited then serve() end
    if not mine and fits(token) and not (awaited and is_awaited()) then
      local entered, refused = enter(token, now_ms + ARGV[3])
      if not entered then return refused end
      mine = fence()
    -- No caller waits beside a record, which is an answer.
    elseif not mine and op == 'wait' and string.sub(value or '', 1, 5) ~= 'done/' then
      queued = enter_queue(KEYS[3], waiting, now, redis.call('PTTL', lock))
      if queued == 1 then serve() end
    end
  end
  -- The queue was not searched to its end, because of the dead waiters at its head.
  if entries == 0 then more = 1 end
  if mine then return {1, text(mine), more} end
  local left, full = redis.call('PTTL', lock), 0
  if value and inside < math.huge and limit_of(token) and is_alike(token) then
    if inside >= limit_of(token) then full = 1 end
    if value == several then
      left = math.max(tonumber(redis.call('ZRANGE', shares, 0, 0, 'WITHSCORES')[2]) - now_ms, 0)
    end
  end
  if queued == 1 and again then
    -- The first ones ask first, and let in those behind them.
    local places = 100
    for place, other in ipairs(redis.pcall('ZRANGE', KEYS[3], 1, 16)) do
      if other == waiting then places = place - 1 end
    end
    left = math.min(left, math.ceil(again) + 100 * places)
  end
  return {0, value or '', left, text(now), queued, more, full}
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
serve()
if not gave and value and sooner > 1000 then
  -- The waiters count on a later end.
  notify_next(KEYS[3], lock, ARGV[5], redis.call('PTTL', lock))
end
if entries == 0 or more == 1 then return reply == 2 and 9 or reply + 5 end
if gave then return reply == 2 and 11 or reply + 3 end
if failed or unnotified then return reply == 2 and 10 or reply + 7 end
return reply
