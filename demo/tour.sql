\pset footer off
\set ON_ERROR_STOP on
\set QUIET off
\qecho
\qecho == A limit is a name: 3 at once, then 2 per second.
\set ECHO queries
CREATE EXTENSION taskq_ratelimit;
SELECT taskq.register_token_bucket('stripe_api', capacity => 3, refill_per_second => 2);

SELECT allowed, remaining, retry_after FROM taskq.acquire('stripe_api');
SELECT allowed, remaining, retry_after FROM taskq.acquire('stripe_api', cost => 2);
\set ECHO none
\qecho 'SELECT allowed, remaining, retry_after, reason FROM taskq.acquire(\'stripe_api\');'
SELECT allowed, remaining, retry_after, reason FROM taskq.acquire('stripe_api') \gset
SELECT :'allowed'::boolean AS allowed, :'remaining'::float8 AS remaining, :'retry_after'::interval AS retry_after, :'reason' AS reason;
\qecho == Denied. Wait exactly retry_after, and get in.
\set ECHO queries
SELECT pg_sleep_until(clock_timestamp() + :'retry_after');
SELECT allowed, remaining, retry_after FROM taskq.acquire('stripe_api');
\set ECHO none
\qecho == Or let the server do the waiting: no lock is held meanwhile.
\set ECHO queries
CALL taskq.wait('stripe_api', timeout => '5 s');
\set ECHO none
\qecho == A sliding window: never more than 2 in any 10 seconds, exactly.
\set ECHO queries
SELECT taskq.register_sliding_window('login', max_requests => 2, period => '10 s', style => 'log', keyed => true);
SELECT who, d.allowed, d.remaining, d.retry_after FROM (VALUES ('ada'), ('ada'), ('ada')) AS attempt(who), taskq.acquire('login', key => who) AS d;
\set ECHO none
\qecho == The limit is keyed: somebody else has a bucket of their own. Looking spends nothing.
\set ECHO queries
SELECT allowed, remaining FROM taskq.acquire('login', key => 'grace');
SELECT key, remaining, is_exhausted, retry_after FROM taskq.rate_limit_status WHERE bucket_name = 'login';
\set ECHO none
\qecho == What a web client is told.
\set ECHO queries
SELECT jsonb_pretty(taskq.http_headers(d)) AS headers FROM taskq.acquire('login', key => 'ada') AS d;
