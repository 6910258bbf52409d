-- A sliding window of style counter: 10 in 20 seconds, estimated from this window and the one before. It begins at registration.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set d 'allowed, remaining, retry_after, reset_after, reason'
SET taskq_ratelimit.test_clock = '1700000000.25';
SELECT taskq.register_sliding_window('counter', 10, '20 seconds', style => 'counter');
SELECT :d FROM taskq.acquire('counter', 8);
SELECT :d FROM taskq.acquire('counter', 2);

-- The window is full, and it still weighs fully at its end: the wait goes on until it has decayed by one.
SELECT :d FROM taskq.acquire('counter');
SET taskq_ratelimit.test_clock = '1700000020.25';
SELECT :d FROM taskq.acquire('counter');
SET taskq_ratelimit.test_clock = '1700000022.249999';
SELECT :d FROM taskq.acquire('counter');
SET taskq_ratelimit.test_clock = '1700000022.25';
SELECT :d FROM taskq.preview('counter');
SELECT :d FROM taskq.acquire('counter');

-- Halfway through, half of the window before counts.
SET taskq_ratelimit.test_clock = '1700000030.25';
SELECT * FROM taskq.peek('counter') \gx
SELECT :d FROM taskq.acquire('counter', 4);
SELECT :d FROM taskq.acquire('counter', 5);

-- Refund of an amount: from this window first, then from the one before.
SELECT taskq.refund('counter', 7), taskq.remaining('counter');

-- Refund of a decision: once; of the window before while it counts; then nothing.
CREATE TEMPORARY TABLE kept AS SELECT d FROM taskq.acquire('counter', 3) AS d;
SET taskq_ratelimit.test_clock = '1700000031.25';
SELECT taskq.refund(d) FROM kept;
SELECT taskq.refund(d) FROM kept;
UPDATE kept SET d = taskq.acquire('counter', 3);
SET taskq_ratelimit.test_clock = '1700000041.25';
SELECT taskq.refund(d) FROM kept;
UPDATE kept SET d = taskq.acquire('counter', 3);
SET taskq_ratelimit.test_clock = '1700000080.25';
SELECT taskq.refund(d), taskq.remaining('counter') FROM kept;

-- Settle, once.
UPDATE kept SET d = taskq.acquire('counter', 3);
SELECT taskq.settle(d, 5), taskq.remaining('counter') FROM kept;
SELECT taskq.settle(d, 5), taskq.remaining('counter') FROM kept;

-- A charge does not ask; the count stops at the limit.
SELECT :d FROM taskq.charge('counter', 15);
SELECT :d FROM taskq.acquire('counter');

-- A reset starts the windows anew.
SET taskq_ratelimit.test_clock = '1700000085.25';
SELECT taskq.reset('counter');
SELECT :d FROM taskq.acquire('counter', 10);
SELECT :d FROM taskq.acquire('counter', 10);

-- Pause and resume.
SELECT taskq.pause('counter', '2023-11-14 22:15:00+00');
SELECT :d FROM taskq.acquire('counter');
SELECT taskq.resume('counter');
SELECT :d FROM taskq.acquire('counter');

-- With an anchor the windows begin there, whenever the limit is registered: this one 14 s from its end.
SELECT taskq.register_sliding_window('counter anchored', 10, '20 seconds', style => 'counter', anchor => '2023-11-14 22:14:19.25+00');
SELECT :d FROM taskq.acquire('counter anchored', 10);
SELECT taskq.drop_rate_limit('counter');
SELECT taskq.drop_rate_limit('counter anchored');
