-- Put before the scripts that may leave a key free. None of these functions ever fails: the lock is
-- more important than what belongs to it.
--
-- A queue holds "<token> <grant in ms>" by arrival, a token is "<address>/<lease>", and whoever has the
-- address listens on "<channels><address>". A PUBLISH that nobody receives says that its process is gone, if
-- all who hear it are counted: `counted` is put before this. In a cluster they are not.

-- A lease goes on from task to task of its process so many times, and takes so many fencing tokens
-- more, before the store hears of it again: `MOST` of cohort.rs.
local passes = 32

-- How many places of dead waiters this call still removes: a bound on its work. At 0 the queue is not searched
-- to its end, and the reply says so: the client then asks for the rest.
local places = 1000

-- The server's refusal of a command that a waiter depends on (READONLY, NOREPLICAS, MISCONF, a right of the user
-- that is missing). A key of another type is refused for good, and is no queue and no lock of ours.
local failed
local function is_refused(reply)
  if type(reply) ~= 'table' or not reply.err or string.find(reply.err, 'WRONGTYPE', 1, true) then return false end
  failed = reply
  return true
end

local function is_queue_of_nobody(reply)
  return is_refused(reply) or reply.err or not reply[1]
end

-- Set if a waiter was not told, because the server refused the PUBLISH.
local untold

-- The number of a mark, 0 for none; nothing where no token can be counted from it: it is no number, or
-- `HIGH_WATER_LIMIT` of fence.rs or more, near which numbers are not exact and marks get too long to be read.
local function count(mark)
  if not mark then return 0 end
  local number = #mark <= 16 and string.match(mark, '^%d+$') and tonumber(mark)
  return number and number < 9e15 and number
end

-- Sees to it that no later fencing token is lower than the one that was used; mark is what stands in
-- the key.
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

-- Tells the first two waiters that still listen when to ask again if nothing is pushed to them before:
-- "n <token> <grant in ms> <ms> <lock>", the first two as they stand in the queue. Two, and the second one later, so that a process that is stopped, and does
-- not come, does not stop all the others. Answers how many were told.
local function tell_next(queue, lock, channels, ms)
  local told = 0
  while places > 0 do
    local next = redis.pcall('ZRANGE', queue, told, told)
    if is_queue_of_nobody(next) then return told end
    local token = string.match(next[1], '^(%x+/%x+) %d+$')
    local after = string.format('%.0f', ms + told * 2000)
    local receivers = token and publish(channels, token, 'n ' .. next[1] .. ' ' .. after .. ' ' .. lock) or 0
    untold = untold or type(receivers) ~= 'number'
    if receivers == 0 then
      local removed = redis.pcall('ZREM', queue, next[1])
      if removed ~= 1 then
        failed = removed
        return told
      end
      places = places - 1
    else
      told = told + 1
      if told == 2 then return told end
    end
  end
  return told
end

-- A waiter that was taken from the head of the queue has its place again, or if there is no room for that, asks.
local function put_back(queue, head, lock, channels)
  if redis.pcall('ZADD', queue, head[2], head[1]) ~= 1 then
    publish(channels, head[1], 'n ' .. head[1] .. ' 0 ' .. lock)
  end
end

-- Gives a lock to the first waiter that still listens, for as long as its grant says:
-- "g <token> <s> <us> <grant in ms> <fence> <lock>", with the server's time, from whose last whole
-- millisecond the grant is counted, and "-" for a fencing token that is that time. time is the reply of
-- TIME, now the same in microseconds, least the lowest fencing token that may be given; ours whether the
-- key holds what is being released, and is deleted if it is given to nobody; head the first of the queue, if
-- it has been taken from there already. Answers the token and its grant, or nothing.
local function hand_over(queue, lock, mark, channels, time, now, least, ours, head)
  -- Numbers are told as they came where that will do: to write one out costs as much as a command.
  local fence = least > now and string.format('%.0f', least)
  while places > 0 do
    head = head or redis.pcall('ZPOPMIN', queue)
    if is_queue_of_nobody(head) then break end
    local token, grant = string.match(head[1], '^(%x+/%x+) (%d+)$')
    if token then
      local ends = (now - now % 1000) / 1000 + grant
      -- Before anybody hears of it: what cannot be set (out of memory) is not given. And only a key
      -- that is ours or free: a batch may find one absent for two of its releases, and gives it once.
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
        -- Not given after all, and not told where it keeps its place.
        put_back(queue, head, lock, channels)
        untold = true
        break
      end
      if receivers ~= 0 then
        -- A clock that stands behind the token: this lease's end will not prove that it has passed it,
        -- nor those of the tasks that the lease goes on to.
        if fence then redis.pcall('SET', mark, string.format('%.0f', least + passes)) end
        -- A waiter that asked a moment ago is taken to be there. Of one that may not come the next are told,
        -- and of one that came when the clock stood later: its age is not known.
        local age = now - head[2]
        if age > 1000000 or age < 0 then tell_next(queue, lock, channels, tonumber(grant)) end
        return token, tonumber(grant)
      end
    end
    head = nil
    places = places - 1
  end
  if ours then redis.call('DEL', lock) end
end
