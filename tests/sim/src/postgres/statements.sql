-- session
SELECT current_setting('lock_timeout')

-- persistence
SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass('lockkit.cell')

-- history
SELECT (SELECT system_identifier FROM pg_control_system()) || '/' ||
  left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)

-- recorded
SELECT encode(doc, 'escape') FROM lockkit.cell WHERE key = '!history'
AND NOT (coalesce((SELECT last_value FROM pg_sequences WHERE schemaname = 'lockkit' AND sequencename = 'revision'), 0)
< (extract(epoch FROM clock_timestamp()) * 1000000)::bigint / 64 - 15625)

-- create
BEGIN; SELECT pg_advisory_xact_lock(7813573191525823488);
CREATE SCHEMA IF NOT EXISTS lockkit;
CREATE SEQUENCE IF NOT EXISTS lockkit.revision;
CREATE TABLE IF NOT EXISTS lockkit.cell (
  key bytea PRIMARY KEY,
  rev bigint NOT NULL,
  at bigint NOT NULL,
  ends bigint NOT NULL,
  fence bigint,
  doc bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE lockkit.cell ALTER COLUMN doc SET STORAGE EXTERNAL;
COMMIT

-- raise
BEGIN; SELECT pg_advisory_xact_lock(7813573191525823488);
SELECT setval('lockkit.revision', greatest(nextval('lockkit.revision') + lost, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint / 64))
FROM (SELECT CASE WHEN EXISTS (SELECT FROM lockkit.cell WHERE key = '!history' AND doc = '{}') THEN 0 ELSE 16777216 END AS lost) AS it
WHERE lost > 0 OR coalesce((SELECT last_value FROM pg_sequences WHERE schemaname = 'lockkit' AND sequencename = 'revision'), 0)
< (extract(epoch FROM clock_timestamp()) * 1000000)::bigint / 64 - 15625;
INSERT INTO lockkit.cell AS c (key, rev, at, ends, doc) VALUES ('!history', 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 9223372036854775807, '{}')
ON CONFLICT (key) DO UPDATE SET doc = excluded.doc WHERE c.doc <> excluded.doc; COMMIT

-- clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- keeping
WITH want AS MATERIALIZED (
  SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[],
  $11::bigint[], $12::bigint[], $13::bigint[]) WITH ORDINALITY AS w(key, rev, doc, ends, lasts, fence, since, until, at, i)
), one AS MATERIALIZED (
  SELECT nextval('lockkit.revision') AS next, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
), deaf AS MATERIALIZED (
  SELECT e.i, e.ear FROM unnest($7::bigint[], $8::bigint[]) AS e(i, ear)
  WHERE pg_try_advisory_xact_lock_shared(e.ear)
), found AS MATERIALIZED (
  SELECT w.*, c.old, nextval('lockkit.revision') AS next, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
  FROM want w, LATERAL (
    SELECT c.rev AS old FROM lockkit.cell c
    WHERE c.key = w.key AND true
    AND (c.rev = w.rev AND c.at = w.at AND w.since <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND (extract(epoch FROM clock_timestamp()) * 1000000)::bigint < w.until OR w.rev = 0 AND c.ends <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND (extract(epoch FROM clock_timestamp()) * 1000000)::bigint < $9)
    FOR NO KEY UPDATE SKIP LOCKED
  ) c WHERE NOT EXISTS (SELECT FROM deaf d WHERE d.i = w.i)
), fresh AS MATERIALIZED (
  SELECT w.*, nextval('lockkit.revision') AS next, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now FROM want w
  WHERE w.rev = 0 AND (extract(epoch FROM clock_timestamp()) * 1000000)::bigint < $9
  AND NOT EXISTS (SELECT FROM lockkit.cell c WHERE c.key = w.key)
  AND NOT EXISTS (SELECT FROM deaf d WHERE d.i = w.i)
), changed AS (
  UPDATE lockkit.cell c SET rev = f.next, at = f.now, ends = greatest(f.ends, CASE f.lasts WHEN 0 THEN 0 ELSE f.now + f.lasts END),
    fence = CASE f.fence WHEN -1 THEN NULL WHEN 0 THEN f.next * 64 ELSE f.fence END, doc = f.doc
  FROM found f WHERE c.key = f.key AND c.rev = f.old AND true
  RETURNING f.i, c.rev, c.at
), added AS (
  INSERT INTO lockkit.cell (key, rev, at, ends, fence, doc)
  SELECT f.key, f.next, f.now, greatest(f.ends, CASE f.lasts WHEN 0 THEN 0 ELSE f.now + f.lasts END),
    CASE f.fence WHEN -1 THEN NULL WHEN 0 THEN f.next * 64 ELSE f.fence END, f.doc
  FROM fresh f WHERE true ON CONFLICT (key) DO NOTHING RETURNING key, rev, at
), done AS (
  SELECT i, rev, at FROM changed UNION ALL SELECT w.i, a.rev, a.at FROM added a JOIN want w USING (key)
) SELECT 0, i, rev, at, NULL::bytea, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, CASE WHEN $10 THEN set_config('synchronous_commit', 'off', true) END FROM done
UNION ALL SELECT 1, i, ear, 0, NULL, 0, NULL FROM deaf
UNION ALL SELECT 2, w.i, c.rev, c.at, c.doc, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, NULL
FROM want w LEFT JOIN lockkit.cell c USING (key)
WHERE NOT EXISTS (SELECT FROM done d WHERE d.i = w.i) AND NOT EXISTS (SELECT FROM deaf d WHERE d.i = w.i)

-- ending = keeping
FOR NO KEY UPDATE => FOR UPDATE

-- together = ending
c.old, nextval('lockkit.revision') AS next, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now => c.old, (SELECT next FROM one) AS next, (SELECT now FROM one) AS now
SELECT w.*, nextval('lockkit.revision') AS next, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now => SELECT w.*, (SELECT next FROM one) AS next, (SELECT now FROM one) AS now
c.key = w.key AND true => c.key = w.key AND c.rev < (SELECT next FROM one)
c.rev = f.old AND true => c.rev = f.old AND (SELECT count(*) FROM found) + (SELECT count(*) FROM fresh) = cardinality($1)
FROM fresh f WHERE true => FROM fresh f WHERE (SELECT count(*) FROM found) + (SELECT count(*) FROM fresh) = cardinality($1)
SELECT FROM done d WHERE d.i = w.i) AND NOT EXISTS (SELECT FROM deaf d WHERE d.i = w.i) => SELECT FROM done d WHERE d.i = w.i) AND NOT EXISTS (SELECT FROM deaf d WHERE d.i = w.i) UNION ALL SELECT 3, 1 / (count(*) = cardinality($1))::int, 0, 0, NULL, 0, NULL FROM done HAVING count(*) > 0

-- read
SELECT NULL::bigint, NULL::bigint, NULL::bytea, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0::bigint AS i
UNION ALL
SELECT c.rev, c.at, c.doc, NULL, w.i FROM unnest($1::bytea[]) WITH ORDINALITY AS w(key, i)
LEFT JOIN lockkit.cell c USING (key) ORDER BY i

-- notify
SELECT pg_notify(p.channel, p.message), set_config('synchronous_commit', 'off', true)
FROM unnest($1::text[], $2::text[]) AS p(channel, message)

-- tell
SELECT deaf, CASE WHEN NOT deaf THEN pg_notify($2, $3) END
FROM (SELECT pg_try_advisory_xact_lock_shared($1) AS deaf OFFSET 0) AS receiver

-- hears
SELECT pg_try_advisory_xact_lock_shared($1)

-- ping
UPDATE lockkit.cell SET rev = rev WHERE key = '' AND false

-- list
SELECT key, ends > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM lockkit.cell
WHERE key >= $1 AND key < $2 ORDER BY key LIMIT 1000

-- list behind
SELECT key, ends > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM lockkit.cell
WHERE key > $1 AND key < $2 ORDER BY key LIMIT 1000

-- sweep
WITH mine AS MATERIALIZED (
  SELECT pg_try_advisory_xact_lock(7813573191525823489) AS turn
), page AS MATERIALIZED (
  SELECT key FROM lockkit.cell WHERE key > $1 AND (SELECT turn FROM mine) ORDER BY key LIMIT 1000
), over AS MATERIALIZED (
  SELECT key FROM lockkit.cell WHERE key IN (SELECT key FROM page)
  AND greatest(ends, at) < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 60000000 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM lockkit.cell WHERE key IN (SELECT key FROM over)
) SELECT key, set_config('synchronous_commit', 'off', true) FROM page ORDER BY key DESC LIMIT 1

-- findings
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
  current_setting('fsync') = 'off' OR current_setting('synchronous_commit') = 'off'
    OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') AND current_setting('synchronous_standby_names') <> '',
  EXISTS (SELECT FROM pg_stat_replication) AND current_setting('synchronous_standby_names') = '',
  current_setting('autovacuum') = 'off',
  current_setting('log_parameter_max_length', true) IS DISTINCT FROM '0' AND (current_setting('log_statement') IN ('all', 'mod')
    OR current_setting('log_min_duration_statement') <> '-1'),
  current_setting('idle_in_transaction_session_timeout') = '0',
  EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND xact_start < clock_timestamp() - interval '1 minute')

-- listen
SET statement_timeout = 0; SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3; LISTEN "{}"; SELECT pg_advisory_lock({})
