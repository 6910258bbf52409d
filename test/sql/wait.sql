-- CALL wait(): returns when it is the caller's turn, or denied at the time-out. It needs the real clock.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
SELECT taskq.register_token_bucket('fast', 2, 4), taskq.register_fixed_window('fw', 1, '100 ms'), taskq.register_sliding_window('log', 1, '500 ms'),
       taskq.register_token_bucket('slow', 1, refill_amount => 1, refill_period => '1 min'), taskq.register_token_bucket('quota', 1, 0);
CREATE FUNCTION pg_temp.shown(allowed boolean, waited interval, reason text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN allowed THEN 'in ' ELSE 'out ' END || CASE WHEN waited < interval '250 ms' THEN 'soon' WHEN waited > interval '20 s' THEN 'very late' ELSE 'later' END || ', ' || reason
$$;

-- What is there is had at once; a bucket then gives an instant to go at, a window is tried again when it has room. B083: no longer wait than the time-out allows is begun.
DO $$
DECLARE
    allowed boolean; remaining float8; waited interval; retry interval; reason text; slot integer; fence bigint; lease_end timestamptz;
BEGIN
    CALL taskq.wait('fast', 2, '', NULL, allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%', pg_temp.shown(allowed, waited, reason);
    CALL taskq.wait('fast', 2, '', NULL, allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%', pg_temp.shown(allowed, waited, reason);
    CALL taskq.wait('fw', 1, '', NULL, allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    CALL taskq.wait('fw', 1, '', NULL, allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%, %', allowed, reason;
    CALL taskq.wait('log', 1, '', NULL, allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    CALL taskq.wait('log', 1, '', NULL, allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%', pg_temp.shown(allowed, waited, reason);
    CALL taskq.wait('slow', 1, '', '50 ms', allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%, retry %', pg_temp.shown(allowed, waited, reason), retry;
    CALL taskq.wait('slow', 1, '', '50 ms', allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%, retry in a minute: %', pg_temp.shown(allowed, waited, reason), retry BETWEEN '58 s' AND '1 min';
    CALL taskq.wait('quota', 1, '', NULL, allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    CALL taskq.wait('quota', 1, '', NULL, allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%, retry %', pg_temp.shown(allowed, waited, reason), retry;
END $$;

-- Nothing was consumed by who was denied, and a time-out of zero is a single try.
SELECT remaining < 0.2 AS empty, reset_after < interval '61 s' AS one_spent FROM taskq.peek('slow');
DO $$
DECLARE
    allowed boolean; remaining float8; waited interval; retry interval; reason text; slot integer; fence bigint; lease_end timestamptz;
BEGIN
    CALL taskq.wait('quota', 1, '', '0', allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%, retry %', pg_temp.shown(allowed, waited, reason), retry;
END $$;

-- A pause that never ends is waited for until the time-out; one that ends is slept through.
SELECT taskq.pause('fast', 'infinity');
DO $$
DECLARE
    allowed boolean; remaining float8; waited interval; retry interval; reason text; slot integer; fence bigint; lease_end timestamptz;
BEGIN
    CALL taskq.wait('fast', 1, '', '50 ms', allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%, waited long enough: %', pg_temp.shown(allowed, waited, reason), waited >= '50 ms';
    PERFORM taskq.pause('fast', clock_timestamp() + interval '500 ms');
    COMMIT;
    CALL taskq.wait('fast', 1, '', NULL, allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%', pg_temp.shown(allowed, waited, reason);
END $$;

-- Who is cancelled while it waits hands its place back.
SELECT taskq.reset('slow'), taskq.allow('slow');
SET statement_timeout = '100 ms';
CALL taskq.wait('slow');
\echo :LAST_ERROR_SQLSTATE
RESET statement_timeout;
SELECT reset_after < interval '61 s' AS one_spent FROM taskq.peek('slow');

SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;

-- A key for which there is no room is waited for, too: somebody else's may become idle.
SELECT taskq.register_token_bucket('capped', 1, 0, keyed => true, max_keys => 1);
SELECT taskq.allow('capped', key => 'a');
DO $$ DECLARE allowed boolean; remaining float8; waited interval; retry_after interval; reason text; slot integer; fence bigint; lease_end timestamptz; BEGIN
    CALL taskq.wait('capped', 1, 'b', '20 ms', allowed, remaining, waited, retry_after, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '% % %', allowed, reason, waited >= '20 ms';
END $$;
SELECT taskq.drop_rate_limit('capped');
