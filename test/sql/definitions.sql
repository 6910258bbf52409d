-- Definitions change on purpose only, and every session sees the change with its next call.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set d 'allowed, remaining, retry_after, reset_after, reason'
SET taskq_ratelimit.test_clock = '1700000000';
PREPARE shown AS SELECT name, version, kind, style, capacity, refill_per_second, max_requests, period, anchor, keyed, storage, shadow, ad_hoc FROM taskq.rate_limits ORDER BY name;

-- Registering answers whether anything was written: the same definition again is a no-op, however it is worded.
SELECT taskq.register_token_bucket('api', 10, 0.5);
SELECT :d FROM taskq.acquire('api', 10);
SELECT taskq.register_token_bucket('api', 10, 0.5);
SELECT taskq.register_token_bucket('api', 10, refill_amount => 30, refill_period => '1 minute');
SELECT :d FROM taskq.acquire('api');
EXECUTE shown;

-- Another definition under the same name is an error: of another capacity, rate, kind, with keys, in shadow.
SELECT taskq.register_token_bucket('api', 11, 0.5);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_token_bucket('api', 10, 0.25);
SELECT taskq.register_leaky_bucket('api', 10, 0.5);
SELECT taskq.register_sliding_window('api', 10, '20 s', 'gcra');
SELECT taskq.register_token_bucket('api', 10, 0.5, keyed => true);
SELECT taskq.register_token_bucket('api', 10, 0.5, shadow => true);
SELECT taskq.register_sliding_window('log', 10, '20 s');
SELECT taskq.register_sliding_window('log', 10, '20 s', 'counter');
SELECT taskq.drop_rate_limit('log');

-- replace says yes to a change. What was used stays used, unless inherit says otherwise: 6 of 10 are used when the capacity becomes 20.
CREATE FUNCTION pg_temp.change(mode text, used float8, old float8, new float8) RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN
    PERFORM taskq.register_token_bucket('change', old, 1, replace => true, inherit => 'reset'), taskq.reset('change'), taskq.acquire('change', used);
    PERFORM taskq.register_token_bucket('change', new, 1, replace => true, inherit => mode);
    RETURN taskq.remaining('change');
END $$;
SELECT mode, pg_temp.change(mode, 6, 10, 20) AS raised, pg_temp.change(mode, 6, 20, 10) AS lowered, pg_temp.change(mode, 16, 20, 10) AS lowered_below_use
FROM unnest('{consumed,as_is,proportional,additive,reset}'::text[]) AS mode;
SELECT taskq.drop_rate_limit('change');

-- The same from every kind to every kind: 6 of 10 are used, the limit becomes 20 in a minute; what is left.
CREATE FUNCTION pg_temp.register(kind text, most int, mode text, with_keys boolean) RETURNS boolean LANGUAGE sql AS $$
    SELECT CASE kind WHEN 'token bucket' THEN taskq.register_token_bucket('move', most, refill_amount => most, refill_period => '1 min', keyed => with_keys, replace => true, inherit => mode)
                     WHEN 'leaky bucket' THEN taskq.register_leaky_bucket('move', most, leak_amount => most, leak_period => '1 min', keyed => with_keys, replace => true, inherit => mode)
                     WHEN 'fixed window' THEN taskq.register_fixed_window('move', most, '1 min', keyed => with_keys, replace => true, inherit => mode)
                     ELSE taskq.register_sliding_window('move', most, '1 min', kind, keyed => with_keys, replace => true, inherit => mode) END
$$;
CREATE FUNCTION pg_temp.moved(mode text, kind text, other text, k text DEFAULT '') RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    answer float8;
BEGIN
    PERFORM pg_temp.register(kind, 10, mode, k <> ''), taskq.acquire('move', 6, k);
    PERFORM pg_temp.register(other, 20, mode, k <> '');
    answer := taskq.remaining('move', k);
    -- What is said to be left can be had, and no more.
    IF NOT taskq.allow('move', answer, k) OR taskq.allow('move', 1, k) THEN RETURN -1; END IF;
    PERFORM taskq.drop_rate_limit('move');
    RETURN answer;
END $$;
SELECT kind, other, pg_temp.moved('consumed', kind, other) AS consumed, pg_temp.moved('as_is', kind, other) AS as_is, pg_temp.moved('proportional', kind, other) AS proportional,
       pg_temp.moved('additive', kind, other) AS additive, pg_temp.moved('reset', kind, other) AS reset
FROM unnest('{token bucket,leaky bucket,log,gcra,counter,fixed window}'::text[]) AS kind, unnest('{token bucket,leaky bucket,log,gcra,counter,fixed window}'::text[]) AS other
ORDER BY 1, 2;

-- Buckets of keys are carried over by the first call after the change, to the same effect.
SELECT count(*), count(*) FILTER (WHERE pg_temp.moved(mode, kind, other) <> pg_temp.moved(mode, kind, other, 'k')) AS different
FROM unnest('{token bucket,leaky bucket,log,gcra,counter,fixed window}'::text[]) AS kind, unnest('{token bucket,leaky bucket,log,gcra,counter,fixed window}'::text[]) AS other,
     unnest('{consumed,as_is,proportional,additive,reset}'::text[]) AS mode;

-- Two changes in a row, with no call between them, carry over one after the other.
SELECT taskq.register_fixed_window('steps', 10, '1 min');
SELECT taskq.allow('steps', 4);
SELECT taskq.register_sliding_window('steps', 10, '1 min', replace => true), taskq.register_token_bucket('steps', 20, 0, replace => true, inherit => 'proportional');
SELECT taskq.remaining('steps');
SELECT v.version, v.kind, v.style, v.inherit FROM taskq.rate_limit_versions AS v JOIN taskq.rate_limits USING (limit_id) WHERE name = 'steps' ORDER BY 1;
\c -
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set d 'allowed, remaining, retry_after, reset_after, reason'
SET taskq_ratelimit.test_clock = '1700000000';
PREPARE shown AS SELECT name, version, kind, style, capacity, refill_per_second, max_requests, period, anchor, keyed, storage, shadow, ad_hoc FROM taskq.rate_limits ORDER BY name;
SELECT :d FROM taskq.acquire('steps', 2);

-- A change to shadow or keyed alone leaves the bucket as it is.
SELECT taskq.register_token_bucket('steps', 20, 0, shadow => true, replace => true);
SELECT :d FROM taskq.acquire('steps', 20);
SELECT taskq.register_token_bucket('steps', 20, 0, replace => true);
SELECT :d FROM taskq.acquire('steps', 20);

-- A limit that gets keys, or loses them: the buckets that nobody can name are not listed, and go with the next sweep.
SELECT taskq.register_token_bucket('steps', 20, 0, keyed => true, replace => true);
SELECT :d FROM taskq.acquire('steps', 20, 'k');
SELECT bucket_name, key, remaining FROM taskq.peek_all() WHERE bucket_name = 'steps';
SELECT taskq.register_token_bucket('steps', 20, 0, replace => true);
SELECT bucket_name, key, remaining FROM taskq.peek_all() WHERE bucket_name = 'steps';
SELECT key FROM taskq.rate_limit_buckets JOIN taskq.rate_limits USING (limit_id) WHERE name = 'steps' ORDER BY key;
SELECT buckets FROM taskq.sweep();
SELECT key FROM taskq.rate_limit_buckets JOIN taskq.rate_limits USING (limit_id) WHERE name = 'steps' ORDER BY key;

-- The session that changes a definition sees it at once, and after ROLLBACK the one before.
SELECT taskq.register_token_bucket('cache', 5, 0);
SELECT :d FROM taskq.acquire('cache');
BEGIN;
SELECT taskq.register_token_bucket('cache', 100, 0, replace => true);
SELECT :d FROM taskq.acquire('cache', 50);
SAVEPOINT s;
SELECT taskq.drop_rate_limit('cache');
SELECT :d FROM taskq.acquire('cache');
ROLLBACK TO s;
SELECT :d FROM taskq.acquire('cache', 10);
SELECT taskq.pause('cache', 'infinity');
SELECT :d FROM taskq.acquire('cache');
ROLLBACK;
SELECT :d FROM taskq.acquire('cache');
SELECT taskq.register_token_bucket('cache', 5, 0);

-- A definition changed with plain SQL, by a dump that is restored say, is seen, too.
BEGIN;
UPDATE taskq.rate_limits SET shadow = true WHERE name = 'cache';
SELECT :d FROM taskq.acquire('cache', 5);
ROLLBACK;
SELECT :d FROM taskq.acquire('cache', 5);

-- A dropped limit is gone with its buckets and versions; a new one of the same name starts full.
SELECT taskq.drop_rate_limit('steps');
SELECT taskq.acquire('steps');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM taskq.rate_limit_versions;
SELECT taskq.register_token_bucket('steps', 3, 0);
SELECT :d FROM taskq.acquire('steps');

-- Keys are isolated; unused ones are full and have no row.
SELECT taskq.register_sliding_window('keyed', 2, '1 min', 'log', keyed => true);
SELECT :d FROM taskq.acquire('keyed', 2, 'a');
SELECT :d FROM taskq.acquire('keyed', 2, 'b');
SELECT :d FROM taskq.acquire('keyed', 1, 'a');
SELECT :d FROM taskq.preview('keyed', 1, 'c');
SELECT taskq.reset('keyed', 'a'), taskq.reset('keyed', 'c');
SELECT bucket_name, key, is_exhausted, remaining FROM taskq.peek_all() WHERE bucket_name = 'keyed';

-- A shadow limit decides and counts, but lets everybody through and says so.
SELECT taskq.register_fixed_window('shadow', 1, '1 min', shadow => true);
SELECT :d FROM taskq.acquire('shadow');
SELECT :d FROM taskq.acquire('shadow');
SELECT :d FROM taskq.preview('shadow');
SELECT taskq.allow('shadow'), is_exhausted FROM taskq.peek('shadow');
SELECT taskq.pause('shadow', 'infinity');
SELECT :d FROM taskq.acquire('shadow');

-- The definition may travel with the call; a later call with another definition changes it, and what was used stays used.
SELECT :d, key, quota FROM taskq.acquire_token_bucket('adhoc', 3, 0, 2, 'k');
SELECT :d, key, quota FROM taskq.acquire_token_bucket('adhoc', 3, 0, 2, 'k');
SELECT :d, key, quota FROM taskq.acquire_token_bucket('adhoc', 4, 0, 2, 'k');
SELECT :d, key, quota FROM taskq.acquire_token_bucket('adhoc', 4, 0, 2);
SELECT :d, key, quota FROM taskq.acquire('adhoc', 1, 'k');
SELECT :d, key, quota FROM taskq.acquire_leaky_bucket('adhoc leaky', 2, 1, key => 'k');
SELECT :d, key, quota FROM taskq.acquire_sliding_window('adhoc log', 2, '1 min', key => 'k');
SELECT :d, key, quota FROM taskq.acquire_sliding_window('adhoc counter', 2, '1 min', 'counter');
SELECT :d, key, quota FROM taskq.acquire_fixed_window('adhoc fixed', 2, '1 min', 2);
SELECT :d, key, quota FROM taskq.acquire_sliding_window('adhoc fixed', 2, '1 min', 'gcra');

-- It cannot change what was registered, but may agree with it.
SELECT taskq.acquire_token_bucket('api', 11, 0.5);
\echo :LAST_ERROR_SQLSTATE
SELECT :d FROM taskq.acquire_token_bucket('api', 10, 0.5);
SELECT :d FROM taskq.acquire_token_bucket('api', 10, 0.5, key => 'k');

-- Registering under the name of such a limit needs replace, as any change.
SELECT taskq.register_token_bucket('adhoc', 4, 0, keyed => true);
SELECT taskq.register_token_bucket('adhoc', 4, 0, keyed => true, replace => true);
SELECT :d FROM taskq.acquire('adhoc', 1, 'k');
EXECUTE shown;

-- The cap on keys is part of the definition; a change of it alone makes no version.
SELECT taskq.register_token_bucket('capped', 4, 0, keyed => true, max_keys => 5);
SELECT taskq.register_token_bucket('capped', 4, 0, keyed => true);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_token_bucket('capped', 4, 0, keyed => true, max_keys => 6, replace => true);
SELECT version, max_keys, (SELECT count(*) FROM taskq.rate_limit_versions AS v WHERE v.limit_id = l.limit_id) AS versions FROM taskq.rate_limits AS l WHERE name = 'capped';
SELECT taskq.register_token_bucket('capped', 4, 0, keyed => true, max_keys => 6);

-- A change counts whatever session_replication_role says, and even if its trigger was disabled.
SET session_replication_role = replica;
SELECT taskq.register_token_bucket('replica', 5, 0);
SELECT :d FROM taskq.acquire('replica');
SELECT taskq.register_token_bucket('replica', 9, 0, replace => true);
SELECT :d FROM taskq.acquire('replica');
RESET session_replication_role;
BEGIN;
ALTER TABLE taskq.rate_limits DISABLE TRIGGER definitions_changed;
SELECT :d FROM taskq.acquire('replica');
UPDATE taskq.rate_limits SET version = version + 1 WHERE name = 'replica';
UPDATE taskq.rate_limit_buckets SET version = version + 1 WHERE limit_id = (SELECT limit_id FROM taskq.rate_limits WHERE name = 'replica');
SELECT :d FROM taskq.acquire('replica');
ROLLBACK;
SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;
SELECT count(*) FROM taskq.rate_limit_buckets;
