-- propose, where the key is free and the number is high enough. It stands before the rest, so that the usual case makes
-- none of the functions of the rest. See propose.lua for the contract.
local vote = ARGV[1]
local token, accepted = string.sub(vote, 34, 82), string.sub(vote, 18, 82)
local known = redis.call('HMGET', KEYS[2], 'opens', ARGV[3])
local register = known[2]
-- A register and the vote begin with 16 digits. They are compared as texts, because reading a number costs half a
-- command. Equal digits are not below, because a token follows in the register, and a space in the vote.
if known[1] == '0' and (not register or register < vote) and not ARGV[4]
  and redis.call('SET', KEYS[1], token, 'NX', 'PX', ARGV[2]) then
  local noted = redis.pcall('HSET', KEYS[2], ARGV[3], accepted)
  if type(noted) ~= 'table' then return 1 end
  -- A user may lack this right alone.
  redis.call('DEL', KEYS[1])
  return noted
end
