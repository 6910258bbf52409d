-- Cases from the field: giving back, and HTTP headers.
\set content `cat test/vectors/limitra-vectors.json`
BEGIN;
\ir helpers.psql
SELECT plan(78);

CREATE TABLE helpers.kept (id text PRIMARY KEY, d taskq.rate_limit_decision);
CREATE FUNCTION helpers.keep(id text, name text, cost float8 DEFAULT 1) RETURNS text LANGUAGE sql AS $$
    INSERT INTO kept SELECT id, taskq.acquire(name, cost);
    SELECT short(d) FROM kept WHERE kept.id = keep.id
$$;
CREATE FUNCTION helpers.refund(id text) RETURNS float8 LANGUAGE sql AS $$ SELECT taskq.refund(d) FROM kept WHERE kept.id = refund.id $$;
CREATE FUNCTION helpers.settle(id text, actual float8) RETURNS float8 LANGUAGE sql AS $$ SELECT taskq.settle(d, actual) FROM kept WHERE kept.id = settle.id $$;

-- A refund never exceeds the capacity, happens once, and is not a number below zero.
SELECT clock_starts(1700000000), taskq.register_token_bucket('b086', 10, 1) \g /dev/null
SELECT is(keep('four', 'b086', 4), 'ok 6', 'B086 four of ten');
SELECT at(10) \g /dev/null
SELECT is(refund('four') || ' ' || taskq.remaining('b086'), '0 10', 'B086 time has given them back');
SELECT is(refund('four') || ' ' || taskq.remaining('b086'), '0 10', 'B086 the second refund of a decision does nothing');
SELECT is(taskq.refund('b086', 4) || ' ' || taskq.remaining('b086'), '0 10', 'B086 ten is the most that there can be');
SELECT throws_ok($$SELECT taskq.refund('b086', -3)$$, '22023', 'cost must be a finite number above 0', 'B086 -3 is an error');
SELECT throws_ok($$SELECT taskq.refund('b086', 'NaN')$$, '22023', 'cost must be a finite number above 0', 'B086 NaN is an error');
SELECT is(keep('six', 'b086', 6), 'ok 4', 'B086 six of ten');
SELECT at(10.5) \g /dev/null
SELECT is(refund('six') || ' ' || refund('six') || ' ' || taskq.remaining('b086'), '5.5 0 10', 'B086 what time has not given back comes back once');

-- A log loses exactly the entry that is refunded.
SELECT taskq.register_sliding_window('b086 swl', 3, '60 seconds') \g /dev/null
SELECT at(0) \g /dev/null
SELECT is(keep('first', 'b086 swl') || '; ' || a_at(1, 'b086 swl') || '; ' || a_at(2, 'b086 swl'), 'ok 2; ok 1; ok 0', 'B086 entries of 0, 1 and 2');
SELECT at(3) \g /dev/null
SELECT is(refund('first'), 1::float8, 'B086 the first is refunded');
SELECT is(a('b086 swl') || '; ' || a('b086 swl'), 'ok 0; deny 0, 58', 'B086 the entry of 1 leaves next');

-- A decision that took nothing has nothing to give back.
SELECT is(keep('denied', 'b086 swl') || ' ' || refund('denied'), 'deny 0, 58 0', 'B086 a denial gives nothing back');
SELECT is(taskq.refund((SELECT p FROM taskq.preview('b086') AS p)), 0::float8, 'B086 nothing comes back where nothing is used');

-- Windows give back what they counted, as long as it counts.
SELECT taskq.register_fixed_window('fw', 5, '10 seconds'), taskq.register_sliding_window('swc', 5, '10 seconds', 'counter') \g /dev/null
SELECT is(keep('fw 3', 'fw', 3) || '; ' || keep('swc 3', 'swc', 3), 'ok 2; ok 2', 'three of five');
SELECT at(4) \g /dev/null
SELECT is(refund('fw 3') || ' ' || taskq.remaining('fw') || '; ' || refund('swc 3') || ' ' || taskq.remaining('swc'), '3 5; 3 5', 'within the window all of it comes back');
SELECT is(keep('fw 5', 'fw', 5) || '; ' || keep('swc 5', 'swc', 5), 'ok 0; ok 0', 'five of five');
SELECT at(13) \g /dev/null
SELECT is(a('fw', 2), 'ok 3', 'two in the next window');
SELECT is(refund('fw 5') || ' ' || taskq.remaining('fw'), '0 3', 'a window that has rolled over gets nothing back');
SELECT is(refund('swc 5') || ' ' || taskq.remaining('swc'), '5 5', 'the previous window of two counters still counts, so it does');

-- A refund between two calls of one instant does not make them look alike.
SELECT taskq.register_sliding_window('twin swl', 3, '60 s'), taskq.register_token_bucket('twin tb', 3, 0), taskq.register_fixed_window('twin fw', 3, '60 s'),
       taskq.register_sliding_window('twin swc', 3, '60 s', 'counter') \g /dev/null
SELECT is(keep('1 ' || name, name) || ' ' || refund('1 ' || name) || '; ' || keep('2 ' || name, name) || ' ' || refund('2 ' || name) || '; ' || taskq.remaining(name),
          'ok 2 1; ok 2 1; 3', 'both of two decisions of ' || name || ' are refunded')
FROM unnest('{twin swl,twin tb,twin fw,twin swc}'::text[]) AS name;

-- An estimate is replaced by the truth, once.
SELECT taskq.register_token_bucket('settle tb', 10, 0), taskq.register_token_bucket('settle debt', 10, 1), taskq.register_sliding_window('settle swl', 10, '60 s'),
       taskq.register_fixed_window('settle fw', 10, '60 s'), taskq.register_sliding_window('settle swc', 10, '60 s', 'counter') \g /dev/null
CREATE FUNCTION helpers.settled(name text, cost float8, actual float8) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM taskq.reset(name);
    PERFORM keep(name || cost || actual, name, cost);
    RETURN settle(name || cost || actual, actual) || ' ' || settle(name || cost || actual, actual) || ' ' || taskq.remaining(name);
END $$;
SELECT is(settled(name, 4, 1), '3 0 9', name || ': less than thought') FROM unnest('{settle tb,settle swl,settle fw,settle swc}'::text[]) AS name;
SELECT at(14) \g /dev/null
SELECT is(settled(name, 4, 6), '-2 0 4', name || ': more than thought') FROM unnest('{settle tb,settle swl,settle fw,settle swc}'::text[]) AS name;
SELECT at(15) \g /dev/null
SELECT is(settled(name, 4, 4), '0 0 6', name || ': as thought') FROM unnest('{settle tb,settle swl,settle fw,settle swc}'::text[]) AS name;
SELECT at(16) \g /dev/null
SELECT is(settled(name, 4, 0), '4 0 10', name || ': nothing was used') FROM unnest('{settle tb,settle swl,settle fw,settle swc}'::text[]) AS name;
SELECT at(17) \g /dev/null
SELECT is(settled('settle debt', 4, 25), '-21 0 0', 'more than there is becomes a debt');
SELECT is(a('settle debt'), 'deny 0, 16', 'which has to be paid first');
SELECT throws_ok($$SELECT settle('settle tb40', -1)$$, '22023', 'cost must be a finite number, 0 or above', 'an actual cost below zero is an error');
SELECT throws_ok($$SELECT settle('settle tb40', 'NaN')$$, '22023', 'cost must be a finite number, 0 or above', 'and so is NaN');
SELECT throws_ok($$SELECT settle('settle fw40', 1.5)$$, '22023', 'cost of a window must be a whole number', 'windows count whole calls');

-- What a reset, or a new limit of the same name, has given back is not given back again out of what others took since.
CREATE FUNCTION helpers.define(kind text, name text) RETURNS boolean LANGUAGE sql AS $$
    SELECT CASE kind WHEN 'bucket' THEN taskq.register_token_bucket(name, 10, 1) WHEN 'quota' THEN taskq.register_token_bucket(name, 10, 0)
                     WHEN 'fixed' THEN taskq.register_fixed_window(name, 10, '100 s') ELSE taskq.register_sliding_window(name, 10, '100 s', kind) END
$$;
CREATE FUNCTION helpers.refunded_after(kind text, name text, event text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM at(100);
    PERFORM define(kind, name), keep(name, name, 5), at(101);
    IF event = 'reset' THEN PERFORM taskq.reset(name);
    ELSE PERFORM taskq.drop_rate_limit(name), define(kind, name); END IF;
    PERFORM taskq.acquire(name, 5), at(101.000001);
    RETURN refund(name) || ' ' || floor(taskq.remaining(name));
END $$;
SELECT is(refunded_after(kind, event || ' ' || kind, event), '0 5', 'refund after a ' || event || ' of a ' || kind)
FROM unnest('{bucket,quota,fixed,log,gcra,counter}'::text[]) AS kind, unnest('{reset,drop}'::text[]) AS event;

-- Headers: units and rounding.
SELECT clock_starts(1700000000.25), taskq.register_token_bucket('b087', 10, 2) \g /dev/null
SELECT is(a('b087', 10), 'ok 0', 'B087 drained');
CREATE TABLE helpers.b087 AS SELECT taskq.http_headers(taskq.acquire('b087')) AS h;
SELECT is((SELECT h FROM b087), '{"Retry-After": "1", "RateLimit": "\"b087\";r=0;t=1", "RateLimit-Policy": "\"b087\";q=10;w=5", "RateLimit-Limit": "10",
                                  "RateLimit-Remaining": "0", "RateLimit-Reset": "5", "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0",
                                  "X-RateLimit-Reset": "1700000006"}'::jsonb, 'B087 seconds, rounded up');
SELECT at(1.495) \g /dev/null
SELECT is((SELECT remaining || ' ' || (h ->> 'RateLimit-Remaining') || ' ' || (h ->> 'RateLimit')
           FROM taskq.preview('b087', 10) AS d, LATERAL taskq.http_headers(d) AS h), '2.99 2 "b087";r=2;t=4', 'B087 2.99 left are shown as 2');

-- Headers: syntax.
SELECT taskq.register_sliding_window('per "user" / é', 5, '0.5 s'), taskq.register_sliding_window('per "user" \ all', 5, '0.5 s'),
       taskq.register_fixed_window('b088 large', 4503599627370496, '1 day'), taskq.register_fixed_window('b088 fits', 999999999999999, '1 day') \g /dev/null
SELECT is((SELECT string_agg(k, ' ' ORDER BY k) FROM jsonb_object_keys(taskq.http_headers(taskq.acquire('per "user" / é'))) AS k WHERE k NOT LIKE 'X-%'),
          'RateLimit-Limit RateLimit-Remaining RateLimit-Reset', 'B088 a name beyond ASCII is left out, with its field');
SELECT is(taskq.http_headers(taskq.acquire('per "user" \ all')) ->> 'RateLimit-Policy', '"per \"user\" \\ all";q=5;w=1', 'B088 quotes are escaped, half a second is 1');
SELECT is((SELECT string_agg(k, ' ' ORDER BY k) FROM jsonb_object_keys(taskq.http_headers(taskq.acquire('b088 large'))) AS k),
          'RateLimit-Reset X-RateLimit-Reset', 'B088 numbers of 16 digits are left out');
SELECT is(taskq.http_headers(taskq.preview('b088 fits')) ->> 'RateLimit-Policy', '"b088 fits";q=999999999999999;w=86400', 'B088 15 digits fit');
SELECT throws_ok($$SELECT taskq.register_fixed_window('b088 huge', 1000000000000000000, '1 s')$$, '22023', 'max_requests is too large for this period', 'B088 1e18 is refused');
SELECT throws_ok(format('SELECT taskq.register_token_bucket(%L, 1, 1)', name), '22023', 'name contains a control character', 'B088 no CR, no LF in a name')
FROM unnest(ARRAY[E'a\rb', E'a\nSet-Cookie: b']) AS name;
SELECT is((SELECT count(*) FROM jsonb_each_text(taskq.http_headers(jsonb_populate_record(NULL::taskq.rate_limit_decision,
             jsonb_build_object('allowed', true, 'reason', 'ok', 'bucket_name', E'a\r\nSet-Cookie: b', 'key', '', 'cost', 1, 'remaining', 'NaN', 'quota', 'NaN',
                                'decided_at', 'infinity')))) AS h WHERE h.value ~ '[^ -~]' OR h.value ~ '[(]'), 0::bigint, 'B088 nor in what a forged decision gives');

-- The other limiter's golden headers. Its Unix time is rounded up twice, ours once; a name that is not registered has no window.
CREATE TABLE helpers.golden AS
    SELECT position, (v ->> 'unix_now')::numeric AS at, v -> 'result' AS r, v -> 'headers' AS h
    FROM jsonb_array_elements((:'content')::jsonb -> 'headers') WITH ORDINALITY AS e (v, position);
CREATE FUNCTION helpers.decision(r jsonb, at numeric) RETURNS taskq.rate_limit_decision LANGUAGE sql AS $$
    SELECT jsonb_populate_record(NULL::taskq.rate_limit_decision, jsonb_build_object(
        'allowed', r -> 'allowed', 'remaining', r -> 'remaining', 'quota', r -> 'limit', 'cost', 1, 'bucket_name', 'golden', 'key', '', 'reason', 'any',
        'retry_after', ceil((r ->> 'retry_after')::float8 * 1e6) * interval '1 microsecond',
        'reset_after', ceil((r ->> 'reset_after')::float8 * 1e6) * interval '1 microsecond', 'decided_at', to_timestamp(at)))
$$;
SELECT is((SELECT count(*) FROM golden), 10::bigint, 'there are ten golden headers');
SELECT is(taskq.http_headers(decision(r, at)) - 'RateLimit' - 'RateLimit-Policy',
          h || jsonb_build_object('X-RateLimit-Reset', ceil(at + (r ->> 'reset_after')::numeric)::text), 'golden header ' || position)
FROM golden ORDER BY position;

SELECT finish();
ROLLBACK;
