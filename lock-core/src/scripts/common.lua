-- Put before the scripts that may leave a key free. Neither function ever fails: the lock is more
-- important than what belongs to it.
--
-- raise(key, mark, fence) sees to it that no later fencing token is lower than the one that was
-- used; mark is what stands in the key.
local function raise(key, mark, fence)
  if fence == '' then return end
  if not mark or (tonumber(mark) or math.huge) < tonumber(fence) then
    redis.pcall('SET', key, fence)
  end
end

-- wake(queue, lock, channels) tells the first waiters that still listen that the key may be free;
-- they ask for it themselves. The queue holds their tokens, "<manager>/<lease>", by arrival; a
-- manager listens on "<channels><manager>". A PUBLISH that nobody receives says that the waiter's
-- process is gone.
local function wake(queue, lock, channels)
  local told = 0
  for _ = 1, 64 do
    local waiting = redis.pcall('ZRANGE', queue, 0, 7)
    if waiting.err or #waiting == 0 then return told end
    for _, token in ipairs(waiting) do
      local receivers = redis.pcall('PUBLISH', channels .. string.sub(token, 1, 16), token .. ' ' .. lock)
      if receivers == 0 then
        redis.pcall('ZREM', queue, token)
      else
        -- More than one: a process that is stopped, and does not come for it, costs nobody a turn.
        told = told + 1
        if told == 3 then return told end
      end
    end
    if told > 0 then return told end
  end
  return told
end
