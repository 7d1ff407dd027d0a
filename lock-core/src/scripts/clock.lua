-- clock: reads the clock of the server that has a lock, by which its keys end.
--
-- KEYS   1 lock, which only leads to the server
-- Reply  seconds of Unix time   microseconds of the second
return redis.call('TIME')
