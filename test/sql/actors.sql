-- Actors: all that a job needs in one call, keys from its payload, tickets (B050 to B054, B062, B091 for actors).
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set SHOW_CONTEXT never
\set job '\'01010101-0000-4000-8000-000000000000\'::uuid'
\set A '\'aaaaaaaa-0000-4000-8000-000000000000\'::uuid'
\set B '\'bbbbbbbb-0000-4000-8000-000000000000\'::uuid'
SET taskq_ratelimit.test_clock = '1700000000';
SELECT taskq.register_token_bucket('api-global', 100, 10), taskq.register_token_bucket('api-per-tenant', 2, 0.1, keyed => true),
       taskq.register_sliding_window('hourly', 3, '1 hour', keyed => true), taskq.register_token_bucket('quota', 1, 0),
       taskq.register_reservation('slots', 2, '30 s'), taskq.register_reservation('session-slots', 1, '5 minutes', keyed => true);

-- Names and keyed references may be mixed in one list.
SELECT taskq.register_actor('call_external_api', queue => 'io', rate_limits => ARRAY['api-global', taskq.keyed('api-per-tenant', '$.tenant_id')],
                            reservations => ARRAY['slots', taskq.keyed('session-slots', '$.session.id')]);
SELECT taskq.register_actor('call_external_api', 'io', ARRAY['api-global', taskq.keyed('api-per-tenant', 'lax $.tenant_id')],
                            ARRAY['slots', taskq.keyed('session-slots', '$."session"."id"')]) AS same;
SELECT taskq.register_actor('call_external_api', 'io', '{api-global}');
SELECT taskq.register_actor('plain', rate_limits => '{quota}');
SELECT taskq.register_actor('nothing', NULL);
SELECT * FROM taskq.actors ORDER BY actor;

-- Everything is taken, the cap of the queue first.
SELECT taskq.set_queue_max_concurrent('io', 3);
SELECT allowed, refused_by, retry_after, retry_after_seconds, reason, ticket_at FROM taskq.acquire_for_actor('call_external_api', :job, :A, '{"tenant_id": "t1", "session": {"id": 1}}');
SELECT d.kind, d.name, d.key, d.allowed, d.cost, d.remaining, d.quota, d.slot_index IS NOT NULL AS slot, d.lease_expires_at
    FROM taskq.acquire_for_actor('call_external_api', :job, :A, '{"tenant_id": "t1", "session": {"id": 2}}') AS a, unnest(a.decisions) AS d;
SELECT name, held FROM taskq.peek_reservations() ORDER BY name COLLATE "C", key;
SELECT DISTINCT job_id, held_by_worker_id FROM taskq.reservation_slots WHERE fence > 0;

-- Refused: nothing was taken; the first one is named, the wait is the longest.
SELECT a.allowed, a.refused_by, a.retry_after, a.reason, a.handle, a.ticket_at, d.name, d.allowed, d.retry_after
    FROM taskq.acquire_for_actor('call_external_api', :job, :A, '{"tenant_id": "t1", "session": {"id": 2}}') AS a, unnest(a.decisions) AS d;
SELECT (taskq.peek('api-global')).remaining;
SELECT allowed FROM taskq.acquire_for_actor('plain', :job, :A);
-- For ever is told as five seconds; and longer waits count.
SELECT refused_by, retry_after, retry_after_seconds, (decisions[1]).retry_after AS never FROM taskq.acquire_for_actor('plain', :job, :A);
SELECT taskq.register_actor('both', NULL, ARRAY['quota', taskq.keyed('api-per-tenant', '$')]);
SELECT refused_by, retry_after FROM taskq.acquire_for_actor('both', :job, :A, '"t1"');
SELECT refused_by, retry_after FROM taskq.acquire_for_actor('both', :job, :A, '"t2"');
-- An actor that needs nothing.
SELECT * FROM taskq.acquire_for_actor('nothing', NULL, NULL);

-- Keys: strings as they are, numbers by value, booleans as words.
SELECT taskq.register_actor('keys', NULL, ARRAY[taskq.keyed('hourly', '$.k')]);
SELECT p.payload, (a.decisions[1]).key, a.allowed FROM (VALUES ('{"k": 1}'::jsonb), ('{"k": 1.00}'), ('{"k": 1e0}'), ('{"k": "1"}'), ('{"k": -0.50}'), ('{"k": true}'), ('[{"k": "ü "}]')) AS p (payload)
    CROSS JOIN LATERAL taskq.acquire_for_actor('keys', :job, :A, p.payload) AS a;
SELECT (a.decisions[1]).key FROM (SELECT taskq.register_actor('keys', NULL, ARRAY[taskq.keyed('hourly', '$.list[*] ? (@.role == "owner").id')], replace => true)) AS r,
    LATERAL taskq.acquire_for_actor(left('keys' || r::text, 4), :job, :A, '{"list": [{"role": "guest", "id": 4}, {"role": "owner", "id": 5}]}') AS a;

-- Releasing gives the slots back, keeps what was spent, and happens once (B053).
SELECT taskq.register_actor('B053', NULL, '{api-global}', '{slots}');
SET taskq_ratelimit.test_clock = '1700000100';
SELECT handle AS h FROM taskq.acquire_for_actor('B053', :job, :A) \gset
SELECT (taskq.peek('api-global')).remaining, held FROM taskq.peek_reservation('slots');
SELECT * FROM taskq.release_for_actor(:'h');
SELECT * FROM taskq.release_for_actor(:'h');
SELECT (taskq.peek('api-global')).remaining, held FROM taskq.peek_reservation('slots');
-- B052: released late, when others have the slot.
SELECT taskq.register_reservation('one', 1, '30 s'), taskq.register_actor('B052', NULL, reservations => '{one}');
SELECT handle AS h FROM taskq.acquire_for_actor('B052', :job, :A) \gset
SET taskq_ratelimit.test_clock = '1700000131';
SELECT allowed FROM taskq.acquire_for_actor('B052', :job, :B);
SELECT * FROM taskq.release_for_actor(:'h');
SELECT allowed, refused_by, retry_after FROM taskq.acquire_for_actor('B052', :job, :A);
-- B054: renewing is for the holder, before the end, for the lease of each reservation.
SELECT name, renewed FROM taskq.renew_slots(:A) WHERE name = 'one';
SELECT name, renewed, lease_expires_at FROM taskq.renew_slots(:B);
-- B062: what is rolled back was never taken.
BEGIN;
SELECT allowed FROM taskq.acquire_for_actor('B053', :job, :A);
SAVEPOINT s;
SELECT allowed FROM taskq.acquire_for_actor('B053', :job, :A);
ROLLBACK TO s;
SELECT held FROM taskq.peek_reservation('slots');
ROLLBACK;
SELECT (taskq.peek('api-global')).remaining, held FROM taskq.peek_reservation('slots');

-- Tickets: each one refused gets an instant of its own, in order, a pace apart.
SELECT taskq.register_token_bucket('pace', 1, 4), taskq.register_actor('ticket', NULL, '{pace}'), taskq.allow('pace');
SELECT i, a.allowed, a.retry_after, a.ticket_at FROM generate_series(1, 4) AS i CROSS JOIN LATERAL taskq.acquire_for_actor(left('ticket' || i, 6), :job, :A, ticket => true) AS a;
SELECT retry_after, ticket_at FROM taskq.acquire_for_actor('ticket', :job, :A);
-- At its instant each gets in.
CREATE FUNCTION pg_temp.at(seconds numeric) RETURNS TABLE (allowed boolean, ticket_at timestamptz) LANGUAGE plpgsql AS $$BEGIN
    PERFORM set_config('taskq_ratelimit.test_clock', (1700000131 + seconds)::text, false);
    RETURN QUERY SELECT a.allowed, a.ticket_at FROM taskq.acquire_for_actor('ticket', NULL, NULL, ticket => true) AS a;
END$$;
SELECT s, a.* FROM unnest('{0.25,0.5,0.75,1.0}'::numeric[]) AS s CROSS JOIN LATERAL pg_temp.at(s) AS a;
-- Who is refused again draws again; the queue of tickets ends when nobody draws.
SELECT a.* FROM pg_temp.at(1.1) AS a;
SELECT a.* FROM pg_temp.at(99) AS a;
SELECT a.* FROM pg_temp.at(99.1) AS a;
SELECT kind, key, next_at FROM taskq.actor_tickets;
-- Other resources: slots, windows, a quota that is never refilled; the latest of several.
SELECT taskq.register_fixed_window('window', 2, '1 minute', anchor => '1970-01-01 00:00+00'), taskq.allow('window', 2), taskq.register_actor('windows', NULL, '{window}');
SELECT ticket_at FROM generate_series(1, 3) AS i CROSS JOIN LATERAL taskq.acquire_for_actor(left('windows' || i, 7), :job, :A, ticket => true);
SELECT taskq.register_actor('never', NULL, '{quota}');
SELECT ticket_at FROM generate_series(1, 3) AS i CROSS JOIN LATERAL taskq.acquire_for_actor(left('never' || i, 5), :job, :A, ticket => true);
SELECT allowed FROM taskq.acquire_for_actor('B052', :job, :A);
SELECT ticket_at FROM generate_series(1, 3) AS i CROSS JOIN LATERAL taskq.acquire_for_actor(left('B052' || i, 4), :job, :A, ticket => true);
SELECT taskq.register_actor('all three', NULL, '{quota,window}', '{one}');
SELECT refused_by, ticket_at FROM generate_series(1, 2) AS i CROSS JOIN LATERAL taskq.acquire_for_actor(left('all three' || i, 9), :job, :A, ticket => true);
SELECT count(*), count(DISTINCT ticket_at) AS instants, max(ticket_at) - min(ticket_at) AS spread, bool_and(ordered) AS in_order
    FROM (SELECT ticket_at, ticket_at > lag(ticket_at) OVER (ORDER BY i) IS NOT FALSE AS ordered
          FROM generate_series(1, 1000) AS i CROSS JOIN LATERAL taskq.acquire_for_actor(left('ticket' || i, 6), :job, :A, ticket => true)) AS t;
-- Nothing is written without one; those that are past are swept.
SELECT tickets FROM taskq.sweep();
SET taskq_ratelimit.test_clock = '1700000600';
SELECT tickets FROM taskq.sweep();

-- B091: many keys in one transaction; few locks.
SELECT taskq.register_token_bucket('B091', 1, 0, keyed => true), taskq.register_actor('B091', NULL, ARRAY[taskq.keyed('B091', '$')]);
BEGIN;
SELECT count(*) FILTER (WHERE a.allowed) FROM generate_series(1, 4000) AS i CROSS JOIN LATERAL taskq.acquire_for_actor('B091', :job, :A, to_jsonb(i)) AS a;
SELECT count(a.ticket_at) FROM generate_series(1, 400) AS i CROSS JOIN LATERAL taskq.acquire_for_actor('B091', :job, :A, to_jsonb(i), ticket => true) AS a;
SELECT count(*) < 100 AS few_locks FROM pg_locks WHERE pid = pg_backend_pid();
ROLLBACK;

-- Errors leave everything as it was.
SELECT taskq.register_actor(NULL);
SELECT taskq.register_actor('');
SELECT taskq.register_actor('taskq:x');
SELECT taskq.register_actor('x', '');
SELECT taskq.register_actor('x', rate_limits => NULL);
SELECT taskq.register_actor('x', rate_limits => ARRAY['quota', NULL]);
SELECT taskq.register_actor('x', rate_limits => '{nowhere}');
SELECT taskq.register_actor('x', reservations => '{quota}');
SELECT taskq.register_actor('x', reservations => '{taskq:global:queue:io}');
SELECT taskq.register_actor('x', rate_limits => '{api-per-tenant}');
SELECT taskq.register_actor('x', rate_limits => ARRAY[taskq.keyed('quota', '$.id')]);
SELECT taskq.register_actor('x', reservations => '{session-slots}');
SELECT taskq.register_actor('x', reservations => ARRAY[taskq.keyed('slots', '$.id')]);
SELECT taskq.register_actor('x', rate_limits => '{taskq:keyed:quota}');
SELECT taskq.register_actor('x', rate_limits => array_fill('quota'::text, '{1000}'));
SELECT taskq.keyed('quota', 'tenant');
SELECT taskq.keyed(NULL, '$');
SELECT taskq.keyed('quota', NULL);
SELECT taskq.keyed(E'a\tb', '$');
SELECT count(*) FROM taskq.actors WHERE actor = 'x';
SELECT taskq.drop_actor('x');
SELECT * FROM taskq.acquire_for_actor('x', :job, :A);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM taskq.acquire_for_actor(NULL, :job, :A);
SELECT * FROM taskq.acquire_for_actor('both', :job, :A);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_actor('both', NULL, ARRAY['hourly', 'quota'], replace => true);
SELECT taskq.register_actor('keys', NULL, ARRAY['api-global', taskq.keyed('hourly', '$.k')], replace => true);
SELECT * FROM taskq.acquire_for_actor('keys', :job, :A, '{}');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM taskq.acquire_for_actor('keys', :job, :A, '[{"k": 1}, {"k": 2}]');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM taskq.acquire_for_actor('keys', :job, :A, '{"k": null}');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM taskq.acquire_for_actor('keys', :job, :A, '{"k": {"a": "something that is much too long to be shown in a message in its full length"}}');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM taskq.acquire_for_actor('keys', :job, :A, '{"k": []}');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM taskq.acquire_for_actor('keys', :job, :A, '{"k": ""}');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM taskq.acquire_for_actor('keys', :job, :A, jsonb_build_object('k', repeat('x', 1025)));
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_actor('keys', NULL, ARRAY['api-global', taskq.keyed('hourly', 'strict $.k')], replace => true);
SELECT * FROM taskq.acquire_for_actor('keys', :job, :A, '{}');
\echo :LAST_ERROR_SQLSTATE
SELECT remaining FROM taskq.peek('api-global');
SELECT taskq.drop_rate_limit('hourly');
SELECT * FROM taskq.acquire_for_actor('keys', :job, :A, '{"k": 1}');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.drop_reservation('one');
SELECT * FROM taskq.acquire_for_actor('B052', :job, :A);
SELECT * FROM taskq.release_for_actor(NULL);
SELECT * FROM taskq.release_for_actor('{}');
BEGIN READ ONLY;
SELECT * FROM taskq.acquire_for_actor('plain', :job, :A);
ROLLBACK;
SELECT count(taskq.drop_actor(actor)::text) FROM taskq.actors;
SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;
DELETE FROM taskq.queues;
SELECT count(taskq.drop_reservation(name)::text) FROM taskq.reservations;
