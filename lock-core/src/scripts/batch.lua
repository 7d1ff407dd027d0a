-- batch: several releases and first attempts of different tasks in one trip, the releases first.
--
-- KEYS   1 high-water mark, then the releases' locks, then their queues, then the acquires' locks
-- ARGV   1 prefix of the managers' channels   2 number of releases   3 the highest fencing token that
--        they used, or ""   4 their grants in ms   5 the acquires' ttls in ms   (either one for all of
--        them, or one for each, with spaces between), then the releases' tokens, then the acquires'
-- Reply  all <s> <us>          every key is released, every acquire granted; the time in seconds and
--                              microseconds is the fencing token
--        {..}                  otherwise: for each release the reply of the script for one; then for each acquire
--                              its fencing token, or the refusal of the script for one; {3} if it has to be
--                              asked alone
-- Error  LOCKMARK, WRONGTYPE   the mark holds another value; nothing was done
--
-- An unusual acquire (a clock behind the mark, a key of another type) is left to the script for one.
local call, pcall = redis.call, redis.pcall
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local before = count(call('GET', KEYS[1]))
if not before then
  return redis.error_reply('LOCKMARK no fencing token can be counted from the mark')
end
local mark = before
local releases = tonumber(ARGV[2])
local acquires = #KEYS - 1 - 2 * releases
-- The unusual answers. The usual ones, 1 and the time, are filled in at the end if they are needed, because a table of
-- all answers costs as much as several commands.
local replies = {}
-- How many had the usual answer.
local usual = 0

-- Reads a text that holds one number for all or one for each.
local function numbers(text)
  local each = {}
  for number in string.gmatch(text, '%d+') do each[#each + 1] = number end
  return function(index) return each[index] or each[1] end
end

if releases > 0 then
  local values = call('MGET', unpack(KEYS, 2, 1 + releases))
  for index = 1, releases do
    if values[index] == ARGV[5 + index] then
      usual = usual + 1
    else
      replies[index] = values[index] and 2 or 0
    end
  end
  if usual == releases then
    call('DEL', unpack(KEYS, 2, 1 + releases))
  else
    for index = 1, releases do
      if not replies[index] then call('DEL', KEYS[1 + index]) end
    end
  end
  local used = tonumber(ARGV[3]) or 0
  if usual > 0 and used > mark then mark = used end
  if pcall('EXISTS', unpack(KEYS, 2 + releases, 1 + 2 * releases)) ~= 0 then
    local grants = numbers(ARGV[4])
    for index = 1, releases do
      local queue = KEYS[1 + releases + index]
      local reply = replies[index] or 1
      pcall('ZREM', queue, ARGV[5 + index] .. ' ' .. grants(index))
      if reply ~= 2 then
        local more = 0
        failed, unnotified = nil, nil
        if hand_over(queue, KEYS[1 + index], KEYS[1], ARGV[1], time, now, mark + 1) then
          more = 3
          if mark >= now then mark = mark + 1 + passes end
        elseif entries == 0 then
          more = 5
        elseif failed or unnotified then
          more = 7
        end
        if more > 0 then
          usual = usual - reply
          replies[index] = reply + more
        end
      end
    end
  end
  if mark > before then pcall('SET', KEYS[1], string.format('%.0f', mark)) end
end

if acquires > 0 then
  local now_ms = (now - now % 1000) / 1000
  local ttls = string.find(ARGV[5], ' ', 1, true) and numbers(ARGV[5])
  local expires = not ttls and string.format('%.0f', now_ms + ARGV[5])
  for index = 1, acquires do
    local lock = KEYS[1 + 2 * releases + index]
    local token = ARGV[5 + releases + index]
    local reply
    -- With a clock behind the mark, the script for one raises the mark.
    if mark < now then
      if ttls then expires = string.format('%.0f', now_ms + ttls(index)) end
      local set = pcall('SET', lock, token, 'NX', 'PXAT', expires)
      if set and set.ok then
        reply = now
      elseif not set then
        local value = pcall('GET', lock)
        if type(value) == 'string' and value ~= token then
          reply = {0, value, call('PTTL', lock)}
        end
      end
    end
    if reply == now then
      usual = usual + 1
    else
      replies[releases + index] = reply or {3}
    end
  end
end
if usual == releases + acquires then return 'all ' .. time[1] .. ' ' .. time[2] end
for index = 1, releases + acquires do
  replies[index] = replies[index] or index <= releases and 1 or now
end
return replies
