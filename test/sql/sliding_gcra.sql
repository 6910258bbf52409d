-- A sliding window of style gcra: bursts of 4, then one call every 2.5 seconds.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set d 'allowed, remaining, retry_after, reset_after, reason'
SET taskq_ratelimit.test_clock = '1700000000.25';
SELECT taskq.register_sliding_window('gcra', 4, '10 seconds', style => 'gcra');
SELECT :d FROM taskq.acquire('gcra', 3);
SELECT :d FROM taskq.acquire('gcra');
SELECT :d FROM taskq.acquire('gcra');

-- One microsecond early it denies, at the time it said it admits.
SET taskq_ratelimit.test_clock = '1700000002.749999';
SELECT :d FROM taskq.acquire('gcra');
SET taskq_ratelimit.test_clock = '1700000002.75';
SELECT :d FROM taskq.preview('gcra');
SELECT :d FROM taskq.acquire('gcra');

-- It counts whole calls: what is left is rounded down.
SET taskq_ratelimit.test_clock = '1700000007.5';
SELECT :d FROM taskq.acquire('gcra', 2);
SELECT * FROM taskq.peek('gcra') \gx

-- Refunds: an amount, clamped; a decision, once.
SELECT taskq.refund('gcra', 99), taskq.remaining('gcra');
CREATE TEMPORARY TABLE kept AS SELECT d FROM taskq.acquire('gcra', 3) AS d;
SET taskq_ratelimit.test_clock = '1700000007.500001';
SELECT taskq.refund(d) > 2.99 AS refunded, taskq.remaining('gcra') FROM kept;
SELECT taskq.refund(d), taskq.remaining('gcra') FROM kept;

-- Settle, once.
UPDATE kept SET d = taskq.acquire('gcra', 3);
SET taskq_ratelimit.test_clock = '1700000007.500002';
SELECT taskq.settle(d, 1), taskq.remaining('gcra') FROM kept;
SELECT taskq.settle(d, 1), taskq.remaining('gcra') FROM kept;

-- Charge.
SELECT taskq.reset('gcra');
SELECT :d FROM taskq.charge('gcra', 6);
SELECT :d FROM taskq.acquire('gcra');

-- Reserve: each place is one emission after the one before.
SELECT taskq.reset('gcra');
SELECT :d, delay FROM taskq.reserve('gcra', 4);
SELECT :d, delay FROM taskq.reserve('gcra', 1, '1 minute');
SELECT :d, delay FROM taskq.reserve('gcra', 2, '1 minute');
SELECT :d, delay FROM taskq.reserve('gcra', 1, '1 second');

-- Pause and resume.
SELECT taskq.reset('gcra');
SELECT taskq.pause('gcra', 'infinity');
SELECT :d FROM taskq.acquire('gcra');
SELECT taskq.resume('gcra');
SELECT :d FROM taskq.acquire('gcra');
SELECT taskq.drop_rate_limit('gcra');
