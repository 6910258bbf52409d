-- Caps on the jobs of queues: in force at once, however the row is written (B056 for a cap).
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set SHOW_CONTEXT never
SET taskq_ratelimit.test_clock = '1700000000';
CREATE FUNCTION pg_temp.start(actor text) RETURNS TABLE (allowed boolean, refused_by text, retry_after interval, handle jsonb) LANGUAGE sql AS
    $$SELECT allowed, refused_by, retry_after, handle FROM taskq.acquire_for_actor(actor, '01010101-0000-4000-8000-000000000000', 'aaaaaaaa-0000-4000-8000-000000000000')$$;
SELECT taskq.register_actor('mail', 'external-api');

-- No row: no cap.
SELECT allowed, refused_by, retry_after, handle FROM pg_temp.start('mail');

-- A cap is a reservation of a reserved name, which nobody else can register or drop.
SELECT taskq.set_queue_max_concurrent('external-api', 2), taskq.set_queue_max_concurrent('external-api', 2) AS again;
SELECT name, max_concurrent, lease, updated_at FROM taskq.queues;
SELECT name, slots, lease FROM taskq.reservations;
SELECT * FROM taskq.peek_reservation('taskq:global:queue:external-api');
SELECT taskq.register_reservation('taskq:global:queue:external-api', 5, '1 minute', replace => true);
SELECT taskq.drop_reservation('taskq:global:queue:external-api');
SELECT taskq.register_token_bucket('taskq:mine', 1, 1);
SELECT handle AS first FROM pg_temp.start('mail') \gset
SELECT allowed, handle -> 'slots' -> 0 ->> 'name' AS name, handle -> 'rate_limits' AS rate_limits FROM pg_temp.start('mail');
SELECT allowed, refused_by, retry_after, handle FROM pg_temp.start('mail');

-- It counts all actors of the queue.
SELECT taskq.register_actor('sms', 'external-api'), taskq.register_actor('other', 'elsewhere');
SELECT allowed, refused_by FROM pg_temp.start('sms');
SELECT allowed FROM pg_temp.start('other');

-- A larger number is in force at once, and so is a smaller one: what is held above it stays, and counts.
SELECT taskq.set_queue_max_concurrent('external-api', 4);
SELECT handle AS third FROM pg_temp.start('mail') \gset
SELECT handle AS fourth FROM pg_temp.start('sms') \gset
SELECT allowed FROM pg_temp.start('mail');
SELECT taskq.set_queue_max_concurrent('external-api', 1);
SELECT slots, held, free FROM taskq.peek_reservation('taskq:global:queue:external-api');
SELECT * FROM taskq.release_for_actor(:'first');
SELECT allowed FROM pg_temp.start('mail');
SELECT * FROM taskq.release_for_actor(:'third');
SELECT * FROM taskq.release_for_actor(:'fourth');
SELECT slots, held, free FROM taskq.peek_reservation('taskq:global:queue:external-api');
SELECT allowed FROM pg_temp.start('mail');

-- The lease: one minute, or what is said; renewing keeps it; it stays when only the number changes.
SET taskq_ratelimit.test_clock = '1700000059';
SELECT count(*) FILTER (WHERE renewed), min(lease_expires_at) FROM taskq.renew_slots('aaaaaaaa-0000-4000-8000-000000000000');
SET taskq_ratelimit.test_clock = '1700000118.999999';
SELECT allowed, retry_after FROM pg_temp.start('mail');
SET taskq_ratelimit.test_clock = '1700000119';
SELECT allowed FROM pg_temp.start('mail');
SELECT taskq.set_queue_max_concurrent('external-api', 1, '5 minutes'), taskq.set_queue_max_concurrent('external-api', 2);
SELECT max_concurrent, lease FROM taskq.queues;
SELECT (SELECT lease FROM taskq.peek_reservation('taskq:global:queue:external-api'));

-- Lifting it forgets its leases: a release is a no-op that says so.
SELECT handle AS held FROM pg_temp.start('mail') \gset
SELECT taskq.set_queue_max_concurrent('external-api', NULL), taskq.set_queue_max_concurrent('external-api', NULL) AS again;
SELECT max_concurrent, lease FROM taskq.queues;
SELECT * FROM taskq.peek_reservation('taskq:global:queue:external-api');
SELECT allowed, handle FROM pg_temp.start('mail');
SELECT * FROM taskq.release_for_actor(:'held');
SELECT count(*) FROM taskq.renew_slots('aaaaaaaa-0000-4000-8000-000000000000');
-- Set again it counts from nothing, and an old handle does not hit a new lease.
SELECT taskq.set_queue_max_concurrent('external-api', 2);
SELECT count(*) FILTER (WHERE s.allowed) FROM generate_series(1, 3) AS i CROSS JOIN LATERAL (SELECT * FROM pg_temp.start(left('mail', 4 + 0 * i))) AS s;
SELECT * FROM taskq.release_for_actor(:'held');
SELECT held FROM taskq.peek_reservation('taskq:global:queue:external-api');

-- The table can be written directly, as the row of a queue always could be.
INSERT INTO "taskq".queues (name, max_concurrent) VALUES ('images', 20)
ON CONFLICT (name) DO UPDATE SET max_concurrent = EXCLUDED.max_concurrent, updated_at = clock_timestamp();
INSERT INTO "taskq".queues (name, max_concurrent) VALUES ('images', 1)
ON CONFLICT (name) DO UPDATE SET max_concurrent = EXCLUDED.max_concurrent, updated_at = clock_timestamp();
SELECT slots, lease FROM taskq.peek_reservation('taskq:global:queue:images');
UPDATE taskq.queues SET name = 'pictures', lease = '10 s' WHERE name = 'images';
SELECT name, slots, lease FROM taskq.reservations ORDER BY name;
INSERT INTO taskq.queues (name) VALUES ('free');
DELETE FROM taskq.queues WHERE name = 'pictures';
SELECT name, slots, lease FROM taskq.reservations ORDER BY name;
BEGIN;
UPDATE taskq.queues SET max_concurrent = 7;
SELECT name, slots FROM taskq.reservations ORDER BY name;
ROLLBACK;
SELECT name, slots FROM taskq.reservations ORDER BY name;
TRUNCATE taskq.queues;
SELECT name, slots FROM taskq.reservations ORDER BY name;
-- Replication or not.
SET session_replication_role = replica;
INSERT INTO taskq.queues (name, max_concurrent) VALUES ('replicated', 3);
RESET session_replication_role;
SELECT name, slots FROM taskq.reservations ORDER BY name;

-- Errors, each of which changes nothing.
SELECT taskq.set_queue_max_concurrent('replicated', 0);
SELECT taskq.set_queue_max_concurrent('replicated', 1000001);
SELECT taskq.set_queue_max_concurrent('replicated', 2, '0');
SELECT taskq.set_queue_max_concurrent('replicated', 2, '1 month');
SELECT taskq.set_queue_max_concurrent(NULL, 2);
SELECT taskq.set_queue_max_concurrent('', 2);
SELECT taskq.set_queue_max_concurrent('taskq:x', 2);
SELECT taskq.set_queue_max_concurrent(repeat('x', 237), 2);
SELECT taskq.set_queue_max_concurrent(repeat('x', 236), 2);
INSERT INTO taskq.queues (name, max_concurrent, updated_at) VALUES ('zero', 0, 'epoch');
INSERT INTO taskq.queues (name, max_concurrent) VALUES (E'a\tb', 1);
INSERT INTO taskq.queues (name, max_concurrent, lease) VALUES ('never', 1, '-1 s');
BEGIN READ ONLY;
SELECT taskq.set_queue_max_concurrent('replicated', 2);
ROLLBACK;
SELECT left(name, 10) AS name, max_concurrent FROM taskq.queues ORDER BY name;
DELETE FROM taskq.queues;
SELECT count(taskq.drop_actor(actor)::text) FROM taskq.actors;
