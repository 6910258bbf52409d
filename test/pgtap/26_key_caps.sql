-- Cases from the field: how many keys a limit or a reservation may have, and who makes room for a new one (B085, B042).
BEGIN;
\ir helpers.psql
SELECT plan(56);
SELECT clock_starts(1700000000) \g /dev/null

CREATE FUNCTION keys_of(limit_name text) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(key, ' ' ORDER BY key), '') FROM taskq.rate_limit_buckets JOIN taskq.rate_limits USING (limit_id) WHERE name = limit_name
$$;
CREATE FUNCTION slot_keys_of(reservation text) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(DISTINCT key, ' ' ORDER BY key), '') FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = reservation
$$;
CREATE FUNCTION s(reservation text, key text) RETURNS text LANGUAGE sql AS $$
    SELECT reason || CASE WHEN allowed THEN '' ELSE ' ' || retry_after_seconds END FROM taskq.acquire_slot(reservation, NULL, NULL, key)
$$;

-- B085: at the cap a full bucket makes room, a spent one never.
SELECT taskq.register_token_bucket('b085', 2, 0.001, keyed => true, max_keys => 3) \g /dev/null
SELECT is(a('b085', 2, 'a') || '; ' || a('b085', 2, 'b') || '; ' || a('b085', 2, 'c'), 'ok 0; ok 0; ok 0', 'B085 three keys fit');
SELECT is(p('b085', 1, 'd'), 'deny 0, 1, too_many_keys', 'B085 preview of a fourth while all are spent');
SELECT is(a('b085', 1, 'd'), 'deny 0, 1, too_many_keys', 'B085 a fourth while all are spent');
SELECT is(keys_of('b085'), 'a b c', 'B085 it leaves no trace');
SELECT is(a('b085', 1, 'a'), 'deny 0, 1000', 'B085 known keys are decided as ever');
SELECT is(taskq.refund('b085', 2, 'b') + taskq.refund('b085', 2, 'c'), 4::float8, 'B085 b and c are full again');
SELECT is(p('b085', 1, 'd'), 'ok 1', 'B085 preview: d would get in');
SELECT is(keys_of('b085'), 'a b c', 'B085 preview deletes nothing');
SELECT is(a('b085', 1, 'd'), 'ok 1', 'B085 a drained, b and c full: d gets in');
SELECT ok(keys_of('b085') IN ('a b d', 'a c d'), 'B085 b or c made room');
SELECT is(a('b085', 1, 'a'), 'deny 0, 1000', 'B085 a is still denied');
SELECT is(a('b085', 1, 'e') || '; ' || a('b085', 1, 'f'), 'ok 1; deny 0, 1, too_many_keys', 'B085 the other makes room for e, and nobody for f');
SELECT is((SELECT remaining || ' ' || seconds(reset_after) || ' ' || (request_id IS NULL) || ' ' || delay FROM taskq.acquire('b085', 1, 'f')), '0 1 true 00:00:00', 'B085 the other numbers of such a denial');
SELECT is((SELECT h -> 'Retry-After' FROM taskq.http_headers(taskq.preview('b085', 1, 'f')) AS h), '"1"'::jsonb, 'B085 and its HTTP field');
SELECT is(state_of($$SELECT taskq.require('b085', 1, 'f')$$), 'TQ429', 'B085 require raises');
SELECT at(3000) \g /dev/null
SELECT is(a('b085', 2, 'f') || '; ' || a('b085', 2, 'g') || '; ' || a('b085', 2, 'h') || '; ' || a('b085', 2, 'i'), 'ok 0; ok 0; ok 0; deny 0, 1, too_many_keys',
          'B085 when the others are full by the clock, they make room');
SELECT is(keys_of('b085'), 'f g h', 'B085 never more than three');

-- Every kind of limit; a quota that never refills is spent for good.
SELECT taskq.register_token_bucket('cap quota', 1, 0, keyed => true, max_keys => 2),
       taskq.register_leaky_bucket('cap leaky', 1, 0.1, keyed => true, max_keys => 2),
       taskq.register_sliding_window('cap log', 1, '10 s', keyed => true, max_keys => 2),
       taskq.register_sliding_window('cap gcra', 1, '10 s', 'gcra', keyed => true, max_keys => 2),
       taskq.register_sliding_window('cap counter', 1, '10 s', 'counter', keyed => true, max_keys => 2),
       taskq.register_fixed_window('cap fixed', 1, '10 s', keyed => true, max_keys => 2) \g /dev/null
CREATE VIEW helpers.capped AS SELECT name FROM taskq.rate_limits WHERE name LIKE 'cap %';
SELECT is((SELECT count(*) FROM capped, unnest('{a,b}'::text[]) AS key WHERE taskq.allow(name, key => key)), 12::bigint, 'two keys of each kind');
SELECT is((SELECT count(*) FROM capped WHERE a(name, 1, 'c') LIKE '%too_many_keys'), 6::bigint, 'a third is denied by each');
SELECT at(1000000) \g /dev/null
SELECT is((SELECT string_agg(name, ', ') FROM capped WHERE NOT taskq.allow(name, key => 'c')), 'cap quota', 'later all but the quota have made room');
SELECT is(keys_of('cap quota'), 'a b', 'a spent quota that never refills is never evicted');
SELECT is(a('cap quota', 1, 'a'), 'deny 0, never', 'and stays spent');
SELECT is((SELECT count(*) FROM capped WHERE array_length(string_to_array(keys_of(name), ' '), 1) = 2), 6::bigint, 'each has two keys');

-- What is paused, or was charged, made or reserved in other ways.
SELECT taskq.pause('cap fixed', 'b', 'infinity'), at(1000100) \g /dev/null
SELECT is(a('cap fixed', 1, 'x') || '; ' || a('cap fixed', 1, 'y'), 'ok 0; deny 0, 1, too_many_keys', 'a paused key is not evicted');
SELECT is(a('cap fixed', 1, 'b'), 'deny 1, never, paused', 'and stays paused');
SELECT is((taskq.charge('cap quota', 1, 'charged')).allowed, true, 'charge asks for no room');
SELECT is(state_of($$SELECT taskq.pause('cap quota', 'paused', 'infinity')$$), 'none', 'nor does pause');
SELECT is(keys_of('cap quota'), 'a b charged paused', 'so that both have keys above the cap');
SELECT is((SELECT string_agg(reason, ' ') FROM taskq.acquire_many('{cap quota}', NULL, '{a,new,paused}')), 'limited too_many_keys paused', 'acquire_many: each on its own');
SELECT is((taskq.reserve('cap gcra', 1, '1 hour', 'z')).reason || ' ' || (taskq.reserve('cap gcra', 1, '1 hour', 'y')).reason || ' ' || (taskq.reserve('cap gcra', 1, '1 hour', 'x')).reason,
          'ok ok too_many_keys', 'reserve');

-- A limit in shadow lets through.
SELECT taskq.register_token_bucket('cap quota', 1, 0, keyed => true, max_keys => 2, shadow => true, replace => true) \g /dev/null
SELECT is(a('cap quota', 1, 'new'), 'ok 0, shadow', 'a shadow says so, and lets through');
SELECT is(keys_of('cap quota'), 'a b charged paused', 'without making a bucket');

-- Another cap is another definition, but no new version.
SELECT throws_ok($$SELECT taskq.register_token_bucket('b085', 2, 0.001, keyed => true)$$, '42710', NULL, 'another cap needs replace');
SELECT is(taskq.register_token_bucket('b085', 2, 0.001, keyed => true, max_keys => 4, replace => true), true, 'with it the cap is raised');
SELECT is((SELECT version || ' ' || max_keys || ' ' || (SELECT count(*) FROM taskq.rate_limit_versions AS v WHERE v.limit_id = l.limit_id) FROM taskq.rate_limits AS l WHERE name = 'b085'),
          '1 4 0', 'the version stays');
SELECT is(taskq.register_token_bucket('b085', 2, 0.001, keyed => true, max_keys => 4), false, 'the same again changes nothing');

-- The setting holds where the definition says nothing, and for ad-hoc limits.
SET LOCAL taskq_ratelimit.max_keys_per_limit = 2;
SELECT taskq.register_token_bucket('cap default', 1, 0, keyed => true) \g /dev/null
SELECT is(a('cap default', 1, 'a') || '; ' || a('cap default', 1, 'b') || '; ' || a('cap default', 1, 'c'), 'ok 0; ok 0; deny 0, 1, too_many_keys', 'the setting');
SELECT is((SELECT string_agg((taskq.acquire_token_bucket('cap ad hoc', 1, 0, 1, key)).reason, ' ') FROM unnest('{a,b,c}'::text[]) AS key), 'ok ok too_many_keys', 'ad-hoc limits');
SELECT is((taskq.acquire_token_bucket('cap ad hoc', 1, 0)).reason, 'ok', 'the one bucket without a key is not counted');
SELECT is(granted(5, 'b085', 1, 'another'), 2, 'a cap in the definition goes before');
SET LOCAL taskq_ratelimit.max_keys_per_limit = 0;
SELECT is(a('cap default', 1, 'c'), 'ok 0', '0 is no cap');

-- B085 for reservations: a key none of whose leases lives makes room.
SELECT taskq.register_reservation('b085', 2, '1 minute', keyed => true, max_keys => 3) \g /dev/null
SELECT is(s('b085', 'a') || '; ' || s('b085', 'b') || '; ' || s('b085', 'b') || '; ' || s('b085', 'c') || '; ' || s('b085', 'd'), 'ok; ok; ok; ok; too_many_keys 1',
          'B085 three keys, however many slots each');
SELECT is(s('b085', 'b') || '; ' || s('b085', 'a'), 'full 60; ok', 'B085 known keys are decided as ever');
SELECT is(slot_keys_of('b085'), 'a b c', 'B085 the fourth leaves no trace');
SELECT is(taskq.release_slot('b085', (SELECT min(slot_index) FROM taskq.reservation_slots WHERE key = 'b'), key => 'b', fence => (SELECT fence FROM taskq.reservation_slots WHERE key = 'b' ORDER BY slot_index LIMIT 1)), true, 'B085 one slot of b is released');
SELECT is(s('b085', 'd'), 'too_many_keys 1', 'B085 but b holds another one');
SELECT is((SELECT count(*) FROM taskq.reservation_slots WHERE key = 'b'), 2::bigint, 'B085 both rows of b stay');
SELECT at(1000161) \g /dev/null
SELECT is((SELECT count(*) FROM unnest('{a,b,c}'::text[]) AS key WHERE (taskq.acquire_slot('b085', NULL, NULL, key)).allowed), 3::bigint, 'B085 leases have ended, and begin anew');
SELECT is((SELECT count(*) FROM taskq.reservation_slots WHERE key IN ('b', 'c') AND lease_expires_at > to_timestamp(1701000161)
           AND taskq.release_slot('b085', slot_index, key => key, fence => fence)), 2::bigint, 'B085 b and c are released');
SELECT is(s('b085', 'd') || '; ' || s('b085', 'e') || '; ' || s('b085', 'f'), 'ok; ok; too_many_keys 1', 'B085 they make room for d and e');
SELECT is(slot_keys_of('b085'), 'a d e', 'B085 a stays');
SELECT is((SELECT held FROM taskq.peek_reservation('b085', 'a')), 1, 'B085 and holds what it held');
SET LOCAL taskq_ratelimit.max_keys_per_reservation = 1;
SELECT taskq.register_reservation('b042', 1, '1 minute', keyed => true), taskq.register_reservation('b042:b', 1, '1 minute', keyed => true) \g /dev/null
SELECT is(s('b042', 'b:c') || '; ' || s('b042', 'b'), 'ok; too_many_keys 1', 'the setting for reservations');
RESET taskq_ratelimit.max_keys_per_reservation;
SELECT throws_ok($$SELECT taskq.register_reservation('b042', 1, '1 minute', keyed => true, max_keys => 5)$$, '42710', NULL, 'another cap needs replace');
SELECT is(taskq.register_reservation('b042', 1, '1 minute', keyed => true, max_keys => 5, replace => true), true, 'and has it');

-- Names and keys never run together.
SELECT is(s('b042:b', 'c') || '; ' || s('b042:b', 'c') || '; ' || s('b042', 'b:c'), 'ok; full 60; full 60', 'B042 "b042" of "b:c", "b042:b" of "c"');

SELECT finish();
ROLLBACK;
