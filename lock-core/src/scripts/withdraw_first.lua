-- withdraw, for a key without waiters. It stands before the rest, so that the usual case makes none of the functions of
-- the rest. See withdraw.lua for the contract.
if not ARGV[3] and redis.pcall('GET', KEYS[1]) == ARGV[1] and redis.pcall('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[1])
  return 1
end
