-- Reads the keys once more behind their renewals, because the server forgets that a client watches a key when the client
-- itself changes it.
redis.pcall('EXISTS', unpack(KEYS))
