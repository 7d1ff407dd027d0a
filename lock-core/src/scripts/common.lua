-- Functions for the scripts that may leave a key free. None of them ever fails, because the lock is more important
-- than its companion keys.
--
-- A queue holds "<token> <grant in ms>" by arrival. A token is "<address>/<lease>", and the process with the address
-- listens on "<channels><address>". A PUBLISH without receivers shows that the process is gone, if all receivers
-- are counted: `counted` is set by the part before this. In a cluster they are not counted.

-- How often a lease passes from task to task of its process, each time with a fencing token of its own, before the
-- store is told again: `MOST` of cohort.rs.
local passes = 1000

-- How many entries of dead waiters this call still removes, so that the server is not held up. At 0 the queue is not
-- searched to its end, and the reply says so. The client then asks for the rest, until a living waiter is notified
-- or none is left.
local entries = 1000

-- The server's refusal of a command that a waiter depends on (READONLY, NOREPLICAS, MISCONF, a missing right of the
-- user). A key of another type is refused for good, and is neither a queue nor a lock of the kit.
local failed
local function is_refused(reply)
  if type(reply) ~= 'table' or not reply.err or string.find(reply.err, 'WRONGTYPE', 1, true) then return false end
  failed = reply
  return true
end

local function is_empty(reply)
  return is_refused(reply) or reply.err or not reply[1]
end

-- Set if a waiter was not notified, because the server refused the PUBLISH.
local unnotified

-- The number of a high-water mark, 0 for none, and false where no token can be counted from it: it is no number, or is
-- `HIGH_WATER_LIMIT` of fence.rs or more. The clock passes that limit in 2255, and near it numbers are not exact. No
-- server writes such a mark, and every acquire fails until the key is deleted. `counted` in reply.rs has the same rule.
local function count(mark)
  if not mark then return 0 end
  local number = #mark <= 16 and string.match(mark, '^%d+$') and tonumber(mark)
  return number and number < 9e15 and number
end

-- Raises the high-water mark, so that no later fencing token is lower than the one that was used. mark is the value
-- of the key.
local function raise(key, mark, fence)
  if fence == '' then return end
  if not mark or (tonumber(mark) or math.huge) < tonumber(fence) then
    redis.pcall('SET', key, fence)
  end
end

local function publish(channels, token, message)
  local receivers = redis.pcall('PUBLISH', channels .. string.sub(token, 1, 16), message)
  if receivers == 0 and not counted then return 1 end
  return receivers
end

-- Notifies the first two waiters that still listen when to ask again if nothing is pushed to them before:
-- "n <token> <grant in ms> <ms> <lock>", where token and grant are the queue's entry. The second one asks later, so that
-- a stopped process does not stop all the others. Answers how many were notified.
local function notify_next(queue, lock, channels, ms)
  local notified = 0
  while entries > 0 do
    local next = redis.pcall('ZRANGE', queue, notified, notified)
    if is_empty(next) then return notified end
    local token = string.match(next[1], '^(%x+/%x+) %d+$')
    local after = string.format('%.0f', ms + notified * 2000)
    local receivers = token and publish(channels, token, 'n ' .. next[1] .. ' ' .. after .. ' ' .. lock) or 0
    unnotified = unnotified or type(receivers) ~= 'number'
    if receivers == 0 then
      local removed = redis.pcall('ZREM', queue, next[1])
      if removed ~= 1 then
        failed = removed
        return notified
      end
      entries = entries - 1
    else
      notified = notified + 1
      if notified == 2 then return notified end
    end
  end
  return notified
end

-- Puts a waiter back that was taken from the head of the queue. If the server refuses that, the waiter is told to ask.
local function put_back(queue, head, lock, channels)
  if redis.pcall('ZADD', queue, head[2], head[1]) ~= 1 then
    publish(channels, head[1], 'n ' .. head[1] .. ' 0 ' .. lock)
  end
end

-- Hands a lock off to the first waiter that still listens, for its grant:
-- "g <token> <s> <us> <grant in ms> <fence> <lock>", with the server's time. The grant counts from its last whole
-- millisecond, and a fencing token of "-" is that time.
--
-- time is the reply of TIME, and now the same in microseconds. least is the lowest fencing token that may be given.
-- ours says whether the key holds the lease that is being released; the key is then deleted if no waiter gets it. head
-- is the first entry of the queue, if it has been taken from there already. Answers the token and its grant, or nothing.
local function hand_over(queue, lock, mark, channels, time, now, least, ours, head)
  -- Numbers are passed on as they came where possible, because formatting one costs as much as a command.
  local fence = least > now and string.format('%.0f', least)
  while entries > 0 do
    head = head or redis.pcall('ZPOPMIN', queue)
    if is_empty(head) then break end
    local token, grant = string.match(head[1], '^(%x+/%x+) (%d+)$')
    if token then
      local ends = (now - now % 1000) / 1000 + grant
      -- The key is set before the push, because a SET may fail (out of memory). It is set only where it is ours or
      -- free, because a batch may find it absent for two of its releases, and must hand it off once.
      local set
      if ours then
        set = redis.pcall('SET', lock, token, 'PXAT', ends)
      else
        set = redis.pcall('SET', lock, token, 'NX', 'PXAT', ends)
      end
      local receivers
      if set and not set.err then
        ours = true
        receivers = publish(channels, token, 'g ' .. token .. ' ' .. time[1] .. ' ' .. time[2] .. ' '
          .. grant .. ' ' .. (fence or '-') .. ' ' .. lock)
      end
      if type(receivers) ~= 'number' then
        -- The key was not handed off, and the waiter keeps its entry.
        put_back(queue, head, lock, channels)
        unnotified = true
        -- Without the right to DEL, too, the key would stay with this waiter.
        if receivers and redis.pcall('SET', lock, token, 'PXAT', 1).ok then ours = false end
        break
      end
      if receivers ~= 0 then
        -- The clock is behind the token. So the end of this lease will not prove that the clock has passed it, nor the
        -- tokens of the tasks that the lease passes to.
        if fence then redis.pcall('SET', mark, string.format('%.0f', least + passes)) end
        -- A waiter that asked a moment ago is taken to be alive. Otherwise the next ones are told when its grant ends,
        -- also where the clock was set back since it asked, so that its age is not known.
        local age = now - head[2]
        if age > 1000000 or age < 0 then notify_next(queue, lock, channels, tonumber(grant)) end
        return token, tonumber(grant)
      end
    end
    head = nil
    entries = entries - 1
  end
  if ours then redis.call('DEL', lock) end
end
