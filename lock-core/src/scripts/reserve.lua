-- reserve: keeps fencing tokens for a lease that goes on from task to task, while the clock stands
-- behind the mark: its end will not prove that the clock has passed them.
--
-- KEYS   1 mark
-- ARGV   1 the highest fencing token that the lease may use
-- Reply  1
raise(KEYS[1], redis.call('GET', KEYS[1]), ARGV[1])
return 1
