-- extend: lengthens leases to their ttl. Never creates one.
--
-- KEYS   locks
-- ARGV   for each lock: token, ttl in ms; then "write", if replicas must acknowledge the lease
-- Reply  for each lock: 1 extended   0 gone   2 another owner's   3 not known
--
-- It only lengthens, so a renewal that arrives behind a later, longer one changes nothing. Only an end that is later
-- than any lease may last (the server's clock was set back) is cut.
--
-- `WAIT` counts the writes of its own connection only. So an end that another connection wrote, and that is late
-- enough, is written once more.
local longest = 24 * 60 * 60 * 1000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local writes = ARGV[2 * #KEYS + 1] == 'write'
local reply = {}
for index, lock in ipairs(KEYS) do
  local value = redis.pcall('GET', lock)
  if value == ARGV[2 * index - 1] then
    local left = redis.call('PTTL', lock)
    if left >= tonumber(ARGV[2 * index]) and left <= longest then
      local written = not writes or redis.pcall('SET', lock, value, 'KEEPTTL').ok
      reply[index] = written and 1 or 3
    else
      local extended = redis.pcall('PEXPIREAT', lock, string.format('%.0f', now + ARGV[2 * index]))
      reply[index] = extended == 1 and 1 or 3
    end
  elseif not value then
    reply[index] = 0
  elseif type(value) == 'table' and not string.match(value.err, '^WRONGTYPE') then
    reply[index] = 3
  else
    reply[index] = 2
  end
end
