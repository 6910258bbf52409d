-- Leases when the clock is set back by more than a second: whoever finds all slots held lets them go on from the new time, for the length
-- they had; so nobody waits longer than one lease. The base is 1700000000 = 22:13:20.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set A '\'aaaaaaaa-0000-4000-8000-000000000000\'::uuid'
\set C '\'cccccccc-0000-4000-8000-000000000000\'::uuid'
\set B '\'bbbbbbbb-0000-4000-8000-000000000000\'::uuid'
CREATE VIEW pg_temp.slots AS SELECT name, slot_index, acquired_at, renewed_at, lease_expires_at, held_by_worker_id = '00000000-0000-0000-0000-000000000000' AS free
FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE fence > 0;
SET taskq_ratelimit.test_clock = '1700003600';
SELECT taskq.register_reservation(name, 1, '30 s') FROM unnest('{taken,renewed,released,jitter,heartbeat,rollback}'::text[]) AS name;
SELECT taskq.register_reservation('shortened', 1, '1 min'), taskq.register_reservation('surplus', 2, '30 s');
SELECT (taskq.acquire_slot(name, NULL, :A)).allowed FROM unnest('{taken,renewed,released,jitter,rollback,shortened,surplus,surplus}'::text[]) AS name;
SELECT allowed FROM taskq.acquire_slot('heartbeat', NULL, :C);
SET taskq_ratelimit.test_clock = '1700003610';
SELECT taskq.renew_slot('taken', 0, :A);

-- An hour back. Looking changes nothing, and shows the end as it will be.
SET taskq_ratelimit.test_clock = '1700000000';
SELECT held, first_expires_at FROM taskq.peek_reservation('taken');
SELECT acquired_at, renewed_at, lease_expires_at FROM pg_temp.slots WHERE name = 'taken';
-- The first denial anchors the lease; the wait that it tells is honest.
SELECT allowed, retry_after FROM taskq.acquire_slot('taken', NULL, :B);
SELECT acquired_at, renewed_at, lease_expires_at FROM pg_temp.slots WHERE name = 'taken';
SET taskq_ratelimit.test_clock = '1700000010';
SELECT allowed, retry_after FROM taskq.acquire_slot('taken', NULL, :B);
SET taskq_ratelimit.test_clock = '1700000029.999999';
SELECT allowed FROM taskq.acquire_slot('taken', NULL, :B);
SET taskq_ratelimit.test_clock = '1700000030';
SELECT allowed, lease_expires_at FROM taskq.acquire_slot('taken', NULL, :B);

-- The holder renews and releases as ever, before and after somebody has anchored its lease.
SET taskq_ratelimit.test_clock = '1700000000';
SELECT taskq.renew_slot('renewed', 0, :A), taskq.release_slot('released', 0, :A);
SELECT allowed, retry_after FROM taskq.acquire_slot('renewed', NULL, :B);
SELECT allowed, lease_expires_at FROM taskq.acquire_slot('released', NULL, :B);
SELECT allowed, retry_after FROM taskq.acquire_slot('heartbeat', NULL, :B);
SET taskq_ratelimit.test_clock = '1700000020';
SELECT name, renewed, lease_expires_at FROM taskq.renew_slots(:C);
SELECT taskq.renew_slot('renewed', 0, :A);

-- A lease that was longer than the present one keeps its length: that much was promised.
SET taskq_ratelimit.test_clock = '1700003620';
SELECT taskq.register_reservation('shortened', 1, '5 s', replace => true);
SELECT allowed, retry_after FROM taskq.acquire_slot('shortened', NULL, :B);
SET taskq_ratelimit.test_clock = '1700000000';
SELECT allowed, retry_after FROM taskq.acquire_slot('shortened', NULL, :B);
SET taskq_ratelimit.test_clock = '1700000059';
SELECT allowed, retry_after FROM taskq.acquire_slot('shortened', NULL, :B);

-- Surplus slots as well: they count until they end.
SET taskq_ratelimit.test_clock = '1700003620';
SELECT taskq.register_reservation('surplus', 1, '30 s', replace => true);
SET taskq_ratelimit.test_clock = '1700000000';
SELECT allowed, retry_after FROM taskq.acquire_slot('surplus', NULL, :B);
SET taskq_ratelimit.test_clock = '1700000030';
SELECT allowed FROM taskq.acquire_slot('surplus', NULL, :B);

-- Up to a second is jitter: nothing is written.
SET taskq_ratelimit.test_clock = '1700003599';
SELECT allowed, retry_after FROM taskq.acquire_slot('jitter', NULL, :B);
SELECT renewed_at, lease_expires_at FROM pg_temp.slots WHERE name = 'jitter';
SET taskq_ratelimit.test_clock = '1700003598.999999';
SELECT allowed, retry_after FROM taskq.acquire_slot('jitter', NULL, :B);
SELECT renewed_at, lease_expires_at FROM pg_temp.slots WHERE name = 'jitter';

-- Anchoring belongs to the transaction; who comes next does it anew.
SET taskq_ratelimit.test_clock = '1700000000';
BEGIN; SELECT allowed, retry_after FROM taskq.acquire_slot('rollback', NULL, :B); ROLLBACK;
SELECT lease_expires_at FROM pg_temp.slots WHERE name = 'rollback';
SET taskq_ratelimit.test_clock = '1700000015';
SELECT allowed, retry_after FROM taskq.acquire_slot('rollback', NULL, :B);

SELECT count(taskq.drop_reservation(name)::text) FROM taskq.reservations;
