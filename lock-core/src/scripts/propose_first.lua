-- propose, where the key is free and the number is high enough. It stands before the rest, so that the usual case makes
-- none of the functions of the rest. See propose.lua for the contract.
local known = redis.call('HMGET', KEYS[2], 'opens', ARGV[3])
local register = known[2]
-- A register and the argument begin with 16 digits. They are compared as texts, because reading a number costs half a
-- command.
if known[1] == '0' and (not register or register < ARGV[5]) and not ARGV[7]
  and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
  return 1
end
