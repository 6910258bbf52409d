-- Cases from the field: clocks that step, jitter, stand still or go far.
BEGIN;
\ir helpers.psql
SELECT plan(35);

-- The clock steps back by a minute: nobody waits longer than one full refill or one window, and nothing is granted for it.
SELECT clock_starts(1700000000) \g /dev/null
SELECT taskq.register_token_bucket('b033 tb', 5, 1), taskq.register_leaky_bucket('b033 lb', 5, 1), taskq.register_fixed_window('b033 fw', 5, '60 s'),
       taskq.register_sliding_window('b033 swl', 5, '60 s'), taskq.register_sliding_window('b033 gcra', 5, '5 s', 'gcra'),
       taskq.register_sliding_window('b033 swc', 5, '60 s', 'counter') \g /dev/null
SELECT at(100) \g /dev/null
SELECT is(calls(5, name), 'ok 4; ok 3; ok 2; ok 1; ok 0', 'B033 ' || name || ' is spent') FROM taskq.rate_limits WHERE name LIKE 'b033%' ORDER BY limit_id;
SELECT at(40) \g /dev/null
SELECT is(a('b033 tb'), 'deny 0, 1', 'B033 the token bucket waits for one token');
SELECT is(a('b033 lb'), 'deny 0, 1', 'B033 so does the leaky bucket');
SELECT is(a('b033 gcra'), 'deny 0, 1', 'B033 and gcra');
SELECT is(a('b033 swl'), 'deny 0, 60', 'B033 entries of the future count as entries of now');
SELECT is(a('b033 fw'), 'deny 0, 20', 'B033 the fixed window waits for the end of the window that holds now');
SELECT cmp_ok((SELECT retry_after FROM taskq.acquire('b033 swc')), '<=', interval '60 seconds', 'B033 two counters wait no longer than a window');
SELECT is(a_at(41, 'b033 tb') || '; ' || a('b033 lb') || '; ' || a('b033 gcra'), 'ok 0; ok 0; ok 0', 'B033 the waits of the meters were honest');
SELECT is(a_at(99.999999, 'b033 swl') || '; ' || a_at(100, 'b033 swl'), 'deny 0, 0.000001; ok 4', 'B033 so was that of the log');
SELECT is(a_at(60, 'b033 fw'), 'ok 4', 'B033 and that of the fixed window');

-- Entries of the future that became entries of now leave with their window, also when others have come after them.
SELECT clock_starts(1700000000), taskq.register_sliding_window('b033 later', 5, '60 s'), at(98) \g /dev/null
SELECT is(a('b033 later') || '; ' || a_at(99, 'b033 later') || '; ' || a_at(100, 'b033 later'), 'ok 4; ok 3; ok 2', 'B033 three entries of about 100');
SELECT is(a_at(40, 'b033 later') || '; ' || a_at(50, 'b033 later') || '; ' || a('b033 later'), 'ok 1; ok 0; deny 0, 50', 'B033 two more after the step to 40');
SELECT is(a_at(99.999999, 'b033 later') || '; ' || a_at(100, 'b033 later', 4) || '; ' || a('b033 later'), 'deny 0, 0.000001; ok 0; deny 0, 10', 'B033 four have left at 100');

-- A step back gives no credit, and going forth again is worth the time that it takes.
SELECT clock_starts(1700000000), taskq.register_token_bucket('b033 twice', 5, 1) \g /dev/null
SELECT is(granted(9, 'b033 twice'), 5, 'B033 all is spent at 0');
SELECT is(a_at(-3, 'b033 twice'), 'deny 0, 1', 'B033 nothing for going to -3');
SELECT at(0) \g /dev/null
SELECT is(granted(9, 'b033 twice'), 3, 'B033 three seconds back at 0 are three tokens');
SELECT is(a_at(-0.9, 'b033 twice') || '; ' || a_at(0, 'b033 twice'), 'deny 0, 1.9; deny 0, 1', 'B033 below a second it is jitter: no credit at all');

-- Jitter between sessions mints no tokens.
SELECT clock_starts(1700000000), taskq.register_token_bucket('b034', 5, 1), at(100) \g /dev/null
SELECT is(granted(5, 'b034'), 5, 'B034 spent at 100');
SELECT is((SELECT count(*) FROM generate_series(1, 1000) AS i WHERE a_at(100 - 0.01 * (i % 2), 'b034') LIKE 'ok%'), 0::bigint,
          'B034 no grant in a thousand calls between 99.99 and 100');
SELECT is(a_at(100.999999, 'b034') || '; ' || a_at(101, 'b034') || '; ' || a('b034'), 'deny 0.999999, 0.000001; ok 0; deny 0, 1', 'B034 one at 101');

-- now() stands still in a transaction; limits do not.
RESET taskq_ratelimit.test_clock;
SELECT taskq.register_token_bucket('b035', 1, 10) \g /dev/null
SELECT ok(taskq.allow('b035'), 'B035 the last token');
SELECT pg_sleep(0.12) \g /dev/null
SELECT ok(taskq.allow('b035'), 'B035 the next one in the same transaction');
SELECT cmp_ok((SELECT decided_at FROM taskq.preview('b035')), '>', now(), 'B035 decisions are later than its start');

-- A day has 24 hours, also when the clocks of the session's time zone change.
CREATE FUNCTION helpers.over_a_change(zone text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('timezone', zone, true);
    PERFORM clock_starts(extract(epoch FROM timestamptz '2025-03-29 11:00Z'));
    PERFORM taskq.register_sliding_window('b036 ' || zone, 1, '1 day');
    RETURN a_at(0, 'b036 ' || zone) || '; ' || a_at(82800, 'b036 ' || zone) || '; ' || a_at(86400, 'b036 ' || zone);
END $$;
SELECT is(over_a_change(zone), 'ok 0; deny 0, 3600; ok 0', 'B036 in ' || zone) FROM unnest('{Europe/Berlin,America/New_York,UTC}'::text[]) AS zone;
SET LOCAL timezone = 'UTC';
SELECT throws_ok($$SELECT taskq.register_sliding_window('b036 month', 1, '1 month')$$, '22023', 'period must not contain months or years',
                 'B036 a month has no length');

-- Past January 2038.
SELECT clock_starts(2147483640), taskq.register_fixed_window('b037', 1, '60 s', anchor => to_timestamp(0)) \g /dev/null
SELECT is(a('b037') || '; ' || a_at(7, 'b037'), 'ok 0; deny 0, 53', 'B037 spent, and 53 s to wait');
SELECT is(taskq.http_headers(taskq.preview('b037')) ->> 'X-RateLimit-Reset', '2147483700', 'B037 the header needs more than 31 bits');
SELECT is(a_at(60, 'b037'), 'ok 0', 'B037 the next window');

SELECT finish();
ROLLBACK;
