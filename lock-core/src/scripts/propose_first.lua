-- propose, where the key is free and the number is high enough: put before the rest of it, so that the
-- usual case makes none of its functions. See propose.lua for the contract.
local known = redis.call('HMGET', KEYS[2], 'opens', ARGV[3])
local register = known[2]
local highest = 0
if register then highest = tonumber(string.sub(register, 1, 16)) end
if known[1] == '0' and highest and tonumber(ARGV[4]) > highest + ARGV[5] and ARGV[8] ~= '1'
  and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('HSET', KEYS[2], ARGV[3], ARGV[4] .. ARGV[1])
  return 1
end
