-- A decision as HTTP fields. Times are rounded up, amounts down; the clock is that of the decision (B005), not of the rendering.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
SET taskq_ratelimit.test_clock = '1700000000.25';
CREATE FUNCTION pg_temp.fields(taskq.rate_limit_decision) RETURNS TABLE (field text, value text) LANGUAGE sql AS $$
    SELECT * FROM jsonb_each_text(taskq.http_headers($1)) ORDER BY 1
$$;
SELECT taskq.register_token_bucket('name', 10, 2);

-- B087: ten of ten spent at a quarter past the second, then a denial at the same instant.
SELECT * FROM pg_temp.fields(taskq.acquire('name', 10));
CREATE TEMPORARY TABLE kept AS SELECT taskq.acquire('name') AS d;
SELECT f.* FROM kept, pg_temp.fields(d) AS f;

-- B005: the same object five seconds later.
SET taskq_ratelimit.test_clock = '1700000005.25';
SELECT f.* FROM kept, pg_temp.fields(d) AS f;

-- 2.99 left are shown as 2.
SELECT taskq.refund('name', 99);
SELECT * FROM pg_temp.fields(taskq.acquire('name', 7.01));

-- Each kind has its window.
SELECT taskq.register_leaky_bucket('leaky', 10, 3), taskq.register_sliding_window('log', 5, '1 min'), taskq.register_sliding_window('gcra', 5, '1 min', 'gcra'),
       taskq.register_sliding_window('counter', 5, '1 min', 'counter'), taskq.register_fixed_window('fixed', 5, '1 min'), taskq.register_token_bucket('quota', 5, 0);
SELECT h ->> 'RateLimit-Policy' AS policy, h ->> 'RateLimit' AS rate_limit, h ->> 'RateLimit-Reset' AS reset, h ->> 'X-RateLimit-Reset' AS x_reset, h ->> 'Retry-After' AS retry
FROM unnest('{leaky,log,gcra,counter,fixed,quota}'::text[]) AS name, LATERAL (SELECT taskq.http_headers(taskq.acquire(name, 5)) AS h) AS s;
SELECT h ->> 'RateLimit' AS rate_limit, h ->> 'Retry-After' AS retry
FROM unnest('{leaky,log,gcra,counter,fixed,quota}'::text[]) AS name, LATERAL (SELECT taskq.http_headers(taskq.acquire(name, 5)) AS h) AS s;

-- Paused for ever: there is no time to retry at. Shadow: let through, so none either.
SELECT taskq.pause('log', 'infinity');
SELECT * FROM pg_temp.fields(taskq.acquire('log'));
SELECT taskq.register_token_bucket('shadow', 1, 1, shadow => true), taskq.allow('shadow');
SELECT * FROM pg_temp.fields(taskq.acquire('shadow'));

-- B088: strings are ASCII with quotes and backslashes escaped, or the field is left out; numbers have at most 15 digits; w is whole.
SELECT taskq.register_sliding_window('per "user" / é', 5, '0.5 s'), taskq.register_sliding_window('per "user" \ all', 5, '0.5 s'), taskq.register_fixed_window('large', 4503599627370496, '1 day');
SELECT * FROM pg_temp.fields(taskq.acquire('per "user" / é'));
SELECT * FROM pg_temp.fields(taskq.acquire('per "user" \ all'));
SELECT * FROM pg_temp.fields(taskq.acquire('large'));

-- Decisions on limits that are gone, or never were, have headers, too, only less of them.
SELECT taskq.drop_rate_limit('name');
SELECT f.* FROM kept, pg_temp.fields(d) AS f;

-- Forged ones never make a malformed field.
SELECT * FROM pg_temp.fields(jsonb_populate_record((SELECT d FROM kept), jsonb_build_object('bucket_name', E'a\r\nSet-Cookie: x', 'remaining', 'NaN', 'quota', '-Infinity')));
SELECT * FROM pg_temp.fields(jsonb_populate_record((SELECT d FROM kept), jsonb_build_object('decided_at', 'infinity', 'quota', 'NaN', 'remaining', 1e300)));
SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;
