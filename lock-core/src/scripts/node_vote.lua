-- Functions for the votes of a node of a quorum.

-- For how many ms the node does not vote, because it may have forgotten locks. Answers nothing if it votes. `opens` is
-- that field of the registers.
local function closed_for(registers, opens, max_ttl)
  if opens == '0' then return nil end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local at = tonumber(opens or '')
  if not at then
    at = now + max_ttl
    redis.call('HSET', registers, 'opens', string.format('%.0f', at))
  end
  if now < at then return at - now end
  redis.call('HSET', registers, 'opens', '0')
end

-- The highest number that a register has accepted, and nothing where no token can be counted from it:
-- `HIGH_WATER_LIMIT` of fence.rs.
local function highest_of(register)
  local highest = register and tonumber(string.sub(register, 1, 16)) or not register and 0
  return highest and highest < 9e15 and highest
end

local function no_number()
  return redis.error_reply('LOCKMARK no fencing token can be counted from a register')
end
