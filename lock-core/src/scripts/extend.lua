-- extend: lengthens leases to their ttl. Never creates one.
--
-- KEYS   locks
-- ARGV   for each lock: token, ttl in ms; then "write", if replicas are to acknowledge what stands there
-- Reply  for each lock: 1 extended   0 gone   2 another owner's   3 not known
--
-- It only lengthens: a renewal that arrives late, when a later one has asked for more, changes nothing.
-- Only what would last longer than any lease may (the server's clock went back) is cut.
--
-- A connection is told what replicas have of its own writes only: an end that another one wrote, late
-- enough as it is, is written once more for them.
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
return reply
