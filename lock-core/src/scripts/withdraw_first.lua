-- withdraw, for a key without waiters. It stands before the rest, so that the usual case makes none of the functions of
-- the rest. See withdraw.lua for the contract.
local token = string.sub(ARGV[1], 1, 49)
if not ARGV[2] and redis.pcall('GET', KEYS[1]) == token and redis.pcall('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[1])
  return 1
end
