-- Functions for the shares of a key, after a part that reads `value`, the value of the key.
--
-- A lone share is the lock itself: its token is the value of the key. The value of a key with several shares is `several`,
-- which no client of another library writes, and a sorted set, the last of KEYS, has their tokens with their ends in ms.
-- The key lasts as long as its latest share. A token of a share ends with its limit, in 8 hex digits. A plain lock waits
-- for all shares, a reader waits for permits, and a permit for readers.
local lock, shares = KEYS[1], KEYS[#KEYS]
local several = 'shared/lockkit'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = (now - now % 1000) / 1000

local function text(number) return string.format('%.0f', number) end

-- The limit of a share, and nothing for a lock.
local function limit_of(who)
  return #who == 57 and string.match(who, '^%x+/%x+$') and tonumber(string.sub(who, 50), 16)
end

local function latest()
  local last = redis.call('ZRANGE', shares, -1, -1, 'WITHSCORES')
  return tonumber(last[2])
end

local inside
-- Frees the key, with the set of its shares. The set loses its last share no sooner, because a user may lack the right to
-- DEL, and a key whose set is missing stays taken to its end.
local function free()
  redis.call('DEL', lock, shares)
  value, inside = false, 0
end

-- Counts the shares inside. Ended ones are removed, and a key without shares is free.
local function count_inside()
  if value ~= several then
    inside = value and 1 or 0
    return
  end
  local earliest = redis.call('ZRANGE', shares, 0, 0, 'WITHSCORES')
  -- The set outlives the key. If it is missing, it was evicted or deleted by hand, and its owners do not know that yet. So
  -- no share enters before the end of the key.
  if not earliest[1] then
    inside = math.huge
    return
  end
  -- Nothing is written where nothing has ended, so that a server without memory lets no share in.
  if tonumber(earliest[2]) < now_ms then
    if latest() < now_ms then return free() end
    redis.call('ZREMRANGEBYSCORE', shares, '-inf', '(' .. text(now_ms))
  end
  inside = redis.call('ZCARD', shares)
end

-- Answers whether the share is of the kind of those inside: all readers, or all permits. It looks at one of them, and
-- passes over the places of shares that an operator has freed.
local function is_alike(who)
  local other, place = value, 0
  while value == several do
    other = redis.call('ZRANGE', shares, place, place)[1]
    if not other then return true end
    if limit_of(other) then break end
    place = place + 1
  end
  return limit_of(other) and (string.sub(who, 50) == 'ffffffff') == (string.sub(other, 50) == 'ffffffff')
end

local function is_inside(who)
  return value == who or value == several and redis.call('ZSCORE', shares, who)
end

-- Lets a token in until `ends`, or lengthens it. Answers false, or the server's refusal. A waiter may be inside already,
-- because a late copy of its first attempt has found the key free.
local function enter(who, ends)
  if not value then
    local set = redis.pcall('SET', lock, who, 'PXAT', text(ends))
    if set.err then return false, set end
    value, inside = who, 1
    return true
  end
  if value == who then
    if ends > now_ms + redis.call('PTTL', lock) then redis.call('PEXPIREAT', lock, text(ends)) end
    return true
  end
  if value ~= several then
    -- A set of earlier shares may be left of a key that was deleted by hand.
    local first = now_ms + redis.call('PTTL', lock) + 1
    if redis.call('EXISTS', shares) == 1 then redis.call('DEL', shares) end
    local added = redis.pcall('ZADD', shares, text(first), value, text(ends), who)
    if type(added) == 'table' then return false, added end
    local last = math.max(first, ends)
    -- A user may lack one of these rights alone.
    local set = redis.pcall('PEXPIREAT', shares, text(last + 1000))
    if set == 1 then set = redis.pcall('SET', lock, several, 'PXAT', text(last)) end
    if set.err then
      redis.pcall('DEL', shares)
      return false, set
    end
    value, inside = several, 2
    return true
  end
  -- Before the share is added, so that a user without the right to PTTL leaves none.
  local left = redis.call('PTTL', lock)
  local added = redis.pcall('ZADD', shares, 'GT', text(ends), who)
  if type(added) == 'table' then return false, added end
  if ends > now_ms + left then
    local lengthened = redis.pcall('PEXPIREAT', lock, text(ends))
    if lengthened ~= 1 then
      if added == 1 then redis.pcall('ZREM', shares, who) end
      return false, lengthened
    end
    redis.call('PEXPIREAT', shares, text(ends + 1000))
  end
  inside = inside + added
  return true
end

-- Ends a share, or a lock, and nothing else. Answers whether it was inside, and by how many ms the key ends sooner.
local function remove(who)
  if value == who then
    redis.call('DEL', lock)
    value, inside = false, 0
    return true, 0
  end
  if value ~= several then return false end
  if inside == 1 and is_inside(who) then
    free()
    return true, 0
  end
  local sooner = redis.call('PTTL', lock)
  if redis.call('ZREM', shares, who) == 0 then return false end
  inside = inside - 1
  local ends = latest()
  -- Where the right to it is missing, the key outlives its latest share, and the next caller frees it.
  if redis.pcall('PEXPIREAT', lock, text(ends)) ~= 1 then return true, 0 end
  redis.call('PEXPIREAT', shares, text(ends + 1000))
  return true, now_ms + sooner - ends
end
