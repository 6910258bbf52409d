-- Cases from the field: definitions that change, names, keys.
BEGIN;
\ir helpers.psql
SELECT plan(49);

-- Raising a limit does not hurt.
SELECT clock_starts(1700000000) \g /dev/null
SELECT taskq.register_sliding_window('b038 gcra', 16, '32 s', 'gcra'), taskq.register_sliding_window('b038 swl', 1, '6000 s'),
       taskq.register_token_bucket('b038 tb', 10, 1) \g /dev/null
SELECT a('b038 gcra', 4), a('b038 swl'), a('b038 tb', 7) \g /dev/null
SELECT taskq.register_sliding_window('b038 gcra', 1600, '32 s', 'gcra', replace => true),
       taskq.register_sliding_window('b038 swl', 10, '6000 s', replace => true), taskq.register_token_bucket('b038 tb', 20, 1, replace => true) \g /dev/null
SELECT is(a('b038 gcra'), 'ok 1595', 'B038 gcra: what was used stays used, nothing more');
SELECT is(a('b038 swl'), 'ok 8', 'B038 sliding log');
SELECT is(a('b038 tb'), 'ok 12', 'B038 token bucket');

-- Lowering the capacity.
SELECT taskq.register_token_bucket('b039', 100, 1), taskq.register_token_bucket('b039', 10, 1, replace => true) \g /dev/null
SELECT is(a('b039'), 'ok 9', 'B039 the new capacity holds');
SELECT is(look('b039'), 'free 9', 'B039 and nothing above it');

-- The same definition again is a no-op, another one an error.
SELECT taskq.register_token_bucket('b040', 10, 0.1), a('b040', 10) \g /dev/null
SELECT is(taskq.register_token_bucket('b040', 10, 0.1), false, 'B040 registering again writes nothing');
SELECT is(taskq.register_token_bucket('b040', 10, refill_amount => 6, refill_period => '1 minute'), false, 'B040 the rate may be said in other words');
SELECT is(a('b040'), 'deny 0, 10', 'B040 and refills nothing');
SELECT throws_ok($$SELECT taskq.register_token_bucket('b040', 11, 0.1)$$, '42710', 'rate limit "b040" is registered with another definition',
                 'B040 another definition is an error');
SELECT throws_ok($$SELECT taskq.register_fixed_window('b040', 10, '1 minute')$$, '42710', 'rate limit "b040" is registered with another definition',
                 'B040 so is another kind');
SELECT is(a('b040'), 'deny 0, 10', 'B040 the bucket is untouched');

-- The limit is not part of the bucket's identity.
CREATE FUNCTION helpers.ad_hoc(times int, capacity float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answers text := '';
BEGIN
    FOR i IN 1 .. times LOOP
        answers := answers || short(taskq.acquire_token_bucket('b041', capacity, 0, key => 'k')) || '; ';
    END LOOP;
    RETURN answers;
END $$;
SELECT is(ad_hoc(10, 10), 'ok 9; ok 8; ok 7; ok 6; ok 5; ok 4; ok 3; ok 2; ok 1; ok 0; ', 'B041 ten calls at a limit of ten');
SELECT is(ad_hoc(2, 11), 'ok 0; deny 0, never; ', 'B041 at eleven one more, not eleven');
SELECT taskq.register_fixed_window('b041 all', 200, '1 min', keyed => true), taskq.register_fixed_window('b041 failed', 2, '1 min', keyed => true) \g /dev/null
SELECT is(calls(3, 'b041 failed', key => 'k'), 'ok 1; ok 0; deny 0, 60', 'B041 two names on one key: the small one');
SELECT is(a('b041 all', key => 'k'), 'ok 199', 'B041 and the large one count for themselves');

-- Two pairs of name and key are never one bucket.
SELECT taskq.register_token_bucket(name, 1, 0, keyed => true) FROM unnest('{b042,b042:b,b042 user,b042 address}'::text[]) AS name \g /dev/null
SELECT is(a('b042', key => 'b:c') || '; ' || a('b042:b', key => 'c'), 'ok 0; ok 0', 'B042 "b042" of "b:c", "b042:b" of "c"');
SELECT is(a('b042 user', key => '127.0.0.1') || '; ' || a('b042 address', key => '127.0.0.1'), 'ok 0; ok 0', 'B042 a user and an address');
SELECT is(a('b042', key => 'b:c') || '; ' || a('b042:b', key => 'c'), 'deny 0, never; deny 0, never', 'B042 each is spent on its own');

-- Long keys.
CREATE FUNCTION helpers.noise(length int) RETURNS text LANGUAGE sql AS $$
    SELECT left(string_agg(md5('b043' || i), ''), length) FROM generate_series(1, length / 32 + 1) AS i
$$;
SELECT taskq.register_token_bucket('b043', 1, 0, keyed => true) \g /dev/null
SELECT is(a('b043', key => repeat('k', 299) || 'a') || '; ' || a('b043', key => repeat('k', 299) || 'b'), 'ok 0; ok 0', 'B043 the last of 300 characters matters');
SELECT is(a('b043', key => noise(1024)) || '; ' || a('b043', key => noise(1024)), 'ok 0; deny 0, never', 'B043 1024 bytes that do not compress');
SELECT is(a('b043', key => left(noise(1024), 1023) || '-'), 'ok 0', 'B043 and others that differ in the last');
SELECT throws_ok(format('SELECT taskq.acquire(%L, key => %L)', 'b043', key), '22023', 'key is too long', 'B043 ' || length(key) || ' bytes are too many')
FROM unnest(ARRAY[noise(1025), noise(2720), noise(10240), repeat('x', 10000)]) AS key;
SELECT throws_ok($$SELECT taskq.acquire('b043', key => repeat('é', 513))$$, '22023', 'key is too long', 'B043 bytes count, not characters');
SELECT is(a('b043', key => repeat('é', 512)), 'ok 0', 'B043 512 characters of two bytes');

-- Odd keys are ordinary keys; NUL cannot even be written, the empty key is refused.
SELECT taskq.register_token_bucket('b044', 1, 0, keyed => true) \g /dev/null
CREATE TABLE helpers.b044 AS SELECT key FROM unnest(ARRAY[' ', '''', '"', '\', '{}', U&'\00E9', U&'e\0301', 'K', 'k', 'k ', E'\t', E'a\nb', '%', '_', '*']) AS key;
SELECT is((SELECT string_agg(DISTINCT a('b044', key => key), ' ') FROM b044), 'ok 0', 'B044 fifteen keys, each its own');
SELECT is((SELECT string_agg(DISTINCT a('b044', key => key), ' ') FROM b044), 'deny 0, never', 'B044 and each spent');
SELECT is((SELECT count(*) FROM b044 JOIN taskq.rate_limit_buckets USING (key) WHERE limit_id = (SELECT limit_id FROM taskq.rate_limits WHERE name = 'b044')),
          15::bigint, 'B044 stored as they are');
SELECT throws_ok($$SELECT taskq.acquire('b044', key => E'a\000b')$$, '22021', NULL, 'B044 NUL is no text');
SELECT throws_ok($$SELECT taskq.acquire('b044', key => '')$$, '22023', 'rate limit "b044" needs a key', 'B044 the empty key');

-- Names may be odd, too.
SELECT is(taskq.register_token_bucket(name, 1, 0), true, 'B044 a limit named ' || name) FROM unnest('{" ","''","\"","{}","*","a_b","é"}'::text[]) AS name;
SELECT is(calls(2, '*') || '; ' || a('a_b'), 'ok 0; deny 0, never; ok 0', 'B044 each on its own');

-- Braces mean nothing.
SELECT is((SELECT string_agg(DISTINCT a('b044', key => key), ' ') FROM unnest('{"}x","{","a}b{c"}'::text[]) AS key), 'ok 0', 'B045 braces in keys');

-- Keys are not patterns.
SELECT taskq.register_token_bucket('b046', 1, 0, keyed => true) \g /dev/null
CREATE FUNCTION helpers.spent() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(key, ' ' ORDER BY key COLLATE "C") FROM unnest('{a*,ab,a_b,axb,a%}'::text[]) AS key WHERE (taskq.preview('b046', key => key)).allowed IS FALSE
$$;
SELECT a('b046', key => key) FROM unnest('{a*,ab,a_b,axb,a%}'::text[]) AS key \g /dev/null
SELECT is(spent(), 'a% a* a_b ab axb', 'B046 five keys are spent');
SELECT is(taskq.reset('b046', 'a*') || ' ' || spent(), 'true a% a_b ab axb', 'B046 only a* is reset');
SELECT is(taskq.reset('b046', 'a_b') || ' ' || spent(), 'true a% ab axb', 'B046 only a_b is reset');
SELECT is(taskq.reset('b046', 'a%') || ' ' || spent(), 'true ab axb', 'B046 only a% is reset');
SELECT is(taskq.reset('b046', 'a') || ' ' || spent(), 'false ab axb', 'B046 there is no key a');

-- Odd keys show as they are wherever they are listed, and are reset one by one.
SELECT taskq.register_token_bucket('b089', 1, 0, keyed => true) \g /dev/null
CREATE TABLE helpers.b089 AS SELECT key FROM unnest(ARRAY['<img src=x onerror=alert(1)>', 'it''s', '"><b>', '=1+1', E'\x1b[2J']) AS key;
SELECT a('b089', key => key) FROM b089 \g /dev/null
SELECT is((SELECT count(*) FROM taskq.peek_all() JOIN b089 USING (key) WHERE bucket_name = 'b089' AND is_exhausted), 5::bigint, 'B089 listed as they are');
SELECT is((SELECT taskq.reset('b089', 'it''s')) || ' ' || (SELECT count(*) FROM taskq.peek_all() JOIN b089 USING (key) WHERE is_exhausted), 'true 4', 'B089 one is reset');
SELECT is((SELECT taskq.acquire_json('b089', key => '"><b>')) ->> 'key', '"><b>', 'B089 in JSON, too');

SELECT finish();
ROLLBACK;
