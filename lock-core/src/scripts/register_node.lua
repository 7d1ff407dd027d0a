-- register_node: names a node of a quorum, and says whether it votes, and the time of its clock.
--
-- KEYS   1 registers
-- ARGV   1 the name of a node that has none yet   2 how to treat a node without data: "look" as it is, "wait" it
--        votes when 3 has passed, "fresh" it votes at once   3 longest ttl in ms
-- Reply  {name, ms until it votes, time}   time is the server's in microseconds, as a decimal string
--        {"", -1, time}                    it has no data, and was left as it is
--
-- A server without data may have forgotten locks. "opens" is the time when the last of them has run out, in ms of
-- the server's clock; "0": it votes. A proposal may have come first. It sets "opens" and no name, because it goes to
-- all servers alike, and two servers with one name count as one.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local micros = string.format('%.0f', time[1] * 1000000 + time[2])
local known = redis.call('HMGET', KEYS[1], 'name', 'opens')
local name, opens = known[1], tonumber(known[2] or '')
if not opens then
  if ARGV[2] == 'look' then return {'', -1, micros} end
  opens = ARGV[2] == 'fresh' and 0 or now + ARGV[3]
  redis.call('HSET', KEYS[1], 'opens', string.format('%.0f', opens))
end
if not name then
  name = ARGV[1]
  redis.call('HSET', KEYS[1], 'name', name)
end
return {name, math.max(opens - now, 0), micros}
