-- Cases from the field: waits, remainders, boundaries. Fixed windows and two-counter windows are aligned to the
-- Unix epoch. Where a set of rows makes the calls, the cost mentions the row: else one call would do for all.
BEGIN;
\ir helpers.psql
SELECT plan(107);

CREATE FUNCTION helpers.tb(name text, capacity float8, rate float8) RETURNS void LANGUAGE sql AS $$
    SELECT taskq.register_token_bucket(name, capacity, rate)
$$;
CREATE FUNCTION helpers.lb(name text, capacity float8, rate float8) RETURNS void LANGUAGE sql AS $$
    SELECT taskq.register_leaky_bucket(name, capacity, rate)
$$;
CREATE FUNCTION helpers.sw(name text, requests bigint, period interval, style text DEFAULT 'log') RETURNS void LANGUAGE sql AS $$
    SELECT taskq.register_sliding_window(name, requests, period, style, anchor => CASE style WHEN 'counter' THEN to_timestamp(0) END)
$$;
CREATE FUNCTION helpers.fw(name text, requests bigint, period interval) RETURNS void LANGUAGE sql AS $$
    SELECT taskq.register_fixed_window(name, requests, period, anchor => to_timestamp(0))
$$;

-- A partly earned token shortens the wait.
SELECT clock_starts(1700000000), tb('b001', 2, 0.5) \g /dev/null
SELECT is(a('b001', 2), 'ok 0', 'B001 both tokens are spent');
SELECT is(a_at(0.7, 'b001'), 'deny 0.35, 1.3', 'B001 0.35 of a token is there, so a whole one is 1.3 s away');
SELECT is(a_at(2, 'b001'), 'ok 0', 'B001 it is there when said');

-- A wait below a second is not zero. One cell per 20 ms and no burst.
SELECT clock_starts(1700000000), sw('b002', 1, '20 milliseconds', 'gcra') \g /dev/null
SELECT is(a('b002'), 'ok 0', 'B002 the first cell');
SELECT is(a_at(0.005, 'b002'), 'deny 0, 0.015', 'B002 the wait for the second is 15 ms');
SELECT is(taskq.http_headers(taskq.preview('b002')) ->> 'Retry-After', '1', 'B002 the header rounds it up to 1 s');

-- A small deficit gives a small wait, not zero.
SELECT clock_starts(1700000000), tb('b003', 2000, 500) \g /dev/null
SELECT is(a('b003', 2000), 'ok 0', 'B003 drained');
SELECT is(a('b003', 1), 'deny 0, 0.002', 'B003 2 ms for one');
SELECT is(a('b003', 3), 'deny 0, 0.006', 'B003 6 ms for three');
CREATE FUNCTION helpers.most_tries(grants int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    d taskq.rate_limit_decision;
    t numeric := 0;
    tries int;
    most int := 0;
BEGIN
    FOR i IN 1 .. grants LOOP
        tries := 0;
        LOOP
            PERFORM at(t);
            d := taskq.acquire('b003');
            tries := tries + 1;
            EXIT WHEN d.allowed;
            t := t + extract(epoch FROM d.retry_after);
        END LOOP;
        most := greatest(most, tries);
    END LOOP;
    RETURN most;
END $$;
SELECT is(most_tries(50), 2, 'B003 an obedient loop needs at most two tries per grant');

-- Obeying the wait gets through. T0 is the start of a window.
SELECT clock_starts(1700000040), fw('b004', 5, '60 seconds') \g /dev/null
SELECT at(58.4) \g /dev/null
SELECT is(calls(5, 'b004'), 'ok 4; ok 3; ok 2; ok 1; ok 0', 'B004 five calls');
SELECT is(a_at(58.9, 'b004'), 'deny 0, 1.1', 'B004 1.1 s before the edge');
SELECT is(a_at(59.999999, 'b004'), 'deny 0, 0.000001', 'B004 one microsecond before the edge');
SELECT is(a_at(60, 'b004'), 'ok 4', 'B004 at the edge');

-- Headers are those of the decision, whenever they are rendered.
SELECT clock_starts(1700000000), tb('b005', 1, 1 / 2.2) \g /dev/null
CREATE TABLE helpers.b005 AS SELECT taskq.acquire('b005') AS d;
UPDATE b005 SET d = taskq.acquire('b005');
CREATE TABLE helpers.b005_headers AS SELECT taskq.http_headers(d) AS h FROM b005;
SELECT is((SELECT h ->> 'Retry-After' FROM b005_headers), '3', 'B005 2.2 s are shown as 3');
SELECT is((SELECT h ->> 'X-RateLimit-Reset' FROM b005_headers), '1700000003', 'B005 the reset is absolute');
SELECT at(5) \g /dev/null
SELECT is((SELECT taskq.http_headers(d) FROM b005), (SELECT h FROM b005_headers), 'B005 five seconds later they are the same');

-- The remainder stops at zero.
SELECT clock_starts(1700000040), fw('b006', 3, '60 seconds') \g /dev/null
SELECT is(calls(5, 'b006'), 'ok 2; ok 1; ok 0; deny 0, 60; deny 0, 60', 'B006 2, 1, 0, 0, 0');
SELECT is((SELECT min(remaining) FROM generate_series(1, 1000) AS i, LATERAL taskq.acquire('b006', 1 + i * 0)), 0::float8,
          'B006 it is never below zero');

-- Denied calls do not prolong the block.
SELECT clock_starts(1700000000), sw('b007', 4, '10 seconds') \g /dev/null
SELECT is((SELECT string_agg(a_at(t, 'b007'), '; ') FROM generate_series(0, 3) AS t), 'ok 3; ok 2; ok 1; ok 0', 'B007 four calls');
SELECT is((SELECT string_agg(a_at(t, 'b007'), '; ') FROM generate_series(4, 9) AS t),
          'deny 0, 6; deny 0, 5; deny 0, 4; deny 0, 3; deny 0, 2; deny 0, 1', 'B007 six stubborn ones');
SELECT is(a_at(10, 'b007'), 'ok 0', 'B007 in after ten seconds');
SELECT is(a_at(10.5, 'b007'), 'deny 0, 0.5', 'B007 and the next half a second later');

-- An allowed call shows no wait, and units do not slip.
SELECT clock_starts(1700000000), sw('b008', 4, '120 seconds', 'gcra') \g /dev/null
SELECT is(a('b008'), 'ok 3', 'B008 first call on a fresh limit');
SELECT is(taskq.reset_after('b008'), interval '30 seconds', 'B008 full again after one cell of 30 s');

-- Spending the very last token.
SELECT clock_starts(1700000000), tb('b009', 5, 1) \g /dev/null
CREATE TABLE helpers.b009 AS SELECT taskq.acquire('b009', 5) AS d;
SELECT is((SELECT short(d) FROM b009), 'ok 0', 'B009 allowed, nothing left, no wait');
SELECT is(look('b009'), 'exhausted 0, 1', 'B009 peek knows that the next token is 1 s away');
SELECT is((SELECT taskq.http_headers(d) ->> 'RateLimit' FROM b009), '"b009";r=0;t=1', 'B009 so does the header of the allowed call');

-- Frequent polling does not eat the refill.
SELECT clock_starts(1700000000), tb('b010', 10, 0.1) \g /dev/null
SELECT is(a('b010', 10), 'ok 0', 'B010 drained');
CREATE TABLE helpers.b010 AS SELECT k * 0.7 AS t, a_at(k * 0.7, 'b010') AS answer FROM generate_series(1, 1428) AS k;
SELECT is((SELECT min(t) FROM b010 WHERE answer LIKE 'ok%'), 10.5, 'B010 the first grant is at 10.5 s');
SELECT is((SELECT count(*) FROM b010 WHERE answer LIKE 'ok%'), 99::bigint, 'B010 there are 99 grants up to 999.6 s');

-- An entry exactly one window old no longer counts.
SELECT clock_starts(1700000000), sw('b011', 1, '10 seconds') \g /dev/null
SELECT is(a('b011'), 'ok 0', 'B011 spent');
SELECT is(a_at(9.999999, 'b011'), 'deny 0, 0.000001', 'B011 one microsecond early');
SELECT is(a_at(10, 'b011'), 'ok 0', 'B011 at one window');

-- Exactly the limit, not one more.
SELECT clock_starts(1700000040), tb('b012 tb', 7, 0.001), sw('b012 swl', 7, '60 s'), sw('b012 swc', 7, '60 s', 'counter'),
       sw('b012 gcra', 7, '60 s', 'gcra'), fw('b012 fw', 7, '60 s'), lb('b012 lb', 7, 0.001) \g /dev/null
SELECT is(calls(8, 'b012 tb'), 'ok 6; ok 5; ok 4; ok 3; ok 2; ok 1; ok 0; deny 0, 1000', 'B012 token bucket');
SELECT is(calls(8, 'b012 swl'), 'ok 6; ok 5; ok 4; ok 3; ok 2; ok 1; ok 0; deny 0, 60', 'B012 sliding log');
SELECT is(calls(8, 'b012 swc'), 'ok 6; ok 5; ok 4; ok 3; ok 2; ok 1; ok 0; deny 0, 68.571429', 'B012 two counters');
SELECT is(calls(8, 'b012 gcra'), 'ok 6; ok 5; ok 4; ok 3; ok 2; ok 1; ok 0; deny 0, 8.571429', 'B012 gcra');
SELECT is(calls(8, 'b012 fw'), 'ok 6; ok 5; ok 4; ok 3; ok 2; ok 1; ok 0; deny 0, 60', 'B012 fixed window');
SELECT is(calls(8, 'b012 lb'), 'ok 6; ok 5; ok 4; ok 3; ok 2; ok 1; ok 0; deny 0, 1000', 'B012 leaky bucket');

-- Expired entries do not count on the first call after a pause.
SELECT clock_starts(1700000000), sw('b013', 2, '1 second') \g /dev/null
SELECT is(a_at(0, 'b013') || '; ' || a_at(0.1, 'b013') || '; ' || a_at(1.5, 'b013'), 'ok 1; ok 0; ok 1', 'B013 both have left');

-- Many calls in one clock tick are many entries.
SELECT clock_starts(1700000000), sw('b014', 10, '60 seconds') \g /dev/null
CREATE TABLE helpers.b014 AS SELECT i, d FROM generate_series(1, 25) AS i, LATERAL (SELECT taskq.acquire('b014', 1 + i * 0) AS d) AS s;
SELECT is((SELECT count(*) FILTER (WHERE (d).allowed) || ' ' || count(*) FILTER (WHERE NOT (d).allowed) FROM b014), '10 15', 'B014 10 ok, 15 denied');
SELECT is((SELECT count(DISTINCT (d).request_id) FROM b014), 10::bigint, 'B014 ten different request ids');
SELECT is((SELECT count(DISTINCT request_id) || ' of ' || count(*) FROM taskq.rate_limit_window_entries WHERE bucket_id =
           (SELECT bucket_id FROM taskq.rate_limit_buckets JOIN taskq.rate_limits USING (limit_id) WHERE name = 'b014')), '10 of 10', 'B014 ten entries');
SELECT is((SELECT taskq.refund(d) FROM b014 WHERE i = 4), 1::float8, 'B014 one is refunded');
SELECT is((SELECT count(*) FROM taskq.rate_limit_window_entries AS e WHERE request_id IN (SELECT (d).request_id FROM b014)), 9::bigint, 'B014 nine are left');
SELECT is(taskq.remaining('b014'), 1::float8, 'B014 and one place');

-- gcra lets nobody in early.
SELECT clock_starts(1700000000), sw('b015', 6, '60 seconds', 'gcra') \g /dev/null
SELECT is(calls(6, 'b015'), 'ok 5; ok 4; ok 3; ok 2; ok 1; ok 0', 'B015 the burst');
SELECT is(a_at(5.1, 'b015'), 'deny 0, 4.9', 'B015 half a cell');
SELECT is(a_at(9.999, 'b015'), 'deny 0, 0.001', 'B015 almost a cell');
SELECT is(a_at(10, 'b015'), 'ok 0', 'B015 one cell');

-- A call too large for now leaves the rest usable.
SELECT clock_starts(1700000040), tb('b016 tb', 10, 0.1), fw('b016 fw', 10, '60 s'), sw('b016 swl', 10, '60 s') \g /dev/null
SELECT is(a('b016 tb', 8) || '; ' || a('b016 tb', 5) || '; ' || a('b016 tb'), 'ok 2; deny 2, 30; ok 1', 'B016 token bucket');
SELECT is(a('b016 fw', 8) || '; ' || a('b016 fw', 5) || '; ' || a('b016 fw', 2), 'ok 2; deny 2, 60; ok 0', 'B016 fixed window');
SELECT is(a('b016 swl', 8) || '; ' || a('b016 swl', 5) || '; ' || a('b016 swl', 2), 'ok 2; deny 2, 60; ok 0', 'B016 sliding log');

-- A cost above the limit is an error.
SELECT clock_starts(1700000040), tb('b017 tb', 3, 1.5), sw('b017 swl', 3, '10 s'), sw('b017 gcra', 3, '10 s', 'gcra'), fw('b017 fw', 3, '10 s'),
       lb('b017 lb', 3, 1), sw('b017 swc', 3, '10 s', 'counter') \g /dev/null
SELECT throws_ok(format('SELECT taskq.acquire(%L, 4)', name), '22023', 'cost is above what the limit can ever admit', 'B017 ' || name)
FROM taskq.rate_limits WHERE name LIKE 'b017%' ORDER BY limit_id;
SELECT is(a(name, 3), 'ok 0', 'B017 ' || name || ' is untouched') FROM taskq.rate_limits WHERE name LIKE 'b017%' ORDER BY limit_id;

-- Not-a-number and friends.
SELECT clock_starts(1700000000), tb('b018', 5, 1), sw('b018 swl', 5, '10 s') \g /dev/null
SELECT is((SELECT string_agg(DISTINCT state_of(statement), ' ') FROM
          (SELECT format('SELECT taskq.register_%s_bucket(%L, %L, %L)', kind, 'b018 bad', capacity, rate) AS statement
           FROM unnest('{token,leaky}'::text[]) AS kind,
                (VALUES ('NaN', '1'), ('Infinity', '1'), ('-Infinity', '1'), ('-1', '1'), ('-0', '1'), ('0', '1'),
                        ('1', 'NaN'), ('1', 'Infinity'), ('1', '-Infinity'), ('1', '-1'), ('1', '-0')) AS v (capacity, rate)) AS s), '22023',
          'B018 no bucket of such capacity or rate');
SELECT is((SELECT string_agg(DISTINCT state_of(statement), ' ') FROM
          (SELECT format('SELECT taskq.register_token_bucket(%L, 1, refill_amount => %L, refill_period => %L)', 'b018 bad', amount, period) AS statement
           FROM (VALUES ('NaN', '1 s'), ('Infinity', '1 s'), ('-1', '1 s'), ('-0', '1 s'), ('1', '0'), ('1', '-1 s')) AS v (amount, period)) AS s),
          '22023', 'B018 nor with such a refill in a period');
SELECT is((SELECT string_agg(DISTINCT state_of(statement), ' ') FROM
          (SELECT format('SELECT taskq.register_%s(%L, %L, %L)', kind, 'b018 bad', requests, period) AS statement
           FROM unnest('{sliding_window,fixed_window}'::text[]) AS kind,
                (VALUES ('0', '1 s'), ('-1', '1 s'), ('1', '0'), ('1', '-1 s')) AS v (requests, period)) AS s), '22023',
          'B018 no window of such limit or period');
SELECT is((SELECT count(*) FROM taskq.rate_limits WHERE name = 'b018 bad'), 0::bigint, 'B018 nothing was stored');
SELECT is((SELECT string_agg(DISTINCT state_of(format('SELECT taskq.%s(%L, %L)', function, name, cost)), ' ')
           FROM unnest('{b018,b018 swl}'::text[]) AS name, unnest('{acquire,allow,acquire_json,require,preview,charge,refund}'::text[]) AS function,
                unnest('{NaN,Infinity,-Infinity,-1,0,-0}'::text[]) AS cost), '22023', 'B018 no call at such a cost');
SELECT is(a('b018') || '; ' || a('b018 swl'), 'ok 4; ok 4', 'B018 the next normal call is as before');

-- A cost of zero is an error; it writes nothing and creates no key.
SELECT clock_starts(1700000000), tb('b019', 2, 0.001), taskq.register_token_bucket('b019 keyed', 2, 0.001, keyed => true) \g /dev/null
SELECT is(a('b019', 2), 'ok 0', 'B019 spent');
SELECT throws_ok($$SELECT taskq.acquire('b019', 0)$$, '22023', 'cost must be a finite number above 0', 'B019 zero is no cost');
SELECT throws_ok($$SELECT taskq.acquire('b019 keyed', 0, 'new')$$, '22023', 'cost must be a finite number above 0', 'B019 nor on a new key');
SELECT is(look('b019'), 'exhausted 0, 1000', 'B019 nothing has moved');
SELECT is((SELECT count(*) FROM taskq.rate_limit_buckets WHERE key = 'new'), 0::bigint, 'B019 and no key was made');

-- Limits of zero size are refused; those that never refill say so.
SELECT throws_ok($$SELECT tb('b020 zero', 0, 1)$$, '22023', 'capacity must be a finite number above 0', 'B020 an empty bucket');
SELECT throws_ok($$SELECT sw('b020 zero', 0, '60 s')$$, '22023', 'max_requests must be at least 1', 'B020 an empty window');
SELECT clock_starts(1700000000), tb('b020', 1, 0) \g /dev/null
SELECT is(a_at(0, 'b020') || '; ' || a_at(1, 'b020') || '; ' || a_at(34560000, 'b020'), 'ok 0; deny 0, never; deny 0, never',
          'B020 a quota stays spent, 400 days later, too');

-- One per day, from any start.
SELECT setseed(0.21) \g /dev/null
CREATE FUNCTION helpers.one_per_day(start numeric) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM clock_starts(start);
    PERFORM tb('b021 ' || start, 1, 1 / 86400.0);
    RETURN a_at(0, 'b021 ' || start) || '; ' || a_at(1, 'b021 ' || start) || '; ' || a_at(86399.999999, 'b021 ' || start) || '; '
        || a_at(86400, 'b021 ' || start);
END $$;
SELECT is((SELECT string_agg(DISTINCT one_per_day(1700000000 + round(random()::numeric * i, 6)), ' | ') FROM generate_series(1, 200) AS i),
          'ok 0; deny 1.1574074074074073e-05, 86399; deny 0.9999999999884259, 0.000001; ok 0', 'B021 200 starts, one answer');

-- Refills that no double can write down.
SELECT clock_starts(1700000000), tb('b022 49', 1, 1 / 49.0), tb('b022 month', 1, 1 / 2592000.0) \g /dev/null
SELECT is(a('b022 49') || '; ' || a_at(49, 'b022 49'), 'ok 0; ok 0', 'B022 one in 49 s');
SELECT at(0) \g /dev/null
SELECT is(a('b022 month') || '; ' || a_at(2592000, 'b022 month'), 'ok 0; ok 0', 'B022 one in 30 days');

-- Fractional costs add up.
SELECT clock_starts(1700000000), tb('b023 0.3', 0.3, 0), tb('b023 2.4', 2.4, 0), tb('b023 10', 10, 0) \g /dev/null
SELECT is(granted(4, 'b023 0.3', 0.1) || ' ' || taskq.remaining('b023 0.3'), '3 0', 'B023 three times 0.1 of 0.3');
SELECT is(granted(4, 'b023 2.4', 0.8) || ' ' || taskq.remaining('b023 2.4'), '3 0', 'B023 three times 0.8 of 2.4');
SELECT is(granted(101, 'b023 10', 0.1) || ' ' || taskq.remaining('b023 10'), '100 0', 'B023 a hundred times 0.1 of 10');

-- Long idle at a high rate.
SELECT clock_starts(1700000000), tb('b024', 1e9, 1e9), tb('b024 slow', 9.8e8, 9.8e7) \g /dev/null
SELECT is(a('b024', 1e9) || '; ' || a('b024 slow', 9.8e8), 'ok 0; ok 0', 'B024 both drained');
SELECT at(10) \g /dev/null
SELECT is(look('b024 slow'), 'free 980000000', 'B024 full after 10 s');
SELECT at(2592000) \g /dev/null
SELECT is(look('b024') || '; ' || a('b024', 1e9), 'free 1000000000; ok 0', 'B024 full after 30 days');

-- A refill of 300 000 years is refused.
SELECT throws_ok($$SELECT tb('b025', 1e9, 0.0001)$$, '22023', 'a full refill would take more than 142 years', 'B025 the bound is named');

-- Idle time is not a savings account.
SELECT clock_starts(1700000000), tb('b026 tb', 3, 1), sw('b026 gcra', 3, '3 s', 'gcra'), lb('b026 lb', 3, 1) \g /dev/null
SELECT a('b026 tb'), a('b026 gcra'), a('b026 lb'), at(3600) \g /dev/null
SELECT is(calls(4, name), 'ok 2; ok 1; ok 0; deny 0, 1', 'B026 ' || name) FROM taskq.rate_limits WHERE name LIKE 'b026%' ORDER BY limit_id;

-- Windows longer than 24.8 days.
SELECT clock_starts(1672531200), sw('b027 swl', 5, '365 days'), taskq.register_fixed_window('b027 fw', 5, '365 days') \g /dev/null
SELECT is(granted(5, 'b027 swl') || ' ' || granted(5, 'b027 fw'), '5 5', 'B027 five each');
SELECT is(a_at(24.9 * 86400, 'b027 swl'), 'deny 0, 29384640', 'B027 the log waits 340.1 days');
SELECT is(a_at(24.9 * 86400, 'b027 fw'), 'deny 0, 29384640', 'B027 so does the fixed window');

-- Waits are rounded up to the microsecond.
SELECT clock_starts(1700000000), tb('b028', 3, 3) \g /dev/null
SELECT is(a('b028', 3) || '; ' || a('b028'), 'ok 0; deny 0, 0.333334', 'B028 a third of a second');
SELECT at(0.333333) \g /dev/null
SELECT matches(p('b028'), '^deny 0\.99999[0-9]*, 0\.000001$', 'B028 a third of a microsecond is missing');
SELECT is(a_at(0.333334, 'b028'), 'ok 2e-06', 'B028 in when said');

-- The weighted window. T0 is the start of a window.
SELECT clock_starts(1700000040), sw('b029', 100, '60 s', 'counter') \g /dev/null
SELECT is(a('b029', 80) || '; ' || a_at(60, 'b029', 5), 'ok 20; ok 15', 'B029 80 before, 5 in this window');
SELECT at(75) \g /dev/null
SELECT is(a('b029') || '; ' || a('b029', 34) || '; ' || a('b029'), 'ok 34; ok 0; deny 0, 0.75', 'B029 a weight of 65 after 15 s');

-- What a token bucket really admits.
SELECT clock_starts(1700000000), tb('b030', 17, 17 / 30.0) \g /dev/null
CREATE TABLE helpers.b030 AS SELECT k + q AS t, a_at(k + q, 'b030') AS answer FROM generate_series(0, 29) AS k, unnest('{0,0.25}'::numeric[]) AS q ORDER BY 1;
SELECT is((SELECT count(*) FROM b030 WHERE answer LIKE 'ok%'), 33::bigint, 'B030 33 of 60 calls');
SELECT is((SELECT t || ' ' || split_part(answer, ', ', 2) FROM b030 WHERE answer LIKE 'deny%' ORDER BY t LIMIT 1), '11.25 1.102942',
          'B030 the first denial is at 11.25 s');

-- Two bursts at a boundary.
SELECT clock_starts(1700000040), fw('b031 fw', 10, '60 s'), sw('b031 swl', 10, '60 s') \g /dev/null
SELECT at(59.9) \g /dev/null
SELECT is(granted(10, 'b031 fw') || ' ' || granted(10, 'b031 swl'), '10 10', 'B031 ten before the boundary');
SELECT at(60) \g /dev/null
SELECT is(granted(10, 'b031 fw'), 10, 'B031 the fixed window admits ten more');
SELECT is(a('b031 swl'), 'deny 0, 59.9', 'B031 the sliding one does not');

-- The first call after a reset is not free.
SELECT clock_starts(1700000010), fw('b032', 4, '30 s') \g /dev/null
SELECT is(granted(4, 'b032') || '; ' || a_at(30, 'b032'), '4; ok 3', 'B032 the next window counts its first call');

SELECT finish();
ROLLBACK;
