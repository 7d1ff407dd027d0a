-- share, where a lone share is released that no client waits behind: it stands before the rest, so that this case makes
-- none of the functions of the rest. The rest goes on with the value of the key. See share.lua for the contract.
local value = redis.pcall('GET', KEYS[1])
if ARGV[1] == 'free' and value == ARGV[2] and redis.pcall('EXISTS', KEYS[3]) == 0 then
  local mark, used = redis.pcall('GET', KEYS[2]), ARGV[6]
  -- DEL comes first: it is allowed when the server is out of memory. Nothing after it can fail.
  redis.call('DEL', KEYS[1])
  if used ~= '' and not (mark and mark.err) and (not mark or #mark == #used and mark < used
    or #mark ~= #used and (tonumber(mark) or math.huge) < tonumber(used)) then
    redis.pcall('SET', KEYS[2], used)
  end
  return 1
end
