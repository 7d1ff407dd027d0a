-- release, in the usual case: it stands before the rest, so that a release with no waiter makes none of the
-- functions of the rest. The rest uses the values that were read here. See release.lua for the contract.
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
end
