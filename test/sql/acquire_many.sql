-- Many decisions in one call, each on its own: a denial of one takes nothing from the others' success.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set m 'bucket_name, key, cost, allowed, remaining, retry_after, reason'
SET taskq_ratelimit.test_clock = '1700000000';
SELECT taskq.register_token_bucket('a', 5, 1), taskq.register_fixed_window('b', 3, '10 s'), taskq.register_sliding_window('c', 2, '10 s', keyed => true);

-- The answers come in the order of the arguments, one for each name, at a cost of 1 without keys.
SELECT :m FROM taskq.acquire_many('{b,a,b}');

-- With a cost and a key for each.
SELECT :m FROM taskq.acquire_many('{a,b,c,a}', '{3,2,1,4}', ARRAY['', '', 'x', '']);

-- A list of one element goes for all; the same bucket twice is decided twice.
SELECT :m FROM taskq.acquire_many('{c}', keys => '{x,y,z,y,x}');
SELECT :m FROM taskq.acquire_many('{a}', '{1,1,1}');

-- No names, no answers.
SELECT :m FROM taskq.acquire_many('{}');

-- Anything wrong in one of them is an error before any of them is decided.
SELECT taskq.reset('a'), taskq.reset('b');
SELECT :m FROM taskq.acquire_many('{a,b}', '{1,99}');
SELECT :m FROM taskq.acquire_many('{a,nope}');
SELECT :m FROM taskq.acquire_many('{a,c}');
SELECT :m FROM taskq.acquire_many('{a,b}', '{1,2,3}');
SELECT taskq.remaining('a'), taskq.remaining('b');

-- They can be refunded one by one.
SELECT m.bucket_name, taskq.refund(m) FROM taskq.acquire_many('{a,b,c}', '{2,2,2}', '{"","",w}') AS m;
SELECT taskq.remaining('a'), taskq.remaining('b'), taskq.remaining('c', 'w');

-- Two-dimensional arrays are read row by row; more decisions than one page holds.
SELECT count(*), count(*) FILTER (WHERE allowed) FROM taskq.acquire_many('{{a,b},{a,b}}');
SELECT count(*), count(*) FILTER (WHERE allowed), count(DISTINCT key) FROM taskq.acquire_many('{c}', keys => (SELECT array_agg('key ' || i % 700 ORDER BY i) FROM generate_series(1, 2100) AS i));
SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;
