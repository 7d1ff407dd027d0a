-- extend: lengthens leases to their ttl. Never creates one.
--
-- KEYS   locks
-- ARGV   for each lock: token, ttl in ms
-- Reply  for each lock: 1 extended   0 gone   2 another owner's   3 not known
--
-- A lease that would last longer than its ttl (the server's clock went back) is cut to it.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local reply = {}
for index, lock in ipairs(KEYS) do
  local value = redis.pcall('GET', lock)
  if value == ARGV[2 * index - 1] then
    local extended = redis.pcall('PEXPIREAT', lock, string.format('%.0f', now + ARGV[2 * index]))
    reply[index] = extended == 1 and 1 or 3
  elseif not value then
    reply[index] = 0
  elseif type(value) == 'table' and not string.match(value.err, '^WRONGTYPE') then
    reply[index] = 3
  else
    reply[index] = 2
  end
end
return reply
