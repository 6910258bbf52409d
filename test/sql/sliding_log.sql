-- A sliding window of style log: never more than 3 in any 10 seconds.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set d 'allowed, remaining, retry_after, reset_after, reason'
SET taskq_ratelimit.test_clock = '1700000000.25';
SELECT taskq.register_sliding_window('log', 3, '10 seconds');

-- Each admitted call has a request_id; a denied one has none and leaves no entry.
SELECT :d, request_id IS NOT NULL AS has_id FROM taskq.acquire('log');
SET taskq_ratelimit.test_clock = '1700000002.25';
SELECT :d, request_id IS NOT NULL AS has_id FROM taskq.acquire('log', 2);
SELECT :d, request_id IS NOT NULL AS has_id FROM taskq.acquire('log');
SELECT upto, cost, at FROM taskq.rate_limit_window_entries ORDER BY upto;

-- An entry exactly one window old no longer counts: one microsecond early denied, then admitted.
SET taskq_ratelimit.test_clock = '1700000010.249999';
SELECT :d FROM taskq.acquire('log');
SET taskq_ratelimit.test_clock = '1700000010.25';
SELECT :d FROM taskq.preview('log');
SELECT :d FROM taskq.acquire('log');

-- The wait is for the entry that has to leave: for 2 that of 2.25, for 3 the newest.
SELECT retry_after FROM taskq.acquire('log', 2);
SELECT retry_after FROM taskq.acquire('log', 3);
SELECT * FROM taskq.peek('log') \gx

-- A refund of an amount drops the newest units: of the entry of 2.25 one is left.
SELECT taskq.refund('log', 2), taskq.remaining('log');
SELECT upto, cost, at FROM taskq.rate_limit_window_entries ORDER BY upto;
SELECT taskq.refund('log', 99), taskq.remaining('log');

-- A decision loses exactly its own entry, once.
CREATE TEMPORARY TABLE kept AS SELECT d FROM taskq.acquire('log') AS d;
SET taskq_ratelimit.test_clock = '1700000011.25';
SELECT :d FROM taskq.acquire('log', 2);
SELECT taskq.refund(d), taskq.remaining('log') FROM kept;
SELECT taskq.refund(d), taskq.remaining('log') FROM kept;
SELECT retry_after FROM taskq.acquire('log', 3);

-- Two decisions of one instant are refunded each for itself.
UPDATE kept SET d = taskq.acquire('log');
SELECT taskq.refund(d) FROM kept;
UPDATE kept SET d = taskq.acquire('log');
SELECT taskq.refund(d) FROM kept;

-- An entry that has left gives nothing back.
UPDATE kept SET d = taskq.acquire('log');
SET taskq_ratelimit.test_clock = '1700000022.25';
SELECT taskq.refund(d), taskq.remaining('log') FROM kept;

-- Settling changes the size of the entry, once.
UPDATE kept SET d = taskq.acquire('log', 3);
SELECT taskq.settle(d, 1), taskq.remaining('log') FROM kept;
SELECT taskq.settle(d, 1), taskq.remaining('log') FROM kept;
UPDATE kept SET d = taskq.acquire('log', 1);
SELECT taskq.settle(d, 2), taskq.remaining('log') FROM kept;

-- A charge goes beyond the limit; what is left does not go below nothing.
SELECT :d FROM taskq.charge('log', 4);
SELECT :d FROM taskq.acquire('log');

-- After a reset it is as good as new. What is left of its entries goes with the next calls, or with a sweep.
SELECT taskq.reset('log');
SELECT cost, at FROM taskq.rate_limit_window_entries ORDER BY upto;
SELECT entries FROM taskq.sweep();
SELECT cost, at FROM taskq.rate_limit_window_entries ORDER BY upto;
SELECT :d FROM taskq.acquire('log', 2);

-- Windows do not reserve ahead.
SELECT taskq.reserve('log');
\echo :LAST_ERROR_SQLSTATE

-- Pause and resume.
SELECT taskq.reset('log');
SELECT taskq.pause('log', '2023-11-14 22:14:00+00');
SELECT :d FROM taskq.acquire('log');
SELECT taskq.resume('log');
SELECT :d FROM taskq.acquire('log');

-- Dropping the limit drops its entries.
SELECT taskq.drop_rate_limit('log');
SELECT count(*) FROM taskq.rate_limit_window_entries;
