-- A function for the scripts that leave a record in a key.

-- Tells all waiters of a key to ask now, 16384 of them at most, and deletes their queue: the record answers each of
-- them, so that none of them waits any longer. They are read in parts, because a call has few arguments and little memory
-- at a time. Dead waiters may stand before those that listen.
local function tell_all(queue, lock, channels)
  for first = 0, 15360, 1024 do
    local waiting = redis.pcall('ZRANGE', queue, first, first + 1023)
    if is_empty(waiting) then
      if first == 0 then return end
      break
    end
    for _, entry in ipairs(waiting) do
      local token = string.match(entry, '^(%x+/%x+) %d+$')
      local told = not token or publish(channels, token, 'n ' .. entry .. ' 0 ' .. lock)
      -- The server refuses the PUBLISH. The waiters keep their entries, so that the next release serves them.
      if type(told) == 'table' then return end
    end
    if #waiting < 1024 then break end
  end
  redis.pcall('DEL', queue)
end
