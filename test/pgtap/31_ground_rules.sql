-- What holds for every limit, on random calls: preview says what acquire will answer, a denial changes nothing, waiting exactly as
-- long as told gets in and one microsecond less does not, what is left lies between nothing and the limit.
\getenv seed RATELIMIT_SEED
\if :{?seed}
\else
    \set seed 0.4243
\endif
BEGIN;
\ir helpers.psql
SELECT plan(8);
SELECT diag('RATELIMIT_SEED=' || :'seed');
SELECT setseed(:seed) \g /dev/null

CREATE FUNCTION helpers.without_id(d taskq.rate_limit_decision) RETURNS text LANGUAGE sql AS $$ SELECT (to_jsonb(d) - 'request_id')::text $$;
CREATE FUNCTION helpers.stored(limit_name text) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce((SELECT string_agg(b::text, ' ') FROM taskq.rate_limits JOIN taskq.rate_limit_buckets AS b USING (limit_id) WHERE name = limit_name), '')
        || coalesce((SELECT string_agg(e::text, ' ' ORDER BY e) FROM taskq.rate_limits JOIN taskq.rate_limit_buckets USING (limit_id)
                     JOIN taskq.rate_limit_window_entries AS e USING (bucket_id) WHERE name = limit_name), '')
$$;

-- What is wrong with the wait of a denial.
CREATE FUNCTION helpers.wait_fault(name text, d taskq.rate_limit_decision, t numeric) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    wait numeric := extract(epoch FROM d.retry_after);
BEGIN
    IF wait IS NULL THEN RETURN ''; END IF;
    IF wait <= 0 THEN RETURN 'a wait of nothing'; END IF;
    PERFORM at(t + wait - 0.000001);
    IF (taskq.preview(name, d.cost)).allowed THEN RETURN 'in a microsecond early'; END IF;
    PERFORM at(t + wait);
    IF NOT (taskq.preview(name, d.cost)).allowed THEN RETURN 'not in after the wait'; END IF;
    RETURN '';
END $$;

CREATE FUNCTION helpers.fault(name text, most int, t numeric) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    cost float8 := 1 + floor(random() * most * (CASE WHEN random() < 0.8 THEN 0.4 ELSE 1 END));
    before text := stored(name);
    expected text;
    d taskq.rate_limit_decision;
BEGIN
    PERFORM at(t);
    expected := without_id(taskq.preview(name, cost));
    IF stored(name) <> before THEN RETURN 'preview wrote'; END IF;
    d := taskq.acquire(name, cost);
    IF without_id(d) <> expected THEN RETURN format('preview said %s, acquire %s', expected, without_id(d)); END IF;
    IF d.remaining < 0 OR d.remaining > most OR taskq.remaining(name) <> d.remaining THEN RETURN 'remaining ' || d.remaining; END IF;
    IF taskq.reset_after(name) IS DISTINCT FROM d.reset_after THEN RETURN 'reset_after ' || d.reset_after; END IF;
    IF d.allowed THEN RETURN ''; END IF;
    IF stored(name) <> before THEN RETURN 'a denial wrote'; END IF;
    RETURN wait_fault(name, d, t);
END $$;

-- `count` calls at random intervals; the first fault, or ''.
CREATE FUNCTION helpers.first_fault(name text, most int, mean numeric, count int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    t numeric := 0;
    found text;
BEGIN
    FOR i IN 1 .. count LOOP
        t := t + round((-ln(1 - random()) * mean)::numeric, 6);
        found := fault(name, most, t);
        IF found <> '' THEN RETURN format('call %s at %s: %s', i, t, found); END IF;
    END LOOP;
    RETURN '';
END $$;

SELECT clock_starts(1700000000.123456) \g /dev/null
SELECT taskq.register_token_bucket('token bucket', 7, 7 / 3.0), taskq.register_token_bucket('quota', 99, 0),
       taskq.register_leaky_bucket('leaky bucket', 7, leak_amount => 11, leak_period => '7 s'), taskq.register_sliding_window('log', 7, '3.000001 s'),
       taskq.register_sliding_window('gcra', 7, '3 s', 'gcra'), taskq.register_sliding_window('counter', 7, '3.3 s', 'counter'),
       taskq.register_fixed_window('fixed window', 7, '3 s'), taskq.register_sliding_window('counter by the month', 10000, '30 days', 'counter') \g /dev/null
SELECT is(first_fault(name, most, mean, 150), '', name)
FROM (VALUES ('token bucket', 7, 0.9), ('quota', 99, 0.9), ('leaky bucket', 7, 1.2), ('log', 7, 0.9), ('gcra', 7, 0.9), ('counter', 7, 0.9), ('fixed window', 7, 0.9),
             ('counter by the month', 10000, 300000)) AS v (name, most, mean);

SELECT finish();
ROLLBACK;
