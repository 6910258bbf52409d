-- How often queries call acquire (B068, B069), and what the planner may assume (B070).
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
SET taskq_ratelimit.test_clock = '1700000000';
SELECT taskq.register_token_bucket('k', 100, 0);

-- B068: SELECT * FROM spends once; (function()).* once for each of its 15 columns. The comment of the function says so.
SELECT allowed, remaining FROM (SELECT * FROM taskq.acquire('k')) AS s;
SELECT count(s) FROM (SELECT (taskq.acquire('k')).*) AS s;
SELECT taskq.remaining('k');
SELECT obj_description('taskq.acquire(text, float8, text)'::regprocedure);
SELECT taskq.reset('k');

-- B069: LATERAL without a reference to the row spends once for all rows: dangerous.
SELECT g, allowed, remaining FROM generate_series(1, 3) AS g, LATERAL taskq.acquire('k');
SELECT 100 - taskq.remaining('k') AS spent, taskq.reset('k');

-- WHERE with ORDER BY and LIMIT spends for every row.
SELECT g FROM generate_series(1, 10) AS g WHERE (taskq.acquire('k')).allowed ORDER BY g LIMIT 2;
SELECT 100 - taskq.remaining('k') AS spent, taskq.reset('k');

-- In the select list it spends for the rows that are shown.
SELECT g, (taskq.acquire('k')).allowed FROM generate_series(1, 10) AS g ORDER BY g LIMIT 2;
SELECT 100 - taskq.remaining('k') AS spent, taskq.reset('k');

-- A subquery without a reference spends once.
SELECT (SELECT (taskq.acquire('k')).allowed) FROM generate_series(1, 3);
SELECT 100 - taskq.remaining('k') AS spent, taskq.reset('k');

-- The safe pattern: decide first, then act.
WITH decided AS MATERIALIZED (SELECT g, taskq.allow('k') AS allowed FROM generate_series(1, 3) AS g) SELECT g FROM decided WHERE allowed;
SELECT 100 - taskq.remaining('k') AS spent, taskq.reset('k');

-- B070: what takes keeps a query out of parallel mode, what looks is run by the leader, what only computes may run anywhere.
CREATE TABLE big AS SELECT i FROM generate_series(1, 10000) AS i;
ANALYZE big;
SET force_parallel_mode = on; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT count(*) FROM big WHERE taskq.allow('k', 1 + i * 0);
EXPLAIN (COSTS OFF) SELECT count(*) FROM big WHERE taskq.remaining('k') < i;
EXPLAIN (COSTS OFF) SELECT count(*), taskq.remaining('k') FROM big;
EXPLAIN (COSTS OFF) SELECT count(*) FROM big WHERE taskq.version() <> i::text;
SELECT count(*) FROM big WHERE taskq.allow('k', 1 + i * 0);
SELECT count(*) FROM big WHERE i <= 100 AND taskq.remaining('k') < i;
SELECT count(*), taskq.remaining('k'), taskq.reset_after('k'), (taskq.peek('k')).is_exhausted, (taskq.preview('k')).allowed, taskq.http_headers(taskq.preview('k')) ->> 'RateLimit-Limit' AS "limit" FROM big;
SELECT count(*) FROM big WHERE i <= 100 AND NOT (taskq.preview('k', 1 + i * 0)).allowed;
SELECT count(*) FROM big WHERE taskq.version() <> i::text;
SELECT taskq.acquire('k');
SELECT count(taskq.http_headers(d)) FROM big, taskq.preview('k') AS d WHERE i <= 10;
RESET force_parallel_mode;

-- In the generic plan of a prepared statement, and in a PL/pgSQL function, each execution decides anew.
SELECT taskq.reset('k');
PREPARE p AS SELECT remaining FROM taskq.acquire('k', $1);
SET plan_cache_mode = force_generic_plan;
EXECUTE p(1);
EXECUTE p(2);
DO $$
DECLARE
    spent int := 0;
BEGIN
    FOR i IN 1 .. 200 LOOP
        spent := spent + taskq.allow('k')::int;
    END LOOP;
    RAISE NOTICE '% of 200', spent;
END $$;

DROP TABLE big;
SELECT taskq.drop_rate_limit('k');
