-- Cases from the field: how often a query calls a function, and what the planner may assume about it. And many keys at once.
BEGIN;
\ir helpers.psql
SELECT plan(24);
SELECT clock_starts(1700000000) \g /dev/null
SELECT taskq.register_token_bucket(name, 100, 0) FROM unnest('{b068,b068 star,b069 a,b069 b,b069 c,b069 d,b069 e,b070}'::text[]) AS name \g /dev/null

-- FROM spends once, (function()).* once per column.
SELECT * FROM taskq.acquire('b068') \g /dev/null
SELECT (taskq.acquire('b068 star')).* \g /dev/null
SELECT is(taskq.remaining('b068'), 99::float8, 'B068 SELECT * FROM spends once');
SELECT is(taskq.remaining('b068 star'), 85::float8, 'B068 the other form spends once for each of 15 columns');
SELECT ok(obj_description('taskq.acquire(text, float8, text)'::regprocedure) LIKE '%SELECT * FROM taskq.acquire(...)%', 'B068 the comment warns');

-- How often set queries call.
SELECT g FROM generate_series(1, 3) AS g, LATERAL taskq.acquire('b069 a') \g /dev/null
SELECT g FROM generate_series(1, 10) AS g WHERE (taskq.acquire('b069 b')).allowed ORDER BY g LIMIT 2 \g /dev/null
SELECT g, (taskq.acquire('b069 c')).allowed FROM generate_series(1, 10) AS g ORDER BY g LIMIT 2 \g /dev/null
SELECT (SELECT (taskq.acquire('b069 d')).allowed) FROM generate_series(1, 3) \g /dev/null
WITH decided AS MATERIALIZED (SELECT g, taskq.allow('b069 e') AS allowed FROM generate_series(1, 3) AS g)
SELECT g FROM decided WHERE allowed \g /dev/null
SELECT is(100 - taskq.remaining('b069 a'), 1::float8, 'B069 LATERAL without a reference to the row spends 1');
SELECT is(100 - taskq.remaining('b069 b'), 10::float8, 'B069 WHERE with ORDER BY and LIMIT spends 10');
SELECT is(100 - taskq.remaining('b069 c'), 2::float8, 'B069 in the select list with ORDER BY and LIMIT it spends 2');
SELECT is(100 - taskq.remaining('b069 d'), 1::float8, 'B069 a subquery without a reference spends 1');
SELECT is(100 - taskq.remaining('b069 e'), 3::float8, 'B069 deciding first in a materialized query spends 3');

-- Declared properties.
CREATE VIEW helpers.functions AS SELECT p.oid::regprocedure::text AS name, p.* FROM pg_proc AS p WHERE pronamespace = 'taskq'::regnamespace AND prokind = 'f';
SELECT is((SELECT string_agg(proname, ' ' ORDER BY proname) FROM functions WHERE proparallel <> 'u' ), 'decision_counts explain_acquire http_headers keyed peek peek_all peek_if_there peek_reservation peek_reservation_if_there peek_reservations peek_stats preview remaining request reset_after stats_info version',
          'B070 only what looks is not PARALLEL UNSAFE');
SELECT is((SELECT string_agg(proname, ' ' ORDER BY proname) FROM functions WHERE proparallel = 's'), 'keyed request version', 'B070 only version, request and keyed are PARALLEL SAFE');
SELECT is((SELECT string_agg(proname, ' ' ORDER BY proname) FROM functions WHERE provolatile <> 'v'), 'http_headers keyed request version', 'B070 all that reads a limit is VOLATILE');
SELECT is((SELECT count(*) FROM functions WHERE proisstrict), 0::bigint, 'B070 none is STRICT: a NULL is an error, not an answer');
SELECT throws_ok($$SELECT taskq.acquire(NULL)$$, '22004', 'argument "name" must not be null', 'B070 NULL as name');
SELECT throws_ok($$SELECT taskq.allow('b070', key => NULL)$$, '22004', 'argument "key" must not be null', 'B070 NULL as key');
SELECT throws_ok($$SELECT taskq.allow('b070', NULL)$$, '22004', 'argument "cost" must not be null', 'B070 NULL as cost');
CREATE TABLE helpers.big AS SELECT i FROM generate_series(1, 20000) AS i;
ANALYZE big;
SET LOCAL force_parallel_mode = on;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SELECT is((SELECT count(*) FROM big WHERE i <= 200 AND taskq.allow('b070')), 100::bigint, 'B070 acquire in a query that would go parallel');
SELECT is((SELECT count(*) FROM big WHERE i <= 200 AND taskq.remaining('b070') = 0), 200::bigint, 'B070 and remaining in one that does');
SELECT is((SELECT count(DISTINCT (taskq.preview('b070')).allowed) FROM big WHERE i <= 200), 1::bigint, 'B070 and preview');
SET LOCAL force_parallel_mode = off;

-- Many keys in one transaction need no room in the lock table.
SELECT taskq.register_token_bucket('b091', 1, 0, keyed => true), taskq.register_sliding_window('b091 swl', 1, '1 hour', keyed => true) \g /dev/null
SELECT is((SELECT count(*) FROM generate_series(1, 20000) AS i WHERE taskq.allow('b091', key => 'user ' || i)), 20000::bigint, 'B091 20000 keys, one call each');
SELECT is((SELECT count(*) FILTER (WHERE allowed) FROM taskq.acquire_many('{b091}', keys => (SELECT array_agg('user ' || i) FROM generate_series(19001, 24000) AS i))),
          4000::bigint, 'B091 5000 keys in one call, of which 1000 are spent');
SELECT is((SELECT count(*) FROM generate_series(1, 1000) AS i WHERE taskq.allow('b091 swl', key => 'user ' || i)), 1000::bigint, 'B091 1000 logs');
SELECT cmp_ok((SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()), '<', 60::bigint, 'B091 few locks are held');

-- Looking at unknown keys creates nothing.
SELECT is((SELECT count(*) FROM generate_series(1, 10000) AS i WHERE taskq.remaining('b091', 'stranger ' || i) = 1), 10000::bigint, 'B084 10000 strangers are full');
SELECT is((SELECT count(*) FROM taskq.rate_limit_buckets WHERE key LIKE 'stranger%'), 0::bigint, 'B084 and none was created');

SELECT finish();
ROLLBACK;
