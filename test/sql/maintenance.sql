-- A session keeps what it knows of tables and rows; whatever is done to them meanwhile, it goes on with the right state.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
SET client_min_messages = warning;
SET taskq_ratelimit.test_clock = '1700000000';
SELECT taskq.register_token_bucket('tb', 20, 0), taskq.register_sliding_window('log', 20, '1 min'), taskq.register_token_bucket('keyed', 20, 0, keyed => true);
CREATE FUNCTION pg_temp.take(OUT tb float8, OUT log float8, OUT a float8, OUT b float8) LANGUAGE sql AS $$
    SELECT (taskq.acquire('tb')).remaining, (taskq.acquire('log')).remaining, (taskq.acquire('keyed', 1, 'a')).remaining, (taskq.acquire('keyed', 1, 'b')).remaining
$$;
SELECT * FROM pg_temp.take();

-- Tables rewritten and indexes rebuilt.
VACUUM FULL taskq.rate_limit_buckets, taskq.rate_limit_window_entries, taskq.rate_limits;
SELECT * FROM pg_temp.take();
REINDEX SCHEMA taskq;
SELECT * FROM pg_temp.take();
CLUSTER taskq.rate_limit_buckets USING rate_limit_buckets_pkey;
CLUSTER taskq.rate_limits USING rate_limits_pkey;
SELECT * FROM pg_temp.take();
VACUUM (FREEZE, ANALYZE) taskq.rate_limit_buckets, taskq.rate_limit_window_entries, taskq.rate_limits;
SELECT * FROM pg_temp.take();
ALTER TABLE taskq.rate_limit_buckets SET (fillfactor = 90);
SELECT * FROM pg_temp.take();
ALTER TABLE taskq.rate_limit_buckets SET (fillfactor = 50);

-- The same inside a transaction that is rolled back.
BEGIN;
SELECT * FROM pg_temp.take();
CLUSTER taskq.rate_limit_buckets;
SELECT * FROM pg_temp.take();
ROLLBACK;
SELECT * FROM pg_temp.take();

-- Rows moved by somebody else's updates, to another page and with other keys around them.
SELECT count(taskq.allow('keyed', 1, 'filler ' || i)) FROM generate_series(1, 300) AS i;
UPDATE taskq.rate_limit_buckets SET previous = previous;
UPDATE taskq.rate_limit_buckets SET previous = previous;
SELECT * FROM pg_temp.take();
DELETE FROM taskq.rate_limit_buckets WHERE key LIKE 'filler%';
VACUUM taskq.rate_limit_buckets;
SELECT count(taskq.allow('keyed', 1, 'other ' || i)) FROM generate_series(1, 300) AS i;
SELECT * FROM pg_temp.take();

-- A row that is deleted, and comes again, is a new bucket.
DELETE FROM taskq.rate_limit_buckets WHERE key = 'a';
SELECT * FROM pg_temp.take();
BEGIN;
TRUNCATE taskq.rate_limit_buckets;
SELECT * FROM pg_temp.take();
ROLLBACK;
SELECT * FROM pg_temp.take();
TRUNCATE taskq.rate_limit_buckets, taskq.rate_limit_window_entries;
SELECT * FROM pg_temp.take();

-- Caches dropped by hand.
DISCARD PLANS;
SELECT * FROM pg_temp.take();

-- All definitions gone at once, and with them what the session has cached.
BEGIN;
TRUNCATE taskq.rate_limits CASCADE;
SELECT * FROM pg_temp.take();
ROLLBACK;
SELECT * FROM pg_temp.take();

-- The extension dropped and made again in one session: all is new.
DROP EXTENSION taskq_ratelimit;
SELECT taskq.acquire('tb');
CREATE EXTENSION taskq_ratelimit;
SELECT taskq.acquire('tb');
SELECT taskq.register_token_bucket('tb', 5, 0);
SELECT remaining FROM taskq.acquire('tb');
BEGIN;
DROP EXTENSION taskq_ratelimit;
CREATE EXTENSION taskq_ratelimit;
SELECT taskq.register_token_bucket('tb', 50, 0);
SELECT remaining FROM taskq.acquire('tb');
ROLLBACK;
SELECT remaining FROM taskq.acquire('tb');
SELECT taskq.drop_rate_limit('tb');

-- Tables and types that were given another shape are refused, not read beyond their end.
SELECT taskq.register_token_bucket('keyed', 5, 0, keyed => true);
SELECT taskq.register_sliding_window('log', 5, '1 minute');
BEGIN;
ALTER TABLE taskq.rate_limit_buckets ADD COLUMN more text;
SELECT taskq.allow('keyed', key => 'new');
ROLLBACK;
BEGIN;
ALTER TABLE taskq.rate_limit_window_entries ADD COLUMN more text;
SELECT taskq.allow('log');
ROLLBACK;
BEGIN;
ALTER TYPE taskq.rate_limit_decision ADD ATTRIBUTE more text, ADD ATTRIBUTE even_more text;
SELECT taskq.acquire('log');
ROLLBACK;
BEGIN;
ALTER TYPE taskq.rate_limit_decision ADD ATTRIBUTE more text, ADD ATTRIBUTE even_more text;
SELECT taskq.acquire_many(ARRAY['log']);
ROLLBACK;
SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;

-- It cannot be moved to another schema, and its objects cannot be dropped one by one.
CREATE SCHEMA elsewhere;
ALTER EXTENSION taskq_ratelimit SET SCHEMA elsewhere;
DROP TABLE taskq.rate_limit_refunds;
DROP SCHEMA elsewhere;
