-- release, in the usual case: it stands before the rest, so that a release with no waiter makes none of the
-- functions of the rest. The rest goes on with the head of the queue. See release.lua for the contract.
local call = redis.pcall
local ours = call('GET', KEYS[1]) == ARGV[1] and not ARGV[5]
local mark = ours and call('GET', KEYS[2])
local head
if ours and not (mark and mark.err) then
  head = call('ZPOPMIN', KEYS[3])
  if not head[1] and not head.err then
    -- DEL comes first: it is allowed when the server is out of memory. Nothing after it can fail.
    redis.call('DEL', KEYS[1])
    -- Numbers of one length are compared as texts, because reading a number costs half a command.
    local used = ARGV[2]
    if used ~= '' and (not mark or #mark == #used and mark < used
      or #mark ~= #used and (tonumber(mark) or math.huge) < tonumber(used)) then
      call('SET', KEYS[2], used)
    end
    return 1
  end
end
