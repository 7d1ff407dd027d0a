-- forget: deletes a record or a cooldown, and never a token.
--
-- KEYS   1 lock
-- Reply  the token of the lease before, if its record or cooldown was deleted   0 there is no such key
--        2 the key is an owner's
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' and value.err then
  if string.find(value.err, 'WRONGTYPE', 1, true) then return 2 end
  return value
end
if not value then return 0 end
local token = string.match(value, '^done/(%x+/%x+)/%d+/') or string.match(value, '^cooling/(%x+/%x+)')
if not token or #token ~= 49 then return 2 end
redis.call('DEL', KEYS[1])
return token
