-- release, in the usual cases: put before the rest of it, so that they make none of its functions. Nobody
-- waits, or the lock goes to the first who does, who asked a moment ago and is told as `hand_over` would
-- tell it. The rest goes on from what was read here. See release.lua for the contract.
local call = redis.pcall
local values = call('MGET', KEYS[1], KEYS[2])
local mark, head = values[2], nil
if values[1] == ARGV[1] and not ARGV[5] then
  head = call('ZPOPMIN', KEYS[3])
  if not head[1] and not head.err then
    -- DEL comes first: it is allowed when the server is out of memory. Nothing after it can fail.
    redis.call('DEL', KEYS[1])
    if ARGV[2] ~= '' and (not mark or (tonumber(mark) or math.huge) < tonumber(ARGV[2])) then
      call('SET', KEYS[2], ARGV[2])
    end
    return 1
  end
  local time = call('TIME')
  local now = not time.err and time[1] * 1000000 + time[2] or 0
  local token, grant = string.match(head[1] or '', '^(%x+/%x+) (%d+)$')
  local used, highest = tonumber(ARGV[2]), tonumber(mark or 0)
  -- Whatever is otherwise, and whatever fails, the rest does, for the same head.
  local age = now - (head[2] or 0)
  if token and used and highest and used < now and highest < now and age >= 0 and age <= 1000000
    and (used <= highest or call('SET', KEYS[2], ARGV[2]).ok)
    and call('SET', KEYS[1], token, 'PXAT', (now - now % 1000) / 1000 + grant).ok then
    local receivers = call('PUBLISH', ARGV[3] .. string.sub(token, 1, 16),
      'g ' .. token .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. grant .. ' - ' .. KEYS[1])
    if type(receivers) == 'number' and (receivers > 0 or not counted) then return 4 end
  end
end
