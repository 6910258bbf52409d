-- A token bucket of 3 that refills one token in 4 seconds.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set d 'allowed, remaining, retry_after, reset_after, reason'
SET taskq_ratelimit.test_clock = '1700000000.25';
SELECT taskq.register_token_bucket('token', 3, 0.25);

-- A decision has all its columns.
SELECT * FROM taskq.acquire('token') \gx

-- It admits what is left and then no more; the denial says when the next token is there.
SELECT :d FROM taskq.acquire('token');
SELECT :d FROM taskq.acquire('token');
SELECT :d FROM taskq.acquire('token');

-- One microsecond early it still denies, at the time it said it admits.
SET taskq_ratelimit.test_clock = '1700000004.249999';
SELECT :d FROM taskq.acquire('token');
SET taskq_ratelimit.test_clock = '1700000004.25';
SELECT :d FROM taskq.acquire('token');

-- Larger and fractional costs.
SET taskq_ratelimit.test_clock = '1700000011.25';
SELECT :d FROM taskq.acquire('token', 2);
SELECT :d FROM taskq.acquire('token', 1.5);
SELECT :d FROM taskq.acquire('token', cost => 0.25);

-- preview answers what acquire would, and takes nothing; peek shows the state.
SELECT :d FROM taskq.preview('token', 0.75);
SELECT :d FROM taskq.preview('token', 0.75);
SELECT :d FROM taskq.acquire('token', 0.75);
SELECT :d FROM taskq.preview('token', 0.75);
SELECT :d FROM taskq.acquire('token', 0.75);
SELECT * FROM taskq.peek('token') \gx

-- remaining and reset_after are two of its columns.
SELECT taskq.remaining('token'), taskq.reset_after('token');

-- allow answers yes or no, acquire_json with an object.
SET taskq_ratelimit.test_clock = '1700000018.75';
SELECT taskq.allow('token'), taskq.allow('token');
SELECT jsonb_pretty(taskq.acquire_json('token', 0.5));

-- require raises when denied, with the wait in the hint.
SELECT taskq.require('token');
\echo :LAST_ERROR_SQLSTATE
SELECT :d FROM taskq.require('token', 0.25);

-- A reset makes it full.
SELECT taskq.reset('token');
SELECT :d FROM taskq.preview('token', 3);

-- A refund of an amount is clamped at full.
SELECT :d FROM taskq.acquire('token', 2);
SELECT taskq.refund('token', 0.5), taskq.remaining('token');
SELECT taskq.refund('token', 99), taskq.remaining('token');

-- A decision is refunded once. A refund comes after its decision, be it by the microsecond that refills 0.00000025.
CREATE TEMPORARY TABLE kept AS SELECT d FROM taskq.acquire('token', 2) AS d;
SELECT taskq.refund(d) FROM kept;
SELECT taskq.refund(d), taskq.remaining('token') FROM kept;

-- What has refilled meanwhile is not given back twice.
UPDATE kept SET d = taskq.acquire('token', 2);
SET taskq_ratelimit.test_clock = '1700000022.750001';
SELECT taskq.refund(d), taskq.remaining('token') FROM kept;

-- Settling replaces an estimate by the truth, once.
UPDATE kept SET d = taskq.acquire('token', 2);
SET taskq_ratelimit.test_clock = '1700000023.750001';
SELECT taskq.settle(d, 1.5), taskq.remaining('token') FROM kept;
SELECT taskq.settle(d, 1.5), taskq.remaining('token') FROM kept;
UPDATE kept SET d = taskq.acquire('token', 1);
SELECT taskq.settle(d, 1.75), taskq.remaining('token') FROM kept;

-- A charge does not ask; debts are paid before anything is admitted.
SELECT taskq.reset('token');
SELECT :d FROM taskq.charge('token', 5);
SELECT :d FROM taskq.acquire('token');
SELECT is_exhausted, tokens_remaining, retry_after, reset_after FROM taskq.peek('token');

-- reserve takes a place in the queue of time, if it is near enough.
SELECT taskq.reset('token');
SELECT :d, delay FROM taskq.reserve('token', 3);
SELECT :d, delay FROM taskq.reserve('token', 1, '10 seconds');
SELECT :d, delay FROM taskq.reserve('token', 1, '10 seconds');
SELECT :d, delay FROM taskq.reserve('token', 1, '10 seconds');
SELECT :d, delay FROM taskq.reserve('token', 1);

-- While it is paused everything is denied until the end of the pause.
SELECT taskq.reset('token');
SELECT taskq.pause('token', '2023-11-14 22:13:50+00');
SELECT :d FROM taskq.acquire('token');
SELECT :d FROM taskq.preview('token');
SELECT is_exhausted, remaining, retry_after, paused_until FROM taskq.peek('token');
SET taskq_ratelimit.test_clock = '1700000030';
SELECT :d FROM taskq.acquire('token');
SELECT taskq.pause('token', '', 'infinity');
SELECT :d FROM taskq.acquire('token');
SELECT taskq.resume('token', '');
SELECT :d FROM taskq.acquire('token');

-- Without a refill it is a quota: once spent, waiting never helps.
SELECT taskq.register_token_bucket('token quota', 2.5, 0);
SELECT :d FROM taskq.acquire('token quota', 2);
SELECT :d FROM taskq.acquire('token quota');
SELECT is_exhausted, remaining, retry_after, reset_after FROM taskq.peek('token quota');
SELECT taskq.require('token quota');

-- The rate may be given as an amount in a period: ten in an hour is exact.
SELECT taskq.register_token_bucket('token hourly', 10, refill_amount => 10, refill_period => '1 hour');
SELECT :d FROM taskq.acquire('token hourly', 10);
SELECT :d FROM taskq.acquire('token hourly');

SELECT taskq.drop_rate_limit(name) FROM unnest('{token,token quota,token hourly}'::text[]) AS name;
