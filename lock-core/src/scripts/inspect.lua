-- inspect: reads who has a key and who waits for it. It changes nothing.
--
-- KEYS   1 lock   2 high-water mark; on a node of a quorum the registers   3 queue   4 shares
-- ARGV   1 register, or ""   2 how many waiters to name   3 how many shares to name
-- Reply  {value, pttl, time, mark, waiters, {entry, arrival, ..}, shares, {token, end, ..}}
--        value is nil if the key is free; pttl is -1 if it has no end; time is the server's in microseconds, as a
--        decimal string; mark is that of the key or of its register, or nil; waiters and shares are their numbers,
--        and the lists have the first ones, each with its score. The end of a share is in ms of Unix time
-- Error  WRONGTYPE   the key holds another value
--
-- A companion key of another type counts as empty. Shares that have ended are left out.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local value = redis.call('GET', KEYS[1])
local left = redis.call('PTTL', KEYS[1])

local mark
if ARGV[1] == '' then
  mark = redis.pcall('GET', KEYS[2])
else
  mark = redis.pcall('HMGET', KEYS[2], ARGV[1])[1]
end
if type(mark) ~= 'string' then mark = false end

local function count(reply) return type(reply) == 'number' and reply or 0 end
local function list(reply) return reply.err and {} or reply end

local waiters = count(redis.pcall('ZCARD', KEYS[3]))
local waiting = list(redis.pcall('ZRANGE', KEYS[3], 0, ARGV[2] - 1, 'WITHSCORES'))
local shares, shared = 0, {}
if value == 'shared/lockkit' then
  local live = string.format('%.0f', (now - now % 1000) / 1000)
  shares = count(redis.pcall('ZCOUNT', KEYS[4], live, '+inf'))
  shared = list(redis.pcall('ZRANGEBYSCORE', KEYS[4], live, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3]))
end
return {value, left, string.format('%.0f', now), mark, waiters, waiting, shares, shared}
