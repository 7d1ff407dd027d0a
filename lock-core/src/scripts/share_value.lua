-- Reads the value of the key, for share_set.lua.
local value = redis.pcall('GET', KEYS[1])
