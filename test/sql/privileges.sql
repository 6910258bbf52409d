-- PUBLIC may do nothing; grant_usage gives one of three bundles; tables are reached through functions only (B073, B074).
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
SET client_min_messages = warning;
SET taskq_ratelimit.test_clock = '1700000000';
CREATE ROLE regress_taskq_nobody; CREATE ROLE regress_taskq_client; CREATE ROLE regress_taskq_operator; CREATE ROLE regress_taskq_monitor; CREATE ROLE "regress_taskq odd ""name""";
SELECT taskq.register_token_bucket('tb', 50, 1), taskq.register_sliding_window('log', 50, '1 min'), taskq.register_token_bucket('keyed', 50, 1, keyed => true), taskq.allow('keyed', 1, 'k'), taskq.register_reservation('slots', 1, '1 min'), taskq.register_actor('act', 'q', '{tb}'), taskq.register_token_bucket('dry', 1, 0), taskq.allow('dry'), taskq.register_actor('dry', NULL, '{dry}'), taskq.set_queue_max_concurrent('q', 1);

-- Nothing of the extension is open to everybody: no function, table, sequence, type, not even the schema.
SELECT count(*) FROM pg_proc WHERE pronamespace = 'taskq'::regnamespace AND (proacl IS NULL OR EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0));
SELECT count(*) FROM pg_class WHERE relnamespace = 'taskq'::regnamespace AND EXISTS (SELECT FROM aclexplode(relacl) WHERE grantee = 0);
SELECT count(*) FROM pg_namespace WHERE nspname = 'taskq' AND EXISTS (SELECT FROM aclexplode(nspacl) WHERE grantee = 0);
SELECT typname FROM pg_type WHERE typnamespace = 'taskq'::regnamespace AND typtype = 'c' AND typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'c')
    AND (typacl IS NULL OR EXISTS (SELECT FROM aclexplode(typacl) WHERE grantee = 0));

-- A role with nothing is refused, at the schema and behind it.
SET SESSION AUTHORIZATION regress_taskq_nobody;
SELECT taskq.acquire('tb');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.peek('tb');
SELECT * FROM taskq.rate_limits;
RESET SESSION AUTHORIZATION;
GRANT USAGE ON SCHEMA taskq TO regress_taskq_nobody;
SET SESSION AUTHORIZATION regress_taskq_nobody;
SELECT taskq.acquire('tb');
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.peek('tb');
SELECT taskq.version();
SELECT taskq.grant_usage('regress_taskq_nobody', 'operator');
RESET SESSION AUTHORIZATION;
SELECT count(*) FROM pg_proc WHERE pronamespace = 'taskq'::regnamespace AND has_function_privilege('regress_taskq_nobody', oid, 'EXECUTE');

-- The bundles: what each may call.
SELECT taskq.grant_usage('regress_taskq_client', 'client'), taskq.grant_usage('regress_taskq_operator', 'operator'), taskq.grant_usage('regress_taskq_monitor', 'monitor');
SELECT proname || '(' || pg_get_function_identity_arguments(oid) || ')' AS function,
       has_function_privilege('regress_taskq_client', oid, 'EXECUTE') AS client, has_function_privilege('regress_taskq_operator', oid, 'EXECUTE') AS operator,
       has_function_privilege('regress_taskq_monitor', oid, 'EXECUTE') AS monitor
FROM pg_proc WHERE pronamespace = 'taskq'::regnamespace ORDER BY 1;
SELECT relname, has_table_privilege('regress_taskq_client', c.oid, 'SELECT') AS client, has_table_privilege('regress_taskq_operator', c.oid, 'SELECT') AS operator,
       has_table_privilege('regress_taskq_monitor', c.oid, 'SELECT') AS monitor,
       has_table_privilege('regress_taskq_operator', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') AS operator_writes
FROM pg_class AS c WHERE relnamespace = 'taskq'::regnamespace AND relkind IN ('r', 'v') ORDER BY 1;

-- Granting again changes nothing; roles may have odd names; others do not exist.
SELECT taskq.grant_usage('regress_taskq_client', 'client'), taskq.grant_usage('"regress_taskq odd ""name"""', 'client');
SELECT taskq.grant_usage('regress_taskq_ghost', 'client');
SELECT taskq.grant_usage('regress_taskq_client', 'admin');

-- Each function once as a client.
CREATE FUNCTION pg_temp.as_client() RETURNS TABLE (call text, result text) LANGUAGE plpgsql AS $$
BEGIN
    FOREACH call IN ARRAY ARRAY[
        'SELECT allowed FROM taskq.acquire(''tb'')', 'SELECT taskq.allow(''tb'')', 'SELECT taskq.acquire_json(''tb'') -> ''allowed''', 'SELECT allowed FROM taskq.require(''tb'')',
        'SELECT allowed FROM taskq.preview(''tb'')', 'SELECT allowed FROM taskq.reserve(''tb'')', 'SELECT allowed FROM taskq.charge(''tb'')',
        'SELECT taskq.refund(d) FROM taskq.acquire(''log'') AS d', 'SELECT taskq.refund(''log'', 1)', 'SELECT taskq.settle(d, 2) FROM taskq.acquire(''log'') AS d',
        'SELECT count(*) FROM taskq.acquire_many(''{tb,log}'')', 'SELECT allowed FROM taskq.acquire_token_bucket(''adhoc tb'', 5, 1)',
        'SELECT allowed FROM taskq.acquire_leaky_bucket(''adhoc lb'', 5, 1)', 'SELECT allowed FROM taskq.acquire_sliding_window(''adhoc sw'', 5, ''1 s'')',
        'SELECT allowed FROM taskq.acquire_fixed_window(''adhoc fw'', 5, ''1 s'')', 'SELECT remaining FROM taskq.peek(''tb'')', 'SELECT taskq.remaining(''tb'')',
        'SELECT taskq.reset_after(''tb'')', 'SELECT count(*) FROM taskq.peek_all()', 'SELECT taskq.version() IS NOT NULL', 'SELECT taskq.http_headers(d) ->> ''RateLimit-Limit'' FROM taskq.preview(''tb'') AS d',
        'SELECT allowed FROM taskq.acquire_slot(''slots'', NULL, ''aaaaaaaa-0000-4000-8000-000000000000'')', 'SELECT taskq.renew_slot(''slots'', 0, ''aaaaaaaa-0000-4000-8000-000000000000'') IS NOT NULL',
        'SELECT count(*) FROM taskq.renew_slots(''aaaaaaaa-0000-4000-8000-000000000000'')', 'SELECT held FROM taskq.peek_reservation(''slots'')', 'SELECT count(*) FROM taskq.peek_reservations()', 'SELECT count(*) > 0 FROM taskq.peek_stats()', 'SELECT entries FROM taskq.stats_info()',
        'SELECT taskq.release_slot(''slots'', 0, ''aaaaaaaa-0000-4000-8000-000000000000'')',
        'SELECT r.released FROM taskq.acquire_for_actor(''act'', NULL, NULL) AS a, taskq.release_for_actor(a.handle) AS r',
        'SELECT ticket_at IS NOT NULL FROM taskq.acquire_for_actor(''dry'', NULL, NULL, ticket => true)',
        'SELECT length(taskq.keyed(''keyed'', ''$.k''))'] LOOP
        BEGIN
            EXECUTE call INTO result;
        EXCEPTION WHEN OTHERS THEN
            result := SQLSTATE || ': ' || SQLERRM;
        END;
        RETURN NEXT;
    END LOOP;
END $$;
CREATE FUNCTION pg_temp.as_operator() RETURNS TABLE (call text, result text) LANGUAGE plpgsql AS $$
BEGIN
    FOREACH call IN ARRAY ARRAY[
        'SELECT taskq.register_token_bucket(''new tb'', 5, 1)', 'SELECT taskq.register_leaky_bucket(''new lb'', 5, 1)', 'SELECT taskq.register_sliding_window(''new sw'', 5, ''1 s'')',
        'SELECT taskq.register_fixed_window(''new fw'', 5, ''1 s'')', 'SELECT taskq.register_token_bucket(''new tb'', 6, 1, replace => true)', 'SELECT taskq.reset(''tb'')',
        'SELECT taskq.pause(''tb'', ''2023-11-15 00:00+00'')', 'SELECT taskq.resume(''tb'')', 'SELECT taskq.pause(''keyed'', ''2023-11-15 00:00+00'')', 'SELECT taskq.resume(''keyed'')',
        'SELECT taskq.pause(''keyed'', ''k'', ''2023-11-15 00:00+00'')', 'SELECT taskq.resume(''keyed'', ''k'')', 'SELECT versions FROM taskq.sweep()', 'SELECT taskq.evict_idle(''1 day'')',
        'SELECT taskq.drop_rate_limit(''new fw'')', 'SELECT count(*) > 0 FROM taskq.rate_limits', 'SELECT count(*) > 0 FROM taskq.rate_limit_status',
        'SELECT taskq.register_reservation(''new slots'', 2, ''1 min'')', 'SELECT taskq.register_reservation(''new slots'', 1, ''1 min'', replace => true)', 'SELECT deleted FROM taskq.sync_slots()',
        'SELECT taskq.drop_reservation(''new slots'')', 'SELECT count(*) > 0 FROM taskq.reservations', 'SELECT count(*) > 0 FROM taskq.reservation_status',
        'SELECT count(*) > 0 FROM taskq.rate_limit_stats', 'SELECT taskq.reset_stats()',
        'SELECT taskq.set_queue_max_concurrent(''new queue'', 2)', 'SELECT max_concurrent FROM taskq.queues WHERE name = ''new queue''',
        'SELECT taskq.set_queue_max_concurrent(''new queue'', NULL)', 'SELECT taskq.register_actor(''new actor'')',
        'SELECT queue FROM taskq.actors WHERE actor = ''new actor''', 'SELECT taskq.drop_actor(''new actor'')'] LOOP
        BEGIN
            EXECUTE call INTO result;
        EXCEPTION WHEN OTHERS THEN
            result := SQLSTATE || ': ' || SQLERRM;
        END;
        RETURN NEXT;
    END LOOP;
END $$;
GRANT EXECUTE ON FUNCTION pg_temp.as_client(), pg_temp.as_operator() TO PUBLIC;
SET SESSION AUTHORIZATION regress_taskq_client;
SELECT * FROM pg_temp.as_client();
SELECT * FROM pg_temp.as_operator();

-- Tables are closed to clients, in every way.
SELECT * FROM taskq.rate_limit_buckets;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM taskq.rate_limits;
SELECT * FROM taskq.rate_limit_status;
UPDATE taskq.rate_limit_buckets SET used = 0;
DELETE FROM taskq.rate_limit_refunds;
INSERT INTO taskq.rate_limits (name) VALUES ('x');
TRUNCATE taskq.rate_limit_window_entries;
SELECT * FROM taskq.reservation_slots;
SELECT * FROM taskq.reservation_status;
SELECT * FROM taskq.actors;
UPDATE taskq.queues SET max_concurrent = 100;
SELECT * FROM taskq.actor_tickets;
SELECT nextval('taskq.reservation_fence');
SELECT nextval('taskq.rate_limit_id');

-- Nor can a client set the clock.
SET taskq_ratelimit.test_clock = '1800000000';
\echo :LAST_ERROR_SQLSTATE
RESET taskq_ratelimit.test_clock;
SELECT set_config('taskq_ratelimit.test_clock', '', true);
RESET SESSION AUTHORIZATION;

-- Each function as an operator.
SET SESSION AUTHORIZATION regress_taskq_operator;
SELECT * FROM pg_temp.as_operator();
SELECT count(*) FILTER (WHERE result LIKE '42%') FROM pg_temp.as_client();
SELECT * FROM taskq.rate_limit_buckets;
UPDATE taskq.rate_limits SET shadow = true;
SELECT taskq.grant_usage('regress_taskq_operator', 'operator');
RESET SESSION AUTHORIZATION;

-- A monitor looks and does nothing else.
SET SESSION AUTHORIZATION regress_taskq_monitor;
SELECT call, result FROM pg_temp.as_client() WHERE result NOT LIKE '42501%';
SELECT call, result FROM pg_temp.as_operator() WHERE result NOT LIKE '42501%';
SELECT count(*) FROM taskq.rate_limits WHERE name = 'tb';
RESET SESSION AUTHORIZATION;

-- B073: a client who puts tables, functions, operators and types of the same names in front gets the same answers, and none of them is used.
CREATE SCHEMA evil AUTHORIZATION regress_taskq_client;
GRANT CREATE ON SCHEMA evil TO regress_taskq_client;
SET SESSION AUTHORIZATION regress_taskq_client;
CREATE FUNCTION evil.boom() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the attacker''s code ran as %', current_user; END $$;
CREATE FUNCTION evil.equal(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT evil.boom()';
CREATE FUNCTION evil.equal(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT evil.boom()';
CREATE FUNCTION evil.equal(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT evil.boom()';
CREATE FUNCTION evil.equal(boolean, boolean) RETURNS boolean LANGUAGE sql AS 'SELECT evil.boom()';
CREATE FUNCTION evil.equal(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS 'SELECT evil.boom()';
CREATE OPERATOR evil.= (FUNCTION = evil.equal, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR evil.<> (FUNCTION = evil.equal, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR evil.= (FUNCTION = evil.equal, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR evil.+ (FUNCTION = evil.equal, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR evil.= (FUNCTION = evil.equal, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR evil.= (FUNCTION = evil.equal, LEFTARG = boolean, RIGHTARG = boolean);
CREATE OPERATOR evil.< (FUNCTION = evil.equal, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE OPERATOR evil.<= (FUNCTION = evil.equal, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE FUNCTION evil.to_jsonb(taskq.rate_limit_decision) RETURNS jsonb LANGUAGE sql AS 'SELECT to_jsonb(evil.boom())';
CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT CASE WHEN evil.boom() THEN now() END';
CREATE FUNCTION evil.nextval(text) RETURNS bigint LANGUAGE sql AS 'SELECT evil.boom()::int::bigint';
CREATE FUNCTION evil.peek(text, text) RETURNS taskq.rate_limit_state LANGUAGE plpgsql AS $$ BEGIN PERFORM evil.boom(); END $$;
CREATE FUNCTION evil.acquire(text, float8, text) RETURNS taskq.rate_limit_decision LANGUAGE plpgsql AS $$ BEGIN PERFORM evil.boom(); END $$;
CREATE TYPE evil.text AS (x int);
CREATE TYPE evil.float8 AS (x int);
CREATE TYPE evil.timestamptz AS (x int);
CREATE TEMPORARY TABLE rate_limits (name int);
CREATE TEMPORARY TABLE rate_limit_buckets (name int);
CREATE TEMPORARY TABLE rate_limit_window_entries (name int);
CREATE TEMPORARY TABLE rate_limit_refunds (name int);
CREATE TEMPORARY TABLE reservations (name int);
CREATE TEMPORARY TABLE reservation_slots (name int);
CREATE TEMPORARY TABLE queues (name int);
CREATE TEMPORARY TABLE actors (name int);
CREATE TEMPORARY TABLE actor_tickets (name int);
CREATE TEMPORARY TABLE pg_class (name int);
CREATE TEMPORARY TABLE pg_proc (name int);
SET search_path = evil, pg_temp, taskq, pg_catalog;
SELECT count(*), count(*) FILTER (WHERE result LIKE '_____: %') FROM pg_temp.as_client();
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION regress_taskq_operator;
SELECT count(*), count(*) FILTER (WHERE result LIKE '_____: %') FROM pg_temp.as_operator() WHERE call NOT LIKE '%new tb%5, 1)' AND call NOT LIKE '%reset_stats%';
RESET SESSION AUTHORIZATION;
SELECT taskq.grant_usage('regress_taskq_monitor', 'monitor'), taskq.grant_usage('regress_taskq_operator', 'operator'), taskq.grant_usage('regress_taskq_client', 'client');
RESET search_path;

-- Whatever runs with the owner's rights has its search_path pinned, pg_temp last.
SELECT proname, proconfig FROM pg_catalog.pg_proc WHERE pronamespace = 'taskq'::regnamespace AND prosecdef;

-- In a new session, too, a client cannot bring a clock along: the setting is dropped when the library is loaded, and time is real.
ALTER ROLE regress_taskq_client LOGIN;
\c - regress_taskq_client
SET taskq_ratelimit.test_clock = '1700000000';
SELECT abs(extract(epoch FROM decided_at - clock_timestamp())) < 60 AS real_time FROM taskq.preview('tb');
SHOW taskq_ratelimit.test_clock;

\c - postgres
SET client_min_messages = warning;
DROP SCHEMA evil CASCADE;
DROP OWNED BY regress_taskq_nobody, regress_taskq_client, regress_taskq_operator, regress_taskq_monitor, "regress_taskq odd ""name""";
DROP ROLE regress_taskq_nobody, regress_taskq_client, regress_taskq_operator, regress_taskq_monitor, "regress_taskq odd ""name""";
SELECT count(*) > 0 AS dropped FROM (SELECT taskq.drop_rate_limit(name)::text FROM taskq.rate_limits) AS s;
SELECT taskq.drop_reservation('slots'), taskq.drop_actor('act'), taskq.drop_actor('dry');
DELETE FROM taskq.queues;
