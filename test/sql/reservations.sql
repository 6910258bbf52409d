-- Reservations: leased slots, under a frozen clock (B052, B053, B054, B056, B062).
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set SHOW_CONTEXT never
\set A '\'aaaaaaaa-0000-4000-8000-000000000000\'::uuid'
\set B '\'bbbbbbbb-0000-4000-8000-000000000000\'::uuid'
\set C '\'cccccccc-0000-4000-8000-000000000000\'::uuid'
\set job '\'01010101-0000-4000-8000-000000000000\'::uuid'
SET taskq_ratelimit.test_clock = '1700000000';

-- Definitions.
SELECT taskq.register_reservation('gpu', 2, '30 s'), taskq.register_reservation('gpu', 2, '30 s') AS again;
SELECT taskq.register_reservation('gpu', 3, '30 s');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_token_bucket('gpu', 5, 1) AS names_of_limits_are_apart;
SELECT name, version, slots, lease, lease_us, keyed, changed_at FROM taskq.reservations;
SELECT slot_index, fence, acquired_at, lease_expires_at, job_id, held_by_worker_id, surplus, key FROM taskq.reservation_slots ORDER BY 1;

-- A decision, and what it wrote.
SELECT allowed, slot_index IN (0, 1) AS slot, fence > 0 AS fence, lease_expires_at, retry_after, retry_after_seconds, name, key, reason FROM taskq.acquire_slot('gpu', :job, :A);
SELECT acquired_at, lease_expires_at, job_id, held_by_worker_id FROM taskq.reservation_slots WHERE fence > 0;
SELECT * FROM taskq.peek_reservation('gpu');
SET taskq_ratelimit.test_clock = '1700000010';
SELECT allowed FROM taskq.acquire_slot('gpu', :job, :B);
SELECT * FROM taskq.acquire_slot('gpu', :job, :C);
SELECT * FROM taskq.reservation_status;
-- A lease is over at its end, with no clean-up.
SET taskq_ratelimit.test_clock = '1700000029.999999';
SELECT allowed, retry_after FROM taskq.acquire_slot('gpu', :job, :C);
SET taskq_ratelimit.test_clock = '1700000030';
SELECT allowed, lease_expires_at FROM taskq.acquire_slot('gpu', :job, :C);
-- Each lease has a higher fence.
SELECT max(fence) AS before FROM taskq.reservation_slots \gset
SELECT taskq.release_slot('gpu', slot_index, :C) FROM taskq.reservation_slots WHERE held_by_worker_id = :C;
SELECT fence > :before AS higher FROM taskq.acquire_slot('gpu', :job, :C);

-- B052: release after the lease has ended and somebody else has the slot.
SELECT taskq.register_reservation('B052', 1, '30 s');
SET taskq_ratelimit.test_clock = '1700000000';
SELECT slot_index AS slot, fence AS fence_a FROM taskq.acquire_slot('B052', :job, :A) \gset
SET taskq_ratelimit.test_clock = '1700000031';
SELECT allowed, slot_index FROM taskq.acquire_slot('B052', :job, :B);
SET taskq_ratelimit.test_clock = '1700000035';
SELECT taskq.release_slot('B052', :slot, :A) AS by_worker, taskq.release_slot('B052', :slot, fence => :fence_a) AS by_fence;
SET taskq_ratelimit.test_clock = '1700000036';
SELECT allowed, reason, retry_after FROM taskq.acquire_slot('B052', :job, :C);
SELECT held_by_worker_id, lease_expires_at FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = 'B052';

-- B053: three releases of one lease.
SELECT taskq.register_reservation('B053', 2, '30 s');
SELECT slot_index AS slot FROM taskq.acquire_slot('B053', :job, :A) \gset
SELECT taskq.release_slot('B053', :slot, :A);
SELECT taskq.release_slot('B053', :slot, :A);
SELECT taskq.release_slot('B053', :slot, :A);
SELECT free FROM taskq.peek_reservation('B053');
SELECT (taskq.acquire_slot('B053', :job, :A)).allowed FROM generate_series(1, 3);

-- B054: renewing.
SELECT taskq.register_reservation('B054', 1, '20 s');
SET taskq_ratelimit.test_clock = '1700000000';
SELECT allowed, fence FROM taskq.acquire_slot('B054', :job, :A) \gset
SET taskq_ratelimit.test_clock = '1700000019.999';
SELECT taskq.renew_slot('B054', 0, :A);
SET taskq_ratelimit.test_clock = '1700000039.999';
SELECT taskq.renew_slot('B054', 0, :A) AS at_the_end, taskq.renew_slot('B054', 0, fence => :fence) AS by_fence;
SET taskq_ratelimit.test_clock = '1700000041';
SELECT allowed FROM taskq.acquire_slot('B054', :job, :B);
SET taskq_ratelimit.test_clock = '1700000045';
SELECT taskq.renew_slot('B054', 0, :A) AS lost, taskq.renew_slot('B054', 0, :B, fence => :fence) AS other_fence, taskq.renew_slot('B054', 0, :A, fence => :fence + 1) AS other_worker;
SELECT held_by_worker_id, lease_expires_at FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = 'B054';
-- Nobody took it: lost all the same.
SET taskq_ratelimit.test_clock = '1700000070';
SELECT taskq.renew_slot('B054', 0, :B) AS lost;

-- One worker that comes back after its own lease has ended does not free its successor's (a fence tells them apart).
SELECT allowed, fence AS second FROM taskq.acquire_slot('B054', :job, :B) \gset
SELECT taskq.release_slot('B054', 0, :B, fence => :fence) AS zombie, taskq.release_slot('B054', 0, :B, fence => :second) AS holder, taskq.release_slot('B054', 7, :B) AS no_such_slot;

-- B056: a smaller number while slots are held.
SELECT taskq.register_reservation('B056', 5, '1 hour');
SET taskq_ratelimit.test_clock = '1700000000';
CREATE TEMPORARY TABLE held AS SELECT (d).* FROM (SELECT taskq.acquire_slot('B056', :job, :A) AS d FROM generate_series(1, 5) OFFSET 0) AS s;
SELECT taskq.release_slot('B056', 4, fence => fence) FROM held WHERE slot_index = 4;
SELECT taskq.register_reservation('B056', 2, '1 hour', replace => true);
SELECT slot_index, surplus FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = 'B056' ORDER BY 1;
SELECT * FROM taskq.sync_slots('{B056}');
SELECT slots, held, free FROM taskq.peek_reservation('B056');
SELECT allowed, reason, retry_after FROM taskq.acquire_slot('B056', :job, :B);
SELECT taskq.release_slot('B056', 3, :A);
SELECT allowed FROM taskq.acquire_slot('B056', :job, :B);
SELECT slot_index, surplus FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = 'B056' ORDER BY 1;
-- While surplus slots are held, a freed slot of the rest is not handed out, either: three are held, then two.
SELECT taskq.release_slot('B056', 0, :A);
SELECT allowed, retry_after FROM taskq.acquire_slot('B056', :job, :B);
SELECT taskq.release_slot('B056', 2, :A);
SELECT allowed, slot_index FROM taskq.acquire_slot('B056', :job, :B);
SELECT allowed FROM taskq.acquire_slot('B056', :job, :B);
SELECT slot_index, surplus FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = 'B056' ORDER BY 1;
-- A surplus slot whose holder has died is deleted by whoever finds it.
SELECT taskq.register_reservation('B056', 1, '1 hour', replace => true);
SELECT taskq.renew_slot('B056', 0, :B);
SET taskq_ratelimit.test_clock = '1700003600';
SELECT allowed FROM taskq.acquire_slot('B056', :job, :C);
SELECT slot_index, held_by_worker_id, surplus FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = 'B056' ORDER BY 1;
-- Growing 1 to 5 gives exactly 5; a smaller number taken back in time keeps what is held.
SELECT taskq.register_reservation('B056', 5, '1 hour', replace => true);
SELECT slots, held, free FROM taskq.peek_reservation('B056');
SELECT count(*) FILTER (WHERE allowed), count(*) FILTER (WHERE NOT allowed) AS denied FROM (SELECT (taskq.acquire_slot('B056', :job, :C)).allowed FROM generate_series(1, 6)) AS s;
SELECT taskq.register_reservation('B056', 3, '1 hour', replace => true), taskq.register_reservation('B056', 5, '1 hour', replace => true);
SELECT count(*), bool_or(surplus) FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = 'B056';

-- B062: ROLLBACK frees the slot; so does ROLLBACK TO.
SELECT taskq.register_reservation('B062', 1, '1 hour');
BEGIN; SELECT allowed FROM taskq.acquire_slot('B062', :job, :A); ROLLBACK;
BEGIN; SAVEPOINT s; SELECT allowed FROM taskq.acquire_slot('B062', :job, :A); ROLLBACK TO s; SELECT allowed FROM taskq.acquire_slot('B062', :job, :B); COMMIT;
BEGIN; SELECT taskq.release_slot('B062', 0, :B); ROLLBACK;
SELECT allowed FROM taskq.acquire_slot('B062', :job, :C);
-- Several in one command.
SELECT taskq.release_slot('B062', 0, :B), (taskq.acquire_slot('B062', :job, :C)).allowed, (taskq.acquire_slot('B062', :job, :C)).allowed AS second;

-- Keys: so many slots each, made on use. Two different (name, key) pairs never meet.
SELECT taskq.register_reservation('tenant', 2, '1 min', keyed => true), taskq.register_reservation('tenant:a', 2, '1 min', keyed => true);
SELECT count(*) FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE keyed;
SELECT (taskq.acquire_slot('tenant', :job, :A, 'a:b')).allowed FROM generate_series(1, 3);
SELECT (taskq.acquire_slot('tenant:a', :job, :A, 'b')).allowed;
SELECT (taskq.acquire_slot('tenant', :job, :A, repeat('long ', 200))).allowed;
SELECT taskq.release_slot('tenant', 0, :A, repeat('long ', 200)) OR taskq.release_slot('tenant', 1, :A, repeat('long ', 200)) AS released;
SELECT left(key, 8) AS key, slots, held, free FROM taskq.reservation_status WHERE name LIKE 'tenant%';
SELECT * FROM taskq.peek_reservation('tenant', 'never used');

-- All leases of a worker, each with the length of its own reservation; lost ones are reported.
SELECT taskq.register_reservation('short', 1, '10 s'), taskq.register_reservation('long', 1, '1 day');
SET taskq_ratelimit.test_clock = '1800000000';
SELECT allowed FROM taskq.acquire_slot('short', :job, :C);
SELECT allowed FROM taskq.acquire_slot('long', :job, :C);
SELECT allowed FROM taskq.acquire_slot('tenant', :job, :C, 't');
SET taskq_ratelimit.test_clock = '1800000020';
SELECT name, key, fence IS NOT NULL AS fence, renewed, lease_expires_at FROM taskq.renew_slots(:C) WHERE name IN ('short', 'long', 'tenant');
SELECT count(*) FROM taskq.renew_slots('dddddddd-0000-4000-8000-000000000000');

-- Without a worker the fence is the only handle.
SELECT slot_index AS slot, fence FROM taskq.acquire_slot('B053', NULL, NULL) \gset
SELECT taskq.release_slot('B053', :slot, '00000000-0000-0000-0000-000000000000');
SELECT taskq.release_slot('B053', :slot, fence => :fence);

-- From slots without keys to keys: who holds one keeps it to its end.
SELECT taskq.register_reservation('turns', 1, '1 min');
SELECT slot_index AS slot FROM taskq.acquire_slot('turns', :job, :A) \gset
SELECT taskq.register_reservation('turns', 1, '1 min', keyed => true, replace => true);
SELECT allowed FROM taskq.acquire_slot('turns', :job, :B, 'k');
SELECT * FROM taskq.reservation_status WHERE name = 'turns';
SELECT taskq.release_slot('turns', :slot, :A);
SELECT key, held FROM taskq.reservation_status WHERE name = 'turns';

-- Slots whose rows are not there (a restored dump) are made on use, and by sync_slots.
DELETE FROM taskq.reservation_slots;
SELECT slots, held, free FROM taskq.peek_reservation('gpu');
SELECT count(*) FILTER (WHERE allowed) FROM (SELECT (taskq.acquire_slot('gpu', :job, :A)).allowed FROM generate_series(1, 3)) AS s;
SELECT * FROM taskq.sync_slots();
SELECT * FROM taskq.sync_slots('{}');

-- Many slots.
SELECT taskq.register_reservation('many', 1000, '1 h');
SELECT count(*) FILTER (WHERE (d).allowed), count(DISTINCT (d).slot_index), count(*) FILTER (WHERE NOT (d).allowed) AS denied FROM (SELECT taskq.acquire_slot('many', :job, :A) AS d FROM generate_series(1, 1001) OFFSET 0) AS s;
SELECT count(*) FILTER (WHERE renewed) FROM taskq.renew_slots(:A) WHERE name = 'many';

-- Isolation levels: the newest committed state decides.
BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) > 0 FROM taskq.reservations; SELECT allowed FROM taskq.acquire_slot('B053', :job, :A); COMMIT;

-- Errors.
SELECT taskq.register_reservation('x', 0, '1 s');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_reservation('x', 1000001, '1 s');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_reservation('x', 1, '0 s');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_reservation('x', 1, '1 month');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_reservation('x', 1, '200 years'::interval - '2400 months'::interval + '100000 days');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_reservation('x', NULL, '1 s');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_reservation('', 1, '1 s');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_reservation('taskq:x', 1, '1 s');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_reservation('x', 1, '1 s', NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.acquire_slot('nobody', :job, :A);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.acquire_slot('gpu', :job, :A, 'k');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.acquire_slot('tenant', :job, :A);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.acquire_slot('tenant', :job, :A, NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.release_slot('gpu', 0);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.release_slot('gpu', NULL, :A);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.release_slot('nobody', 0, :A);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.renew_slot('gpu', 0);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.renew_slots(NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.sync_slots('{gpu,nobody}');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.sync_slots('{NULL}');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.peek_reservation('nobody');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.drop_reservation('nobody');
\echo :LAST_ERROR_SQLSTATE

-- A cap on keys is a number above 0, for what has keys.
SELECT taskq.register_reservation('x', 1, '1 s', keyed => true, max_keys => 0);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_reservation('x', 1, '1 s', max_keys => 5);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_reservation('capped', 1, '1 s', keyed => true, max_keys => 5);
SELECT taskq.register_reservation('capped', 1, '1 s', keyed => true, max_keys => 6);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_reservation('capped', 1, '1 s', keyed => true, max_keys => 6, replace => true);
SELECT version, max_keys FROM taskq.reservations WHERE name = 'capped';
SELECT taskq.drop_reservation('capped');

-- Read-only transactions may look.
BEGIN READ ONLY;
SELECT held FROM taskq.peek_reservation('many');
SELECT count(*) > 0 FROM taskq.reservation_status;
SELECT taskq.acquire_slot('gpu', :job, :A);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN READ ONLY; SELECT taskq.release_slot('gpu', 0, :A); ROLLBACK;
BEGIN READ ONLY; SELECT taskq.renew_slot('gpu', 0, :A); ROLLBACK;
BEGIN READ ONLY; SELECT taskq.renew_slots(:A); ROLLBACK;
BEGIN READ ONLY; SELECT taskq.register_reservation('x', 1, '1 s'); ROLLBACK;
BEGIN READ ONLY; SELECT taskq.drop_reservation('gpu'); ROLLBACK;
BEGIN READ ONLY; SELECT taskq.sync_slots(); ROLLBACK;

-- Dropping forgets slots, held or not.
SELECT count(*) FROM (SELECT taskq.drop_reservation(name)::text FROM taskq.reservations ORDER BY name) AS s;
SELECT count(*) FROM taskq.reservation_slots;
SELECT taskq.acquire_slot('gpu', :job, :A);
SELECT taskq.drop_rate_limit('gpu');
