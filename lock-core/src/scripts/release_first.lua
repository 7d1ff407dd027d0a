-- release, in the usual cases: it stands before the rest, so that these cases make none of the functions of the rest. No
-- client waits, or the key goes to the first waiter, which has asked a moment ago. In any other case the rest goes on with
-- the head of the queue. See release.lua for the contract.
local call = redis.pcall
local ours = call('GET', KEYS[1]) == ARGV[1] and not ARGV[5]
local mark = ours and call('GET', KEYS[2])
local head
if ours and not (mark and mark.err) then
  head = call('ZPOPMIN', KEYS[3])
  if not head[1] and not head.err then
    -- DEL comes first: it is allowed when the server is out of memory. Nothing after it can fail.
    redis.call('DEL', KEYS[1])
    -- Numbers of one length are compared as texts, because reading a number costs half a command.
    local used = ARGV[2]
    if used ~= '' and (not mark or #mark == #used and mark < used
      or #mark ~= #used and (tonumber(mark) or math.huge) < tonumber(used)) then
      call('SET', KEYS[2], used)
    end
    return 1
  end
  if head[1] then
    local time = call('TIME')
    local token, grant = string.match(head[1], '^(%x+/%x+) (%d+)$')
    local used, highest = tonumber(ARGV[2]), tonumber(mark or 0)
    if token and not time.err and used and highest then
      local now = time[1] * 1000000 + time[2]
      local age = now - head[2]
      -- As hand_over does it. What is refused here is done by the rest, for the same head.
      if used < now and highest < now and age >= 0 and age <= 1000000
        and (used <= highest or call('SET', KEYS[2], ARGV[2]).ok)
        and call('SET', KEYS[1], token, 'PXAT', (now - now % 1000) / 1000 + grant).ok then
        local receivers = call('PUBLISH', ARGV[3] .. string.sub(token, 1, 16), 'g ' .. token .. ' '
          .. time[1] .. ' ' .. time[2] .. ' ' .. grant .. ' - ' .. KEYS[1])
        if type(receivers) == 'number' and (receivers > 0 or not counted) then return 4 end
      end
    end
  end
end
