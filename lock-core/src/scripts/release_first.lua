-- release, where nobody waits: put before the rest of it, so that the usual case makes none of its
-- functions. The rest goes on from what was read here. See release.lua for the contract.
local values = redis.pcall('MGET', KEYS[1], KEYS[2])
local waited_for = redis.pcall('EXISTS', KEYS[3]) == 1
if not ARGV[5] and values[1] == ARGV[1] and not waited_for then
  -- DEL comes first: it is allowed when the server is out of memory. Nothing after it can fail.
  redis.call('DEL', KEYS[1])
  local mark = values[2]
  if ARGV[2] ~= '' and (not mark or (tonumber(mark) or math.huge) < tonumber(ARGV[2])) then
    redis.pcall('SET', KEYS[2], ARGV[2])
  end
  return 1
end
