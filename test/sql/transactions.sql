-- A charge belongs to the transaction that made it (B062); the clock does not stand still in it (B035); a statement may call many times (B014).
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set d 'allowed, remaining, reason'
SET taskq_ratelimit.test_clock = '1700000000';
SELECT taskq.register_token_bucket('tb', 1, 0), taskq.register_sliding_window('log', 1, '1 min'), taskq.register_sliding_window('counter', 1, '1 min', 'counter'),
       taskq.register_sliding_window('gcra', 1, '1 min', 'gcra'), taskq.register_fixed_window('fw', 1, '1 min'), taskq.register_token_bucket('keyed', 1, 0, keyed => true);
PREPARE take AS SELECT name, allowed, remaining, reason FROM taskq.acquire_many('{tb,log,counter,gcra,fw,keyed}', keys => '{"","","","","",k}') WITH ORDINALITY AS m JOIN LATERAL (SELECT bucket_name AS name) AS n ON true ORDER BY ordinality;

-- B062: what is rolled back is there again.
BEGIN;
EXECUTE take;
EXECUTE take;
ROLLBACK;
BEGIN;
EXECUTE take;

-- The same with a savepoint, also for what was taken twice around it.
SAVEPOINT s;
SELECT taskq.reset('tb'), taskq.reset('log');
SELECT :d FROM taskq.acquire('tb');
SELECT :d FROM taskq.acquire('log');
ROLLBACK TO s;
SELECT :d FROM taskq.acquire('tb');
SELECT :d FROM taskq.acquire('log');
ROLLBACK;
SELECT count(*) FROM taskq.rate_limit_window_entries;

-- An exception that is caught gives back what its block has taken, and only that.
DO $$
BEGIN
    PERFORM taskq.acquire('tb');
    BEGIN
        PERFORM taskq.acquire('log'), taskq.acquire('fw');
        RAISE EXCEPTION 'later failure';
    EXCEPTION WHEN raise_exception THEN
        NULL;
    END;
    RAISE NOTICE 'left: tb %, log %, fw %', taskq.remaining('tb'), taskq.remaining('log'), taskq.remaining('fw');
END $$;

-- So does a statement that fails in the middle.
SELECT taskq.allow('log'), 1 / (taskq.remaining('log')::int);
SELECT taskq.remaining('log');

-- A refund that is rolled back did not happen, and can happen later.
CREATE TABLE kept AS SELECT d FROM taskq.acquire('log') AS d;
BEGIN;
SELECT taskq.refund(d) FROM kept;
SELECT taskq.refund(d) FROM kept;
ROLLBACK;
SELECT taskq.remaining('log');
SELECT taskq.refund(d) FROM kept;
SELECT taskq.remaining('log');

-- So does a pause, a reset, a drop.
BEGIN;
SELECT taskq.pause('log', 'infinity'), taskq.pause('keyed', 'infinity'), taskq.reset('tb');
SELECT :d FROM taskq.acquire('log');
SELECT :d FROM taskq.acquire('keyed', 1, 'k');
SELECT taskq.drop_rate_limit('fw');
ROLLBACK;
SELECT :d FROM taskq.preview('log');
SELECT :d FROM taskq.preview('keyed', 1, 'k');
SELECT :d FROM taskq.preview('tb');
SELECT :d FROM taskq.preview('fw');

-- Two phases: what is prepared stays taken until it is decided.
SELECT taskq.reset('fw');
BEGIN;
SELECT :d FROM taskq.acquire('fw');
SELECT :d FROM taskq.acquire('keyed', 1, 'two phases');
PREPARE TRANSACTION 'regress_taskq';
SET taskq_ratelimit.lock_timeout = '10ms';
SELECT :d, retry_after FROM taskq.acquire('fw');
ROLLBACK PREPARED 'regress_taskq';
SELECT :d FROM taskq.preview('fw');
BEGIN;
SELECT :d FROM taskq.acquire('fw');
SELECT :d FROM taskq.acquire('keyed', 1, 'two phases');
PREPARE TRANSACTION 'regress_taskq';
COMMIT PREPARED 'regress_taskq';
SELECT :d FROM taskq.acquire('fw');
SELECT :d FROM taskq.acquire('keyed', 1, 'two phases');
RESET taskq_ratelimit.lock_timeout;

-- Stricter isolation: a session alone never fails, whatever its snapshot shows.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM kept;
SELECT taskq.reset('tb');
SELECT :d FROM taskq.acquire('tb');
SELECT :d FROM taskq.acquire('tb');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT :d FROM taskq.acquire('log');
SELECT :d FROM taskq.acquire('log');
SELECT :d FROM taskq.acquire('keyed', 1, 'serializable');
COMMIT;
SELECT :d FROM taskq.acquire('keyed', 1, 'serializable');

-- B014: 25 calls in one statement are 25 decisions: 10 entries of one instant with 10 names.
SELECT taskq.register_sliding_window('tick', 10, '1 min');
SELECT count(*) FILTER (WHERE allowed) AS ok, count(*) FILTER (WHERE NOT allowed) AS denied, count(DISTINCT request_id) AS ids
FROM generate_series(1, 25) AS i, LATERAL taskq.acquire('tick', 1 + i * 0);
SELECT count(*), count(DISTINCT e.at), count(DISTINCT upto) FROM taskq.rate_limit_window_entries AS e JOIN taskq.rate_limit_buckets USING (bucket_id) JOIN taskq.rate_limits USING (limit_id) WHERE name = 'tick';

-- B035: now() stands still in a transaction, limits do not.
RESET taskq_ratelimit.test_clock;
SELECT taskq.register_token_bucket('fast', 1, 10);
BEGIN;
SELECT allowed FROM taskq.acquire('fast');
SELECT count(pg_sleep(0.12));
SELECT allowed, decided_at > now() AS later_than_now FROM taskq.acquire('fast');
COMMIT;

DROP TABLE kept;
SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;
SELECT count(*) FROM taskq.rate_limit_window_entries;
SELECT count(*) FROM taskq.rate_limit_refunds;
