-- release, where nobody waits: put before the rest of it, so that the usual case makes none of its
-- functions. See release.lua for the contract.
if not ARGV[5] and redis.pcall('GET', KEYS[1]) == ARGV[1] and redis.pcall('EXISTS', KEYS[3]) == 0 then
  -- DEL comes first: it is allowed when the server is out of memory. Nothing after it can fail.
  redis.call('DEL', KEYS[1])
  if ARGV[2] ~= '' then
    local mark = redis.pcall('GET', KEYS[2])
    if type(mark) ~= 'table' and (not mark or (tonumber(mark) or math.huge) < tonumber(ARGV[2])) then
      redis.pcall('SET', KEYS[2], ARGV[2])
    end
  end
  return 1
end
