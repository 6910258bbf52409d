-- A leaky bucket that holds 3 and leaks 1 in 4 seconds: it admits what a token bucket of the same figures admits.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set d 'allowed, remaining, retry_after, reset_after, reason'
SET taskq_ratelimit.test_clock = '1700000000.25';
SELECT taskq.register_leaky_bucket('leaky', 3, leak_per_second => 0.25);

-- It takes three, then overflows.
SELECT :d FROM taskq.acquire('leaky', 2);
SELECT :d FROM taskq.acquire('leaky');
SELECT :d FROM taskq.acquire('leaky');

-- One microsecond early it is still full, at the time it said there is room.
SET taskq_ratelimit.test_clock = '1700000004.249999';
SELECT :d FROM taskq.acquire('leaky');
SET taskq_ratelimit.test_clock = '1700000004.25';
SELECT :d FROM taskq.preview('leaky');
SELECT :d FROM taskq.acquire('leaky');
SELECT * FROM taskq.peek('leaky') \gx

-- A reset empties it, a refund of an amount is clamped there.
SELECT taskq.reset('leaky');
SELECT :d FROM taskq.acquire('leaky', 1.5);
SELECT taskq.refund('leaky', 99), taskq.remaining('leaky');

-- A decision is refunded once, and settled once.
CREATE TEMPORARY TABLE kept AS SELECT d FROM taskq.acquire('leaky', 2) AS d;
SET taskq_ratelimit.test_clock = '1700000006.25';
SELECT taskq.refund(d), taskq.remaining('leaky') FROM kept;
SELECT taskq.refund(d), taskq.remaining('leaky') FROM kept;
UPDATE kept SET d = taskq.acquire('leaky', 2);
SET taskq_ratelimit.test_clock = '1700000008.25';
SELECT taskq.settle(d, 2.25), taskq.remaining('leaky') FROM kept;
SELECT taskq.settle(d, 2.25), taskq.remaining('leaky') FROM kept;

-- A charge may overfill it; what leaks first is the surplus.
SELECT :d FROM taskq.charge('leaky', 4);
SELECT :d FROM taskq.acquire('leaky');

-- reserve gives everybody an instant of their own.
SELECT taskq.reset('leaky');
SELECT :d, delay FROM taskq.reserve('leaky', 3, '5 seconds');
SELECT :d, delay FROM taskq.reserve('leaky', 1, '5 seconds');
SELECT :d, delay FROM taskq.reserve('leaky', 1, '5 seconds');

-- Pause and resume.
SELECT taskq.pause('leaky', '2023-11-14 22:13:30+00');
SELECT :d FROM taskq.acquire('leaky');
SELECT taskq.resume('leaky');
SELECT :d FROM taskq.acquire('leaky');

-- The leak may be given as an amount in a period.
SELECT taskq.register_leaky_bucket('leaky minute', 2, leak_amount => 2, leak_period => '1 minute');
SELECT :d FROM taskq.acquire('leaky minute', 2);
SELECT :d FROM taskq.acquire('leaky minute', 2);

SELECT taskq.drop_rate_limit('leaky');
SELECT taskq.drop_rate_limit('leaky minute');
