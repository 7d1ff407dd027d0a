-- delete_owned: deletes a lock that is this token's, and nothing else. For a lock whose slot is moving from one node of
-- a cluster to another, where no script may touch more than one of its keys.
--
-- KEYS   1 lock
-- ARGV   1 token   2 cooldown in ms, or ""   3 end of the cooldown in ms of Unix time, if that is later; or 0
-- Reply  1 released   0 there is no such key   2 the key is another owner's
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' and value.err then
  if string.match(value.err, '^WRONGTYPE') then return 2 end
  return value
end
-- The value that cool.lua writes.
local closed = 'cooling/' .. ARGV[1] .. '/'
if ARGV[2] ~= '' and value and string.sub(value, 1, #closed) == closed then return 1 end
if not value then return 0 end
if value ~= ARGV[1] then return 2 end
if ARGV[2] ~= '' then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local ends = math.max(now + ARGV[2], tonumber(ARGV[3]))
  if ends > now then
    local until_ms = string.format('%.0f', ends)
    local function cool() return not redis.pcall('SET', KEYS[1], closed .. until_ms, 'PXAT', until_ms).err end
    -- As in cool.lua, for a server that is out of memory.
    if cool() or redis.pcall('PEXPIREAT', KEYS[1], until_ms) == 1 and cool() then return 1 end
  end
end
redis.call('DEL', KEYS[1])
return 1
