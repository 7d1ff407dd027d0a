-- acquire, where it supersedes a lease that no client waits behind: it stands before the rest, so that this case makes
-- none of the functions of the rest. See acquire.lua for the contract.
if ARGV[5] ~= '' and redis.pcall('EXISTS', KEYS[3]) == 0 then
  local value = redis.call('GET', KEYS[1])
  if not value or value == ARGV[5] then
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2]
    local mark = redis.call('GET', KEYS[2])
    local used, highest = tonumber(ARGV[7]) or 0, 0
    if mark then highest = #mark <= 16 and string.match(mark, '^%d+$') and tonumber(mark) or math.huge end
    if used < now and highest < now then
      -- The late release finds another token, and cannot report which fencing token was used.
      if value and used > highest then redis.call('SET', KEYS[2], ARGV[7]) end
      redis.call('SET', KEYS[1], ARGV[1], 'PXAT', (now - now % 1000) / 1000 + ARGV[2])
      return {1, now}
    end
  end
end
