-- The settings: their defaults, what they take, and that the prefix is ours.
SELECT taskq.version() = extversion AS same_version FROM pg_extension WHERE extname = 'taskq_ratelimit';
SELECT name, setting, unit, context, vartype, min_val, max_val, boot_val, short_desc, extra_desc FROM pg_settings WHERE name LIKE 'taskq_ratelimit.%' ORDER BY name \gx

-- Time-outs have units and are not negative.
SHOW taskq_ratelimit.lock_timeout;
SET taskq_ratelimit.lock_timeout = '2s';
SHOW taskq_ratelimit.lock_timeout;
SET taskq_ratelimit.lock_timeout = 0;
SHOW taskq_ratelimit.lock_timeout;
SET taskq_ratelimit.lock_timeout = -1;
SET taskq_ratelimit.lock_timeout = 'soon';
RESET taskq_ratelimit.lock_timeout;
SHOW taskq_ratelimit.lock_timeout;

-- Caps on keys are numbers, 0 for none, and only a superuser sets them: whoever they are for must not lift them.
SHOW taskq_ratelimit.max_keys_per_limit;
SHOW taskq_ratelimit.max_keys_per_reservation;
SET taskq_ratelimit.max_keys_per_limit = -1;
SET taskq_ratelimit.max_keys_per_limit = 0;
CREATE ROLE regress_taskq_capped;
SET ROLE regress_taskq_capped;
SET taskq_ratelimit.max_keys_per_limit = 0;
\echo :LAST_ERROR_SQLSTATE
SET taskq_ratelimit.max_keys_per_reservation = 0;
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
DROP ROLE regress_taskq_capped;
RESET taskq_ratelimit.max_keys_per_limit;

-- The test clock takes seconds since 1970 with at most six decimals.
SET taskq_ratelimit.test_clock = '1700000000.123456';
SELECT taskq.register_token_bucket('tb', 5, 1);
SELECT extract(epoch FROM decided_at) FROM taskq.preview('tb');
SET taskq_ratelimit.test_clock = '-1.5';
SELECT extract(epoch FROM decided_at) FROM taskq.preview('tb');
SET taskq_ratelimit.test_clock = '0';
SELECT extract(epoch FROM decided_at) FROM taskq.preview('tb');
SET taskq_ratelimit.test_clock = '99999999999';
SELECT extract(epoch FROM decided_at) FROM taskq.preview('tb');
SET taskq_ratelimit.test_clock = '1700000000.1234567';
SET taskq_ratelimit.test_clock = '1e9';
SET taskq_ratelimit.test_clock = '1700000000.';
SET taskq_ratelimit.test_clock = '.5';
SET taskq_ratelimit.test_clock = ' 1';
SET taskq_ratelimit.test_clock = '2023-11-14';
SET taskq_ratelimit.test_clock = 'NaN';
SET taskq_ratelimit.test_clock = '9999999999999999999999999';
SHOW taskq_ratelimit.test_clock;

-- Empty, or reset, it is the real clock.
SET taskq_ratelimit.test_clock = '';
SELECT abs(extract(epoch FROM decided_at - clock_timestamp())) < 60 AS real_time FROM taskq.preview('tb');
RESET taskq_ratelimit.test_clock;
SELECT abs(extract(epoch FROM decided_at - clock_timestamp())) < 60 AS real_time FROM taskq.preview('tb');

-- It goes back with the transaction, and may be set for one only.
BEGIN;
SET LOCAL taskq_ratelimit.test_clock = '1800000000';
SELECT extract(epoch FROM decided_at) FROM taskq.preview('tb');
COMMIT;
SELECT abs(extract(epoch FROM decided_at - clock_timestamp())) < 60 AS real_time FROM taskq.preview('tb');

-- A name that does not exist is an error, and one set before the library was loaded is taken away with a warning.
SET taskq_ratelimit.lock_timout = '1s';
\echo :LAST_ERROR_SQLSTATE
\c -
SET taskq_ratelimit.lock_timout = '1s';
SELECT taskq.drop_rate_limit('tb');
SHOW taskq_ratelimit.lock_timout;
