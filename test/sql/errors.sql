-- Every argument that cannot mean anything is an error with SQLSTATE, message, detail and hint, and changes nothing.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
SET taskq_ratelimit.test_clock = '1700000000';
CREATE FUNCTION pg_temp.error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text;
    detail text;
    hint text;
BEGIN
    EXECUTE statement;
    RETURN E'NO ERROR\n';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN format(E'%s: %s\n  %s\n  %s\n', SQLSTATE, message, detail, hint);
END $$;
-- What each statement raises.
CREATE FUNCTION pg_temp.errors_of(VARIADIC statements text[]) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT s || E'\n' || pg_temp.error_of(s) FROM unnest(statements) AS s
$$;
SELECT taskq.register_token_bucket('tb', 5, 1), taskq.register_leaky_bucket('lb', 5, 1), taskq.register_sliding_window('log', 5, '10 s'),
       taskq.register_sliding_window('gcra', 5, '10 s', 'gcra'), taskq.register_sliding_window('counter', 5, '10 s', 'counter'),
       taskq.register_fixed_window('fw', 5, '10 s'), taskq.register_token_bucket('keyed', 5, 1, keyed => true);
SELECT taskq.allow('tb', 2), taskq.allow('lb', 2), taskq.allow('log', 2), taskq.allow('gcra', 2), taskq.allow('counter', 2), taskq.allow('fw', 2),
       taskq.allow('keyed', 2, 'k');
CREATE TEMPORARY TABLE before AS SELECT * FROM taskq.peek_all();
CREATE TEMPORARY TABLE limits_before AS SELECT * FROM taskq.rate_limits;
CREATE TEMPORARY TABLE entries_before AS SELECT * FROM taskq.rate_limit_window_entries;
\pset format unaligned
\pset tuples_only

-- Capacities of buckets.
SELECT pg_temp.errors_of(
    'SELECT taskq.register_token_bucket(''x'', ''NaN'', 1)',
    'SELECT taskq.register_token_bucket(''x'', ''Infinity'', 1)',
    'SELECT taskq.register_token_bucket(''x'', -1, 1)',
    'SELECT taskq.register_token_bucket(''x'', 0, 1)',
    'SELECT taskq.register_token_bucket(''x'', 1e300, 1)',
    'SELECT taskq.register_token_bucket(''x'', 0.0000001, 1)',
    'SELECT taskq.register_leaky_bucket(''x'', ''-Infinity'', 1)',
    'SELECT taskq.register_leaky_bucket(''x'', 0, 1)');

-- Refill rates.
SELECT pg_temp.errors_of(
    'SELECT taskq.register_token_bucket(''x'', 1, ''NaN'')',
    'SELECT taskq.register_token_bucket(''x'', 1, ''Infinity'')',
    'SELECT taskq.register_token_bucket(''x'', 1, -1)',
    'SELECT taskq.register_token_bucket(''x'', 1, 1e300)',
    'SELECT taskq.register_token_bucket(''x'', 1, 1e-300)',
    'SELECT taskq.register_token_bucket(''x'', 1e9, 0.0001)',
    'SELECT taskq.register_leaky_bucket(''x'', 1, ''NaN'')');

-- The rate in one of two ways: not in none, not in both, not in half of one.
SELECT pg_temp.errors_of(
    'SELECT taskq.register_token_bucket(''x'', 1)',
    'SELECT taskq.register_token_bucket(''x'', 1, 1, refill_amount => 1, refill_period => ''1 s'')',
    'SELECT taskq.register_token_bucket(''x'', 1, 1, refill_period => ''1 s'')',
    'SELECT taskq.register_token_bucket(''x'', 1, refill_amount => 1)',
    'SELECT taskq.register_token_bucket(''x'', 1, refill_period => ''1 s'')',
    'SELECT taskq.register_leaky_bucket(''x'', 1)');

-- Refills in a period.
SELECT pg_temp.errors_of(
    'SELECT taskq.register_token_bucket(''x'', 1, refill_amount => ''NaN'', refill_period => ''1 s'')',
    'SELECT taskq.register_token_bucket(''x'', 1, refill_amount => -1, refill_period => ''1 s'')',
    'SELECT taskq.register_token_bucket(''x'', 1, refill_amount => 1, refill_period => ''0'')',
    'SELECT taskq.register_token_bucket(''x'', 1, refill_amount => 1, refill_period => ''-1 s'')',
    'SELECT taskq.register_token_bucket(''x'', 1, refill_amount => 1, refill_period => ''1 month'')',
    'SELECT taskq.register_token_bucket(''x'', 1, refill_amount => 1, refill_period => ''1000000 days'')');

-- Windows: how much, for how long. A fraction of a call cannot even be written.
SELECT pg_temp.errors_of(
    'SELECT taskq.register_sliding_window(''x'', 0, ''1 s'')',
    'SELECT taskq.register_sliding_window(''x'', -1, ''1 s'')',
    'SELECT taskq.register_sliding_window(''x'', 9223372036854775807, ''1 s'')',
    'SELECT taskq.register_sliding_window(''x'', 4503599627370496, ''30 days'', ''counter'')',
    'SELECT taskq.register_sliding_window(''x'', 4503599627370496, ''30 days'', ''gcra'')',
    'SELECT taskq.register_sliding_window(''x'', 1, ''0'')',
    'SELECT taskq.register_sliding_window(''x'', 1, ''-1 s'')',
    'SELECT taskq.register_sliding_window(''x'', 1, ''1 month'')',
    'SELECT taskq.register_sliding_window(''x'', 1, ''1 year 1 day'')',
    'SELECT taskq.register_sliding_window(''x'', 1, ''1000000 days'')',
    'SELECT taskq.register_fixed_window(''x'', 0, ''1 s'')',
    'SELECT taskq.register_fixed_window(''x'', 1, ''0'')',
    'SELECT taskq.register_fixed_window(''x'', 1, ''2 mons'')');
SELECT pg_temp.errors_of('SELECT taskq.register_fixed_window(''x'', 1.5, ''1 s'')');

-- Style, storage, inherit, anchor.
SELECT pg_temp.errors_of(
    'SELECT taskq.register_sliding_window(''x'', 1, ''1 s'', ''gauss'')',
    'SELECT taskq.register_sliding_window(''x'', 1, ''1 s'', '''')',
    'SELECT taskq.register_token_bucket(''x'', 1, 1, storage => ''disk'')',
    'SELECT taskq.register_token_bucket(''x'', 1, 1, inherit => ''nothing'')',
    'SELECT taskq.register_sliding_window(''x'', 1, ''1 s'', ''log'', anchor => ''epoch'')',
    'SELECT taskq.register_sliding_window(''x'', 1, ''1 s'', ''gcra'', anchor => ''epoch'')',
    'SELECT taskq.register_fixed_window(''x'', 1, ''1 s'', anchor => ''infinity'')');

-- Names.
SELECT pg_temp.errors_of(
    'SELECT taskq.register_token_bucket('''', 1, 1)',
    'SELECT taskq.register_token_bucket(repeat(''x'', 256), 1, 1)',
    'SELECT taskq.register_token_bucket(repeat(''é'', 128), 1, 1)',
    'SELECT taskq.register_token_bucket(E''a\nb'', 1, 1)',
    'SELECT taskq.register_token_bucket(E''a\x7f'', 1, 1)',
    'SELECT taskq.register_token_bucket(U&''a\009b2J'', 1, 1)',
    'SELECT taskq.register_token_bucket(''taskq:x'', 1, 1)',
    'SELECT taskq.register_fixed_window(''taskq:'', 1, ''1 s'')',
    'SELECT taskq.acquire_fixed_window(''taskq:x'', 1, ''1 s'')',
    'SELECT taskq.acquire('''')',
    'SELECT taskq.peek(repeat(''x'', 256))');

-- Unknown limits.
SELECT pg_temp.errors_of(
    'SELECT taskq.acquire(''nope'')',
    'SELECT taskq.peek(''nope'')',
    'SELECT taskq.refund(''nope'', 1)',
    'SELECT taskq.reset(''nope'')',
    'SELECT taskq.pause(''nope'', ''infinity'')',
    'SELECT taskq.resume(''nope'')',
    'SELECT taskq.drop_rate_limit(''nope'')',
    'SELECT taskq.acquire_many(''{tb,nope}'')',
    'SELECT taskq.refund((true, 1, ''0'', ''nope'', ''postgres'', NULL, '''', 1, 5, ''0'', ''0'', ''ok'', 0, 0, now())::taskq.rate_limit_decision)');

-- Keys.
SELECT pg_temp.errors_of(
    'SELECT taskq.acquire(''keyed'')',
    'SELECT taskq.acquire(''tb'', key => ''k'')',
    'SELECT taskq.peek(''keyed'')',
    'SELECT taskq.peek(''tb'', ''k'')',
    'SELECT taskq.reset(''keyed'')',
    'SELECT taskq.refund(''tb'', 1, ''k'')',
    'SELECT taskq.pause(''tb'', ''k'', ''infinity'')',
    'SELECT taskq.acquire(''keyed'', key => repeat(''k'', 1025))',
    'SELECT taskq.acquire(''keyed'', key => repeat(''é'', 513))');

-- Costs of buckets.
SELECT pg_temp.errors_of(
    'SELECT taskq.acquire(''tb'', ''NaN'')',
    'SELECT taskq.acquire(''tb'', ''Infinity'')',
    'SELECT taskq.acquire(''tb'', ''-Infinity'')',
    'SELECT taskq.acquire(''tb'', -1)',
    'SELECT taskq.acquire(''tb'', 0)',
    'SELECT taskq.acquire(''tb'', 0.0000001)',
    'SELECT taskq.acquire(''tb'', 5.000001)',
    'SELECT taskq.acquire(''tb'', 1e300)',
    'SELECT taskq.preview(''tb'', 6)',
    'SELECT taskq.reserve(''tb'', 6)',
    'SELECT taskq.reserve(''tb'', 1, ''-1 s'')',
    'SELECT taskq.charge(''tb'', -1)',
    'SELECT taskq.refund(''tb'', 0)',
    'SELECT taskq.refund(''tb'', ''NaN'')',
    'SELECT taskq.acquire(''lb'', 6)',
    'SELECT taskq.acquire_token_bucket(''adhoc'', 5, 1, cost => 6)',
    'SELECT taskq.acquire_token_bucket(''adhoc'', 0, 1)');

-- Costs of windows: whole calls, up to the limit.
SELECT pg_temp.errors_of(
    'SELECT taskq.acquire(''log'', 1.5)',
    'SELECT taskq.acquire(''log'', 6)',
    'SELECT taskq.acquire(''gcra'', 0.5)',
    'SELECT taskq.acquire(''gcra'', 6)',
    'SELECT taskq.acquire(''counter'', 6)',
    'SELECT taskq.acquire(''counter'', ''NaN'')',
    'SELECT taskq.acquire(''fw'', 1.000001)',
    'SELECT taskq.acquire(''fw'', 6)',
    'SELECT taskq.charge(''fw'', 1.5)',
    'SELECT taskq.refund(''log'', 1.5)',
    'SELECT taskq.reserve(''log'')',
    'SELECT taskq.reserve(''fw'')');

-- NULL where a value is needed: it is never a quiet NULL.
SELECT count(*), string_agg(DISTINCT left(pg_temp.error_of(statement), 6), ' '), string_agg(DISTINCT substring(pg_temp.error_of(statement), 'must not be null'), ' ') FROM unnest(ARRAY[
    'SELECT taskq.register_token_bucket(NULL, 1, 1)', 'SELECT taskq.register_token_bucket(''x'', NULL, 1)',
    'SELECT taskq.register_token_bucket(''x'', 1, 1, keyed => NULL)', 'SELECT taskq.register_token_bucket(''x'', 1, 1, storage => NULL)',
    'SELECT taskq.register_token_bucket(''x'', 1, 1, shadow => NULL)', 'SELECT taskq.register_token_bucket(''x'', 1, 1, replace => NULL)',
    'SELECT taskq.register_token_bucket(''x'', 1, 1, inherit => NULL)', 'SELECT taskq.register_leaky_bucket(''x'', NULL, 1)',
    'SELECT taskq.register_sliding_window(NULL, 1, ''1 s'')', 'SELECT taskq.register_sliding_window(''x'', NULL, ''1 s'')',
    'SELECT taskq.register_sliding_window(''x'', 1, NULL)', 'SELECT taskq.register_sliding_window(''x'', 1, ''1 s'', NULL)',
    'SELECT taskq.register_fixed_window(''x'', 1, NULL)', 'SELECT taskq.register_fixed_window(''x'', NULL, ''1 s'')',
    'SELECT taskq.acquire(NULL)', 'SELECT taskq.acquire(''tb'', NULL)', 'SELECT taskq.acquire(''tb'', 1, NULL)', 'SELECT taskq.allow(NULL)',
    'SELECT taskq.allow(''tb'', NULL)', 'SELECT taskq.acquire_json(NULL)', 'SELECT taskq.acquire_json(''tb'', NULL)', 'SELECT taskq.require(NULL)',
    'SELECT taskq.require(''tb'', 1, NULL)', 'SELECT taskq.preview(NULL)', 'SELECT taskq.preview(''tb'', NULL)', 'SELECT taskq.reserve(NULL)',
    'SELECT taskq.reserve(''tb'', NULL)', 'SELECT taskq.charge(NULL)', 'SELECT taskq.charge(''tb'', NULL)', 'SELECT taskq.refund(NULL, 1)',
    'SELECT taskq.refund(''tb'', NULL)', 'SELECT taskq.refund(''tb'', 1, NULL)', 'SELECT taskq.refund(NULL::taskq.rate_limit_decision)',
    'SELECT taskq.settle(NULL, 1)', 'SELECT taskq.acquire_many(NULL)', 'SELECT taskq.acquire_many(ARRAY[NULL])', 'SELECT taskq.acquire_many(''{tb,NULL}'')',
    'SELECT taskq.acquire_many(''{tb}'', ''{NULL}'')', 'SELECT taskq.acquire_many(''{tb}'', keys => ''{NULL}'')', 'SELECT taskq.acquire_token_bucket(NULL, 1, 1)',
    'SELECT taskq.acquire_token_bucket(''x'', NULL, 1)', 'SELECT taskq.acquire_token_bucket(''x'', 1, NULL)', 'SELECT taskq.acquire_token_bucket(''x'', 1, 1, NULL)',
    'SELECT taskq.acquire_token_bucket(''x'', 1, 1, 1, NULL)', 'SELECT taskq.acquire_leaky_bucket(''x'', 1, NULL)', 'SELECT taskq.acquire_sliding_window(''x'', 1, NULL)',
    'SELECT taskq.acquire_sliding_window(''x'', 1, ''1 s'', NULL)', 'SELECT taskq.acquire_fixed_window(''x'', NULL, ''1 s'')', 'SELECT taskq.peek(NULL)',
    'SELECT taskq.peek(''tb'', NULL)', 'SELECT taskq.remaining(NULL)', 'SELECT taskq.reset_after(NULL)', 'SELECT taskq.reset(NULL)', 'SELECT taskq.reset(''tb'', NULL)',
    'SELECT taskq.pause(NULL, ''infinity'')', 'SELECT taskq.pause(''tb'', NULL::timestamptz)', 'SELECT taskq.pause(''tb'', NULL, ''infinity'')', 'SELECT taskq.pause(''tb'', '''', NULL)',
    'SELECT taskq.resume(NULL)', 'SELECT taskq.resume(''tb'', NULL)', 'SELECT taskq.evict_idle(NULL)', 'SELECT taskq.http_headers(NULL)', 'SELECT taskq.drop_rate_limit(NULL)',
    'SELECT taskq.grant_usage(NULL, ''client'')', 'SELECT taskq.grant_usage(''pg_monitor'', NULL)']) AS statement;
SELECT pg_temp.errors_of('SELECT taskq.acquire(NULL)');

-- A pause has an end, or none, but not a beginning; nobody is idle for less than nothing.
SELECT pg_temp.errors_of(
    'SELECT taskq.pause(''tb'', ''-infinity'')',
    'SELECT taskq.pause(''keyed'', ''k'', ''-infinity'')',
    'SELECT taskq.evict_idle(''-1 s'')',
    'SELECT taskq.evict_idle(''1 month'')',
    'SELECT taskq.grant_usage(''pg_monitor'', ''everything'')');

-- Decisions that acquire never gave, and true costs that are none.
CREATE FUNCTION pg_temp.forged(field text, value text) RETURNS taskq.rate_limit_decision LANGUAGE sql AS $$
    SELECT jsonb_populate_record(NULL::taskq.rate_limit_decision,
        '{"allowed": true, "remaining": 3, "retry_after": "0", "bucket_name": "tb", "backend": "postgres", "key": "", "cost": 2, "quota": 5, "reset_after": "2 s",
          "delay": "0", "reason": "ok", "retry_after_seconds": 0, "reset_after_seconds": 2, "decided_at": "2023-11-14 22:13:20+00"}'::jsonb || jsonb_build_object(field, value))
$$;
SELECT pg_temp.errors_of(
    'SELECT taskq.refund(pg_temp.forged(''bucket_name'', NULL))',
    'SELECT taskq.refund(pg_temp.forged(''allowed'', NULL))',
    'SELECT taskq.refund(pg_temp.forged(''cost'', NULL))',
    'SELECT taskq.refund(pg_temp.forged(''cost'', ''NaN''))',
    'SELECT taskq.refund(pg_temp.forged(''cost'', ''-2''))',
    'SELECT taskq.refund(pg_temp.forged(''remaining'', ''NaN''))',
    'SELECT taskq.refund(pg_temp.forged(''remaining'', ''-1''))',
    'SELECT taskq.refund(pg_temp.forged(''decided_at'', ''infinity''))',
    'SELECT taskq.refund(pg_temp.forged(''decided_at'', NULL))',
    'SELECT taskq.refund(pg_temp.forged(''delay'', ''1 month''))',
    'SELECT taskq.refund(pg_temp.forged(''reset_after'', ''-1 s''))',
    'SELECT taskq.refund(pg_temp.forged(''key'', ''k''))',
    'SELECT taskq.refund(pg_temp.forged(''key'', repeat(''k'', 1025)))',
    'SELECT taskq.settle(pg_temp.forged(''key'', ''''), -1)',
    'SELECT taskq.settle(pg_temp.forged(''key'', ''''), ''NaN'')',
    'SELECT taskq.settle(pg_temp.forged(''key'', ''''), ''Infinity'')',
    'SELECT taskq.settle(pg_temp.forged(''key'', ''''), NULL)',
    'SELECT taskq.settle(pg_temp.forged(''bucket_name'', ''fw''), 1.5)',
    'SELECT taskq.refund(''not a decision'')');

-- Lists of different lengths.
SELECT pg_temp.errors_of(
    'SELECT taskq.acquire_many(''{tb,lb,fw}'', ''{1,2}'')',
    'SELECT taskq.acquire_many(''{tb,lb}'', keys => ''{a,b,c}'')',
    'SELECT taskq.acquire_many(''{tb,lb}'', ''{1,6}'')');

-- wait() checks its arguments before it waits, and does not run in a transaction block.
CALL taskq.wait('tb');
RESET taskq_ratelimit.test_clock;
CALL taskq.wait('tb', 6);
\echo :LAST_ERROR_SQLSTATE
CALL taskq.wait('tb', timeout => '-1 s');
CALL taskq.wait('tb', timeout => '1 month');
CALL taskq.wait('nope');
CALL taskq.wait(NULL);
CALL taskq.wait('keyed');
BEGIN;
CALL taskq.wait('tb');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

-- A cap on keys is a number above 0, for what has keys.
SELECT taskq.register_token_bucket('x', 1, 1, keyed => true, max_keys => 0);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_leaky_bucket('x', 1, 1, max_keys => 5);
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.register_sliding_window('x', 1, '1 s', max_keys => -1);
SELECT taskq.register_fixed_window('x', 1, '1 s', max_keys => 5);

-- After all this no limit, no bucket, no entry has changed.
SET taskq_ratelimit.test_clock = '1700000000';
SELECT count(*) AS different FROM (SELECT * FROM before EXCEPT SELECT * FROM taskq.peek_all()) AS s;
SELECT count(*) AS more FROM (SELECT * FROM taskq.peek_all() EXCEPT SELECT * FROM before) AS s;
SELECT count(*) AS different FROM (SELECT * FROM limits_before EXCEPT SELECT * FROM taskq.rate_limits) AS s;
SELECT count(*) AS more FROM (SELECT * FROM taskq.rate_limits EXCEPT SELECT * FROM limits_before) AS s;
SELECT count(*) AS different FROM (SELECT * FROM entries_before EXCEPT SELECT * FROM taskq.rate_limit_window_entries) AS s;
SELECT count(*) FROM taskq.rate_limit_refunds;
SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;
