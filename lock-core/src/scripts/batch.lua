-- batch: several releases and first attempts of different tasks, in one trip; the releases first.
--
-- KEYS   1 mark, then the releases' locks, then their queues, then the acquires' locks
-- ARGV   1 prefix of the managers' channels   2 number of releases, then for each release
--        token, fencing token or "", grant in ms; then for each acquire token, ttl in ms
-- Reply  for each release what the script for one would reply; then for each acquire its fencing
--        token, or what the script for one would reply to refuse it; {3} if it has to be asked alone
-- Error  LOCKMARK, WRONGTYPE   the mark holds something else; nothing was done
--
-- What is not simple is left to the scripts for one: nothing is done about it here.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)
local before = redis.call('GET', KEYS[1])
if before and (#before > 16 or not string.match(before, '^%d+$')) then
  return redis.error_reply('LOCKMARK the mark of the fencing tokens is not a number')
end
local mark = tonumber(before or '0')
local releases = tonumber(ARGV[2])
local replies = {}

if releases > 0 then
  local values = redis.call('MGET', unpack(KEYS, 2, 1 + releases))
  local ours = {}
  for index = 1, releases do
    if values[index] == ARGV[3 * index] then
      replies[index] = 1
      ours[#ours + 1] = KEYS[1 + index]
      local used = tonumber(ARGV[1 + 3 * index]) or 0
      if used > mark then mark = used end
    else
      replies[index] = values[index] and 2 or 0
    end
  end
  if #ours > 0 then redis.call('DEL', unpack(ours)) end
  if redis.pcall('EXISTS', unpack(KEYS, 2 + releases, 1 + 2 * releases)) ~= 0 then
    for index = 1, releases do
      local queue = KEYS[1 + releases + index]
      redis.pcall('ZREM', queue, ARGV[3 * index] .. ' ' .. ARGV[2 + 3 * index])
      if replies[index] ~= 2
        and hand_over(queue, KEYS[1 + index], KEYS[1], ARGV[1], now, mark + 1)
      then
        replies[index] = replies[index] + 3
        if mark >= now then mark = mark + 1 + passes end
      end
    end
  end
  if mark > tonumber(before or '0') then
    redis.pcall('SET', KEYS[1], string.format('%.0f', mark))
  end
end

local ttl, expires
local before_acquires = 2 + 3 * releases
for index = 1, #KEYS - 1 - 2 * releases do
  local lock = KEYS[1 + 2 * releases + index]
  local token = ARGV[before_acquires + 2 * index - 1]
  if ARGV[before_acquires + 2 * index] ~= ttl then
    ttl = ARGV[before_acquires + 2 * index]
    expires = string.format('%.0f', now_ms + ttl)
  end
  local reply = {3}
  -- A clock behind the mark: the script for one remembers what it gives.
  if mark < now then
    local set = redis.pcall('SET', lock, token, 'NX', 'PXAT', expires)
    if set and set.ok then
      reply = now
    elseif not set then
      local value = redis.pcall('GET', lock)
      if type(value) == 'string' and value ~= token then
        reply = {0, value, redis.call('PTTL', lock)}
      end
    end
  end
  replies[releases + index] = reply
end
return replies
