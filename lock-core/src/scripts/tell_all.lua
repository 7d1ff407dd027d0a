-- A function for the scripts that leave a record in a key.

-- Tells all waiters of a key to ask now, 1024 of them at most, and deletes their queue: the record answers each of
-- them, so that none of them waits any longer.
local function tell_all(queue, lock, channels)
  local waiting = redis.pcall('ZRANGE', queue, 0, 1023)
  if is_empty(waiting) then return end
  for _, entry in ipairs(waiting) do
    local token = string.match(entry, '^(%x+/%x+) %d+$')
    if token then publish(channels, token, 'n ' .. entry .. ' 0 ' .. lock) end
  end
  redis.pcall('DEL', queue)
end
