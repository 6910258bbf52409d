-- A fixed window: 3 in every 10 seconds, counted from registration.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set d 'allowed, remaining, retry_after, reset_after, reason'
SET taskq_ratelimit.test_clock = '1700000000.25';
SELECT taskq.register_fixed_window('fixed', 3, '10 seconds');
SET taskq_ratelimit.test_clock = '1700000003.25';
SELECT :d FROM taskq.acquire('fixed', 2);
SELECT :d FROM taskq.acquire('fixed', 2);
SELECT :d FROM taskq.acquire('fixed');

-- The end of the window belongs to the next one.
SET taskq_ratelimit.test_clock = '1700000010.249999';
SELECT :d FROM taskq.acquire('fixed');
SET taskq_ratelimit.test_clock = '1700000010.25';
SELECT :d FROM taskq.preview('fixed', 3);
SELECT :d FROM taskq.acquire('fixed', 3);
SELECT * FROM taskq.peek('fixed') \gx

-- Refund of an amount, clamped.
SELECT taskq.refund('fixed', 1), taskq.remaining('fixed');
SELECT taskq.refund('fixed', 99), taskq.remaining('fixed');

-- Refund of a decision: once, and not after its window.
CREATE TEMPORARY TABLE kept AS SELECT d FROM taskq.acquire('fixed', 2) AS d;
SET taskq_ratelimit.test_clock = '1700000020.249999';
SELECT taskq.refund(d), taskq.remaining('fixed') FROM kept;
SELECT taskq.refund(d), taskq.remaining('fixed') FROM kept;
UPDATE kept SET d = taskq.acquire('fixed', 2);
SET taskq_ratelimit.test_clock = '1700000020.25';
SELECT :d FROM taskq.acquire('fixed');
SELECT taskq.refund(d), taskq.remaining('fixed') FROM kept;

-- Settle, once: less, then more.
UPDATE kept SET d = taskq.acquire('fixed', 2);
SELECT taskq.settle(d, 1), taskq.remaining('fixed') FROM kept;
SELECT taskq.settle(d, 1), taskq.remaining('fixed') FROM kept;
UPDATE kept SET d = taskq.acquire('fixed');
SELECT taskq.settle(d, 3), taskq.remaining('fixed') FROM kept;

-- A charge goes beyond the limit, until the end of the window.
SELECT :d FROM taskq.charge('fixed', 5);
SET taskq_ratelimit.test_clock = '1700000030.25';
SELECT :d FROM taskq.acquire('fixed', 3);

-- A reset begins a new window.
SET taskq_ratelimit.test_clock = '1700000034.25';
SELECT taskq.reset('fixed');
SELECT :d FROM taskq.acquire('fixed', 3);

-- Pause and resume.
SELECT taskq.pause('fixed', '2023-11-14 22:14:00+00');
SELECT :d FROM taskq.acquire('fixed');
SELECT taskq.resume('fixed');
SELECT :d FROM taskq.acquire('fixed');

-- With an anchor the windows begin there: every day at six in the evening of Berlin, 24 hours each.
SELECT taskq.register_fixed_window('fixed daily', 1, '1 day', anchor => '2023-01-01 18:00+01');
SELECT :d FROM taskq.acquire('fixed daily');
SET taskq_ratelimit.test_clock = '1700067600';
SELECT :d FROM taskq.acquire('fixed daily');

-- A reset does not move an anchored window.
SET taskq_ratelimit.test_clock = '1700067601';
SELECT taskq.reset('fixed daily');
SELECT :d FROM taskq.acquire('fixed daily');

SELECT taskq.drop_rate_limit('fixed');
SELECT taskq.drop_rate_limit('fixed daily');
