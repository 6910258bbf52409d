-- What sweep and evict_idle delete, and what they never do.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
SET taskq_ratelimit.test_clock = '1700000000';
SELECT taskq.register_token_bucket('tb', 5, 1, keyed => true), taskq.register_token_bucket('quota', 5, 0, keyed => true), taskq.register_sliding_window('log', 5, '1 min', keyed => true),
       taskq.register_sliding_window('counter', 5, '1 min', 'counter', keyed => true), taskq.register_fixed_window('fw', 5, '1 day', keyed => true), taskq.register_token_bucket('single', 5, 1);
PREPARE rows AS SELECT name, key, bucket_id <> 0 AS has_entries FROM taskq.rate_limit_buckets JOIN taskq.rate_limits USING (limit_id) ORDER BY 1, 2;

-- One spent key each, a paused one, and a quota that was given back.
SELECT name, taskq.allow(name, 5, 'spent') FROM unnest('{tb,quota,log,counter,fw}'::text[]) AS name;
SELECT taskq.allow('quota', 1, 'refunded'), taskq.refund('quota', 1, 'refunded');
SELECT taskq.pause('tb', 'paused', 'infinity');
EXECUTE rows;

-- At once only what is full goes: the refunded quota. evict_idle(0) is for what is full now.
SELECT taskq.evict_idle('0');
EXECUTE rows;

-- After 59 seconds nothing has been idle for a minute.
SET taskq_ratelimit.test_clock = '1700000059';
SELECT taskq.evict_idle('1 minute');

-- After a minute exactly, the bucket and the log are full and idle. The counter's last window still counts, the day is not over, and a spent quota stays.
SET taskq_ratelimit.test_clock = '1700000060';
SELECT taskq.evict_idle('1 minute');
EXECUTE rows;
SET taskq_ratelimit.test_clock = '1700000120';
SELECT taskq.evict_idle('1 minute');
EXECUTE rows;

-- A year later the spent quota, the pause and the limit without keys are still there.
SET taskq_ratelimit.test_clock = '1731536000';
SELECT taskq.evict_idle('1 minute');
EXECUTE rows;
SELECT allowed, remaining, reason FROM taskq.acquire('quota', 1, 'spent');
SELECT allowed, remaining, reason FROM taskq.acquire('tb', 1, 'paused');
SELECT taskq.resume('tb', 'paused'), taskq.evict_idle('1 minute');
SELECT taskq.evict_idle('1 minute');

-- A throttled key cannot be evicted into a fresh budget.
SELECT taskq.allow('tb', 5, 'busy'), taskq.evict_idle('0'), taskq.allow('tb', 1, 'busy');

-- A sweep deletes entries that have left, the entries of evicted logs, refunds that can give nothing back any more, and former versions.
SELECT count(*) FROM taskq.rate_limit_window_entries;
SELECT taskq.allow('log', 1, 'a') FROM generate_series(1, 5);
SELECT taskq.refund(d) FROM taskq.acquire('counter', 3, 'a') AS d;
SELECT taskq.register_fixed_window('fw', 6, '1 day', keyed => true, replace => true);
SELECT * FROM taskq.sweep();
SET taskq_ratelimit.test_clock = '1731536061';
SELECT * FROM taskq.sweep();
SET taskq_ratelimit.test_clock = '1731540000';
SELECT * FROM taskq.sweep();
SELECT * FROM taskq.sweep();
EXECUTE rows;
SELECT (SELECT count(*) FROM taskq.rate_limit_window_entries) AS entries, (SELECT count(*) FROM taskq.rate_limit_refunds) AS refunds, (SELECT count(*) FROM taskq.rate_limit_versions) AS versions;

-- A version is kept as long as a bucket was written under it.
SELECT taskq.allow('quota', 2, 'old'), taskq.register_token_bucket('quota', 9, 0, keyed => true, replace => true);
SELECT versions FROM taskq.sweep();
SELECT taskq.allow('quota', 1, 'old'), taskq.remaining('quota', 'old'), taskq.allow('quota', 1, 'spent');
SELECT versions FROM taskq.sweep();

-- Entries of a large log go in one sweep, and what counts stays.
SELECT taskq.register_sliding_window('large', 3000, '1 min');
SELECT count(*) FROM generate_series(1, 3000) WHERE taskq.allow('large');
SET taskq_ratelimit.test_clock = '1731540060';
SELECT taskq.allow('large');
SELECT entries FROM taskq.sweep();
SELECT count(*), min(upto) FROM taskq.rate_limit_window_entries;
SELECT remaining FROM taskq.peek('large');
SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;

-- Slots of a keyed reservation go once its key was not used for an hour and none of its leases lives. Those of a reservation without keys stay.
SET taskq_ratelimit.test_clock = '1800000000';
SELECT taskq.register_reservation('key', 3, '2 hours', keyed => true), taskq.register_reservation('one', 2, '1 min');
SELECT key, count(*) FILTER (WHERE (taskq.acquire_slot('key', NULL, NULL, key)).allowed) FROM unnest('{released,ended,partly}'::text[]) AS key GROUP BY key ORDER BY key;
SELECT taskq.release_slot('key', slot_index, fence => fence, key => key) FROM taskq.reservation_slots WHERE key = 'released';
SELECT slots FROM taskq.sweep();
SET taskq_ratelimit.test_clock = '1800003599.999999';
SELECT slots FROM taskq.sweep();
SET taskq_ratelimit.test_clock = '1800003600';
SELECT allowed FROM taskq.acquire_slot('key', NULL, NULL, 'partly');
SELECT slots FROM taskq.sweep();
SELECT slots FROM taskq.sweep();
SELECT name, key, count(*) FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) GROUP BY 1, 2 ORDER BY 1, 2;
-- Two hours after it was taken the first lease ends, an hour later it is idle: but the second lives.
SET taskq_ratelimit.test_clock = '1800010800';
SELECT slots FROM taskq.sweep();
SELECT name, key, count(*) FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) GROUP BY 1, 2 ORDER BY 1, 2;
-- evict_idle counts them, too, with a shorter time.
SELECT taskq.evict_idle('1 minute');
SET taskq_ratelimit.test_clock = '1800010860';
SELECT taskq.evict_idle('1 minute');
SELECT held, free FROM taskq.peek_reservation('key', 'partly');
SELECT allowed, slot_index BETWEEN 0 AND 2 AS in_range FROM taskq.acquire_slot('key', NULL, NULL, 'partly');

-- Surplus slots go as soon as their leases have ended.
SELECT (taskq.acquire_slot('one', NULL, NULL)).allowed FROM generate_series(1, 2);
SELECT taskq.register_reservation('one', 1, '1 min', replace => true);
SELECT slots FROM taskq.sweep();
SET taskq_ratelimit.test_clock = '1800010920';
SELECT slots FROM taskq.sweep();
SELECT name, slot_index, surplus FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = 'one';

-- Rows without a reservation, which only a superuser's hand can make.
INSERT INTO taskq.reservation_slots (reservation_id, slot_index, key, lease_expires_at) VALUES (2147483647, 0, '', 'infinity');
SELECT slots FROM taskq.sweep();
SELECT slots FROM taskq.sweep();
SELECT count(taskq.drop_reservation(name)::text) FROM taskq.reservations;
