-- What users of the two limiters that this one grew out of rely on: bursts, refill, refunds, resets, peeks, registration.
BEGIN;
\ir helpers.psql
SELECT plan(76);
SELECT clock_starts(1700000000) \g /dev/null

-- Token bucket.
SELECT taskq.register_token_bucket('burst', 100, 10) \g /dev/null
SELECT is(granted(100, 'burst') || ' ' || taskq.remaining('burst'), '100 0', 'a burst of the capacity, and none left');
SELECT is(a('burst'), 'deny 0, 0.1', 'the next is denied for a tenth of a second');
SELECT at(1) \g /dev/null
SELECT is(granted(20, 'burst'), 10, 'a second later ten more');
SELECT taskq.reset('burst') \g /dev/null
SELECT is(a('burst', 50) || '; ' || a('burst', 60), 'ok 50; deny 50, 1', 'sixty after fifty of a hundred wait for a second');
SELECT taskq.register_token_bucket('fractions', 1.5, 0.25) \g /dev/null
SELECT is(a('fractions', 0.5) || '; ' || a('fractions', 1.25), 'ok 1; deny 1, 1', 'fractions of tokens');
SELECT taskq.register_token_bucket('one', 1, 1) \g /dev/null
SELECT is(calls(2, 'one'), 'ok 0; deny 0, 1', 'a cold start admits one');

-- A quota never refills, but can be refunded and reset.
SELECT taskq.register_token_bucket('quota', 3, 0) \g /dev/null
SELECT is(calls(4, 'quota'), 'ok 2; ok 1; ok 0; deny 0, never', 'a quota without refill is spent for ever');
SELECT is(taskq.refund('quota', 1) || ' ' || a('quota'), '1 ok 0', 'a refund makes room in it');
SELECT is(taskq.refund('quota', 99) || ' ' || taskq.remaining('quota'), '3 3', 'a refund is clamped at full');
SELECT a('quota', 3) \g /dev/null
SELECT is(taskq.reset('quota') || ' ' || look('quota'), 'true free 3', 'a reset restores it');
SELECT is(taskq.reset('quota') || ' ' || look('quota'), 'true free 3', 'again and again');

-- Refund without a bucket, reset without a bucket.
SELECT taskq.register_token_bucket('keyed', 5, 1, keyed => true), taskq.register_sliding_window('keyed swl', 5, '60 s', keyed => true) \g /dev/null
SELECT is(taskq.refund('keyed', 2, 'nobody') || ' ' || taskq.refund('keyed swl', 2, 'nobody'), '0 0', 'refunding an unknown key does nothing');
SELECT is(taskq.reset('keyed', 'nobody') || ' ' || taskq.reset('keyed swl', 'nobody'), 'false false', 'resetting it says that there was none');
SELECT is((SELECT count(*) FROM taskq.rate_limit_buckets WHERE key = 'nobody'), 0::bigint, 'neither creates it');
SELECT is(taskq.refund('keyed', 2, 'x') || ' ' || a('keyed', 2, 'x') || ' ' || taskq.refund('keyed', 2, 'x') || ' ' || taskq.remaining('keyed', 'x'),
          '0 ok 3 2 5', 'refund of a key once it is there');

-- peek.
SELECT taskq.register_token_bucket('peek', 5, 2) \g /dev/null
SELECT is((SELECT ROW(s.*)::text FROM (SELECT bucket_name, backend, is_exhausted, tokens_remaining, remaining, retry_after, capacity, "limit", "window", style,
                                              refill_per_second, key, paused_until, kind, reset_after FROM taskq.peek('peek')) AS s),
          '(peek,postgres,f,5,5,,5,,,,2,"",,token_bucket,00:00:00)', 'peek of a token bucket before any call');
SELECT is((SELECT count(*) FROM generate_series(1, 9) AS i WHERE look('peek') = 'free 5' OR i < 0), 9::bigint, 'peeking takes nothing');
SELECT is(a('peek', 5) || '; ' || look('peek'), 'ok 0; exhausted 0, 0.5', 'peek of a spent one tells the wait for one');
SELECT at(1.25) \g /dev/null
SELECT is(look('peek'), 'exhausted 0.5, 0.25', 'peek shows what has refilled');
SELECT at(2) \g /dev/null
SELECT is(look('peek'), 'free 2', 'and is not exhausted once one is there');
SELECT taskq.register_sliding_window('peek swl', 2, '10 s'), taskq.register_sliding_window('peek gcra', 2, '10 s', 'gcra'),
       taskq.register_sliding_window('peek swc', 2, '10 s', 'counter'), taskq.register_fixed_window('peek fw', 2, '10 s'), taskq.register_leaky_bucket('peek lb', 2, 0.2) \g /dev/null
SELECT is((SELECT ROW(s.*)::text FROM (SELECT is_exhausted, tokens_remaining, remaining, capacity, "limit", "window", style, refill_per_second, kind FROM taskq.peek(name)) AS s),
          expected, 'peek of ' || name)
FROM (VALUES ('peek swl', '(f,,2,,2,00:00:10,log,,sliding_window)'), ('peek gcra', '(f,,2,,2,00:00:10,gcra,,sliding_window)'),
             ('peek swc', '(f,,2,,2,00:00:10,counter,,sliding_window)'), ('peek fw', '(f,,2,,2,00:00:10,,,fixed_window)'),
             ('peek lb', '(f,2,2,2,,,,0.2,leaky_bucket)')) AS v (name, expected);
SELECT is(calls(2, name) || '; ' || look(name), 'ok 1; ok 0; exhausted 0, ' || wait, 'exhausted: ' || name)
FROM (VALUES ('peek swl', '10'), ('peek gcra', '5'), ('peek swc', '15'), ('peek fw', '10'), ('peek lb', '5')) AS v (name, wait);
SELECT throws_ok($$SELECT taskq.peek('no such limit')$$, '42704', 'rate limit "no such limit" does not exist', 'peek of an unknown name is an error');
SELECT throws_ok($$SELECT taskq.reset('no such limit')$$, '42704', 'rate limit "no such limit" does not exist', 'so is reset');
SELECT is((SELECT count(*) FROM taskq.peek_all() WHERE bucket_name LIKE 'peek%'), 6::bigint, 'peek_all has every limit');
SELECT is((SELECT count(*) FROM taskq.peek_all() WHERE bucket_name LIKE 'keyed%'), 1::bigint, 'and every key that is known');
SELECT is((SELECT count(*) FROM (SELECT * FROM taskq.rate_limit_status EXCEPT SELECT * FROM taskq.peek_all()) AS s), 0::bigint, 'the view shows the same');

-- Sliding log: counts down, denies one more, admits after the window; denials leave no entry; old entries go.
CREATE FUNCTION helpers.entries(limit_name text) RETURNS bigint LANGUAGE sql AS $$
    SELECT count(e) FROM taskq.rate_limits JOIN taskq.rate_limit_buckets USING (limit_id) LEFT JOIN taskq.rate_limit_window_entries AS e USING (bucket_id)
    WHERE name = limit_name
$$;
SELECT taskq.register_sliding_window('log', 30, '60 s') \g /dev/null
SELECT is(granted(40, 'log') || ' ' || entries('log'), '30 30', 'thirty are admitted, thirty are stored');
SELECT is((SELECT retry_after FROM taskq.preview('log')), interval '60 seconds', 'the next waits for the oldest');
SELECT at(62) \g /dev/null
SELECT is(granted(12, 'log') || ' ' || entries('log'), '12 12', 'a window later there is room, and every call has removed some of what has left');

-- gcra: a burst of the limit, then one per emission.
SELECT taskq.register_sliding_window('gcra', 60, '60 s', 'gcra') \g /dev/null
SELECT is(granted(61, 'gcra') || '; ' || p('gcra'), '60; deny 0, 1', 'sixty, then one second');
SELECT is(a_at(63, 'gcra') || '; ' || a('gcra') || '; ' || a_at(64, 'gcra'), 'ok 0; deny 0, 1; ok 0', 'one each second');

-- Two styles, two names: nothing is shared.
SELECT is(a('log') || '; ' || a('gcra'), 'ok 17; deny 0, 1', 'each has a bucket of its own');

-- Registration.
SELECT throws_ok($$SELECT taskq.register_sliding_window('burst', 100, '10 s')$$, '42710', 'rate limit "burst" is registered with another definition', 'a name of another kind');
SELECT throws_ok($$SELECT taskq.register_leaky_bucket('burst', 100, 10)$$, '42710', 'rate limit "burst" is registered with another definition',
                 'a leaky bucket is another kind, though it admits the same');
SELECT throws_ok($$SELECT taskq.register_token_bucket('burst', 100, 10, keyed => true)$$, '42710', 'rate limit "burst" is registered with another definition', 'keyed is part of it');
SELECT throws_ok($$SELECT taskq.register_token_bucket('burst', 100, 10, shadow => true)$$, '42710', 'rate limit "burst" is registered with another definition', 'so is shadow');
SELECT throws_ok($$SELECT taskq.register_token_bucket('taskq:queue', 1, 1)$$, '22023', 'names that begin with "taskq:" are reserved', 'a reserved prefix');
SELECT throws_ok($$SELECT taskq.acquire_token_bucket('taskq:queue', 1, 1)$$, '22023', 'names that begin with "taskq:" are reserved', 'also without registering');
SELECT is(taskq.register_token_bucket(repeat('n', 255), 1, 1), true, 'a name of 255 bytes');
SELECT throws_ok(format('SELECT taskq.register_token_bucket(%L, 1, 1)', repeat('n', 256)), '22023', 'name is too long', 'not of 256');

-- Two tiers: a burst above a sustained rate, composed with a refund.
SELECT taskq.register_token_bucket('tier burst', 10, 10), taskq.register_token_bucket('tier sustained', 3, 1) \g /dev/null
CREATE FUNCTION helpers.served() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    first taskq.rate_limit_decision := taskq.acquire('tier burst');
BEGIN
    IF first.allowed AND taskq.allow('tier sustained') THEN RETURN true; END IF;
    PERFORM taskq.refund(first);
    RETURN false;
END $$;
SELECT is((SELECT count(*) FROM generate_series(1, 6) AS i WHERE served() OR i < 0) || ' ' || floor(taskq.remaining('tier burst')), '3 7', 'three are served, seven of ten are left');

-- Where nothing is used there is nothing to wait for.
SELECT is((SELECT string_agg(DISTINCT seconds(reset_after), ' ') FROM taskq.peek_all() WHERE bucket_name IN ('fractions', 'quota', 'peek')), '0', 'reset_after of full limits');

-- A window decays by what has passed of it.
SELECT taskq.register_sliding_window('swc', 10, '10 s', 'counter') \g /dev/null
SELECT is(a('swc', 10), 'ok 0', 'two counters: all of ten');
SELECT is(seconds(taskq.reset_after('swc')), '20', 'it takes two windows to forget a call');
SELECT at(74) \g /dev/null
SELECT is(look('swc'), 'exhausted 0, 1', 'at the boundary nothing is free, the next in a second');
SELECT is(a_at(76.5, 'swc', 2) || '; ' || a('swc'), 'ok 0; deny 0, 0.5', 'a quarter of the window gives two whole ones');
SELECT at(114) \g /dev/null
SELECT is(look('swc'), 'free 10', 'after a long gap it is full');

-- Fixed windows begin with the bucket, not with its first use, nor with who looks.
SELECT taskq.register_fixed_window('fw', 10, '10 s'), at(127) \g /dev/null
SELECT is(taskq.remaining('fw') || ' ' || a('fw'), '10 ok 9', 'thirteen seconds after its creation');
SELECT is(seconds(taskq.reset_after('fw')), '7', 'the second window ends at twenty');

-- Shadow: decided and counted, let through.
SELECT taskq.register_token_bucket('shadow', 1, 1, shadow => true) \g /dev/null
SELECT is(calls(3, 'shadow'), 'ok 0; ok 0, shadow; ok 0, shadow', 'a shadow limit lets everybody through and says so');
SELECT is((SELECT count(*) FROM taskq.require('shadow')), 1::bigint, 'require, too');
SELECT is(taskq.refund((SELECT d FROM taskq.acquire('shadow') AS d)), 0::float8, 'who was let through has nothing to give back');

-- Paused: nothing passes until then.
SELECT taskq.register_token_bucket('pause', 5, 1), taskq.register_token_bucket('pause keyed', 5, 1, keyed => true) \g /dev/null
SELECT taskq.pause('pause', to_timestamp(1700000137)) \g /dev/null
SELECT is(a('pause') || '; ' || look('pause'), 'deny 5, 10, paused; exhausted 5, 10', 'a pause of ten seconds');
SELECT is(a_at(136.999999, 'pause') || '; ' || a_at(137, 'pause'), 'deny 5, 0.000001, paused; ok 4', 'it ends when said');
SELECT taskq.pause('pause keyed', 'k', 'infinity') \g /dev/null
SELECT is(a('pause keyed', key => 'k') || '; ' || a('pause keyed', key => 'l'), 'deny 5, never, paused; ok 4', 'one key only, for ever');
SELECT taskq.pause('pause keyed', 'infinity'), taskq.resume('pause keyed', 'k') \g /dev/null
SELECT is(a('pause keyed', key => 'k') || '; ' || a('pause keyed', key => 'l'), 'deny 5, never, paused; deny 4, never, paused', 'all keys');
SELECT taskq.resume('pause keyed') \g /dev/null
SELECT is(a('pause keyed', key => 'k') || '; ' || a('pause keyed', key => 'l'), 'ok 4; ok 3', 'resumed');
SELECT taskq.pause('pause keyed', 'infinity'), taskq.register_token_bucket('pause keyed', 5, 1, replace => true) \g /dev/null
SELECT is(a('pause keyed'), 'deny 5, never, paused', 'a pause of all keys holds when the limit has no keys any more');
SELECT taskq.resume('pause keyed') \g /dev/null
SELECT is(a('pause keyed'), 'ok 4', 'and resume ends it');

-- require raises, with the wait in the hint.
SELECT throws_ok($$SELECT taskq.require('one', 1) FROM generate_series(1, 2)$$, 'TQ429', 'rate limit "one" exceeded', 'require raises TQ429');
SELECT is(taskq.remaining('one'), 1::float8, 'a statement that fails takes nothing');

-- reserve: an instant for everybody.
SELECT taskq.register_token_bucket('reserve', 1, 2), taskq.register_sliding_window('reserve gcra', 1, '0.5 s', 'gcra'), taskq.register_leaky_bucket('reserve lb', 1, 2) \g /dev/null
CREATE FUNCTION helpers.places(name text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(seconds((taskq.reserve(name, 1 + i * 0, '1.2 s')).delay), ' ') FROM generate_series(1, 3) AS i
$$;
SELECT is(places(name), '0 0.5 1', name || ' gives everybody an instant') FROM unnest('{reserve,reserve gcra,reserve lb}'::text[]) AS name;
SELECT is((SELECT short(d) || ', ' || reason FROM taskq.reserve('reserve', 1, '1.2 s') AS d), 'deny 0, 0.3, limited', 'denied if it is too far away; in 0.3 s it is not');
SELECT throws_ok($$SELECT taskq.reserve('fw')$$, '22023', 'only buckets and sliding windows of style gcra can reserve ahead', 'windows do not reserve');

-- charge: debits without asking.
SELECT taskq.register_token_bucket('charge', 5, 1) \g /dev/null
SELECT is((SELECT short(d) FROM taskq.charge('charge', 8) AS d) || '; ' || a('charge'), 'ok 0; deny 0, 4', 'three below nothing: a wait of four for one');

SELECT finish();
ROLLBACK;
