-- acquire, in its two usual cases: a waiter is refused, or it supersedes a lease that no client waits behind. It stands
-- before the rest, so that these cases make none of the functions of the rest. See acquire.lua for the contract.
local waiting = ARGV[1] .. ' ' .. ARGV[3]

-- Refuses the token, and lets it enter the queue if its caller waits. left: for how many ms the key stays taken, if that
-- is known. No caller waits beside a record, which is an answer.
local function refuse(value, left, now)
  left = left or redis.call('PTTL', KEYS[1])
  local waits = ARGV[4] == '1' and string.sub(value, 1, 5) ~= 'done/'
  local queued = waits and enter_queue(KEYS[3], waiting, now, left) or 0
  return {0, value, left, string.format('%.0f', now), queued}
end

if ARGV[5] == '' then
  local value = redis.call('GET', KEYS[1])
  if value and value ~= ARGV[1] then
    local time = redis.call('TIME')
    return refuse(value, nil, time[1] * 1000000 + time[2])
  end
elseif redis.pcall('EXISTS', KEYS[3]) == 0 then
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
