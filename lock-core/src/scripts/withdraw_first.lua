-- withdraw, where nobody waits: put before the rest of it, so that the usual case makes none of its
-- functions. See withdraw.lua for the contract.
if not ARGV[3] and redis.pcall('GET', KEYS[1]) == ARGV[1] and redis.pcall('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[1])
  return 1
end
