-- In a READ ONLY transaction what looks works, and what takes fails with 25006 and says what to do.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
SET taskq_ratelimit.test_clock = '1700000000';
SELECT taskq.register_token_bucket('tb', 5, 1), taskq.register_sliding_window('log', 5, '1 min'), taskq.register_token_bucket('keyed', 5, 1, keyed => true);
SELECT taskq.allow('tb', 2), taskq.allow('log', 2);
CREATE TABLE kept AS SELECT d FROM taskq.acquire('tb') AS d;
SELECT taskq.register_token_bucket('tb', 10, 1, replace => true);

-- Looking, also on a key never seen and on a bucket whose definition has changed since it was written.
BEGIN TRANSACTION READ ONLY;
SELECT remaining, is_exhausted FROM taskq.peek('tb');
SELECT remaining, is_exhausted FROM taskq.peek('log');
SELECT remaining, is_exhausted, updated_at FROM taskq.peek('keyed', 'new');
SELECT allowed, remaining FROM taskq.preview('log', 3);
SELECT taskq.remaining('tb'), taskq.reset_after('tb'), taskq.http_headers(d) ->> 'RateLimit-Limit' AS "limit" FROM kept;
SELECT bucket_name, remaining FROM taskq.peek_all();
SELECT bucket_name, remaining FROM taskq.rate_limit_status;
SELECT taskq.acquire('tb');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

-- So do repeatable and serializable ones.
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT taskq.remaining('tb');
COMMIT;
BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE;
SELECT taskq.remaining('tb');
COMMIT;

-- Each function that takes, gives back or defines is refused by its name.
SET default_transaction_read_only = on;
SELECT taskq.allow('tb');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.acquire_json('tb');
SELECT taskq.require('tb');
SELECT taskq.reserve('tb');
SELECT taskq.charge('tb');
SELECT taskq.refund('tb', 1);
SELECT taskq.refund(d) FROM kept;
SELECT taskq.settle(d, 1) FROM kept;
SELECT taskq.acquire_many('{tb}');
CALL taskq.wait('tb');
SELECT taskq.acquire_token_bucket('x', 1, 1);
SELECT taskq.acquire_leaky_bucket('x', 1, 1);
SELECT taskq.acquire_sliding_window('x', 1, '1 s');
SELECT taskq.acquire_fixed_window('x', 1, '1 s');
SELECT taskq.register_token_bucket('x', 1, 1);
SELECT taskq.register_leaky_bucket('x', 1, 1);
SELECT taskq.register_sliding_window('x', 1, '1 s');
SELECT taskq.register_fixed_window('x', 1, '1 s');
SELECT taskq.drop_rate_limit('tb');
SELECT taskq.reset('tb');
SELECT taskq.pause('tb', 'infinity');
SELECT taskq.pause('tb', '', 'infinity');
SELECT taskq.resume('tb');
SELECT taskq.resume('tb', '');
SELECT taskq.sweep();
SELECT taskq.evict_idle('0');

-- Nothing has changed.
SELECT bucket_name, remaining FROM taskq.peek_all();
SET default_transaction_read_only = off;
SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;
DROP TABLE kept;
