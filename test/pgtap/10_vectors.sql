-- Golden sequences of another limiter, with the answers that exact arithmetic gives, replayed through SQL step by step.
-- A limit that is not keyed has its bucket from registration on, so registering at clock_start anchors its windows there.
\set content `cat test/vectors/limitra-vectors.json`
BEGIN;
\ir helpers.psql
CREATE TABLE helpers.vectors AS
    SELECT position, v FROM jsonb_array_elements((:'content')::jsonb -> 'vectors') WITH ORDINALITY AS e (v, position);

-- 58 sequences of 306 steps. Three have limits above 2^52, which we refuse: 8 steps fewer, 3 refusals and 2 counts more.
SELECT plan(306 - 8 + 3 + 2);

-- "7/2", "0.0625" or 12 (seconds) as microseconds, rounded up.
CREATE FUNCTION helpers.micros_up(fraction jsonb) RETURNS numeric LANGUAGE sql AS $$
    SELECT div(n * 1000000 + d - 1, d)
    FROM (SELECT split_part(fraction #>> '{}', '/', 1)::numeric AS n,
                 coalesce(nullif(split_part(fraction #>> '{}', '/', 2), ''), '1')::numeric AS d) AS f
$$;

CREATE FUNCTION helpers.micros(wait interval) RETURNS numeric LANGUAGE sql AS $$
    SELECT extract(epoch FROM wait) * 1000000
$$;

CREATE FUNCTION helpers.define(v jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    id text := v ->> 'id';
    p jsonb := v -> 'params';
BEGIN
    CASE v ->> 'algorithm'
        WHEN 'token_bucket' THEN RETURN taskq.register_token_bucket(id, (p ->> 'capacity')::float8, (p ->> 'rate')::float8);
        WHEN 'leaky_bucket' THEN RETURN taskq.register_leaky_bucket(id, (p ->> 'capacity')::float8, (p ->> 'rate')::float8);
        WHEN 'fixed_window' THEN RETURN taskq.register_fixed_window(id, (p ->> 'limit')::bigint, (p ->> 'window')::numeric * interval '1 second');
        WHEN 'sliding_window' THEN
            RETURN taskq.register_sliding_window(id, (p ->> 'limit')::bigint, (p ->> 'window')::numeric * interval '1 second', 'counter');
        WHEN 'sliding_log' THEN RETURN taskq.register_sliding_window(id, (p ->> 'limit')::bigint, (p ->> 'window')::numeric * interval '1 second');
    END CASE;
END $$;

-- What is wrong with an answer; '' if nothing is.
CREATE FUNCTION helpers.faults(d taskq.rate_limit_decision, exact jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN d.allowed <> (exact ->> 'allowed')::boolean THEN 'allowed ' || d.allowed || ' ' ELSE '' END
        || CASE WHEN floor(d.remaining) <> (exact ->> 'remaining')::float8 THEN 'remaining ' || d.remaining || ' ' ELSE '' END
        || CASE WHEN micros(d.reset_after) IS DISTINCT FROM micros_up(exact -> 'reset_after') THEN 'reset_after ' || d.reset_after || ' ' ELSE '' END
        || CASE WHEN micros(d.retry_after) IS DISTINCT FROM micros_up(exact -> 'retry_after') THEN 'retry_after ' || d.retry_after || ' ' ELSE '' END
        || CASE WHEN (d.retry_after > interval '0') = d.allowed THEN 'wait of a ' || d.reason || ' call ' ELSE '' END
$$;

-- The same for the state, as far as looking shows it.
CREATE FUNCTION helpers.state_faults(name text, v jsonb, state jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN abs(left_now - expected) > 1e-9 THEN 'state leaves ' || left_now || ' where ' || expected || ' is right' ELSE '' END
    FROM (SELECT taskq.remaining(name) AS left_now,
                 CASE WHEN state ? 'tokens' THEN micros_up(to_jsonb(state ->> 'tokens')) / 1000000
                      WHEN state ? 'water' THEN (v #>> '{params,capacity}')::numeric - micros_up(to_jsonb(state ->> 'water')) / 1000000
                      WHEN state ? 'count' THEN (v #>> '{params,limit}')::numeric - (state ->> 'count')::numeric
                      WHEN state ? 'log' THEN (v #>> '{params,limit}')::numeric - jsonb_array_length(state -> 'log')
                 END::float8 AS expected) AS s
$$;

CREATE FUNCTION helpers.step_faults(v jsonb, step jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    id text := v ->> 'id';
    cost float8 := coalesce((step ->> 'cost')::float8, 1);
    exact jsonb := step -> 'exact';
    found text := '';
BEGIN
    CASE step ->> 'op'
        WHEN 'allow' THEN found := faults(taskq.acquire(id, cost), exact);
        WHEN 'peek' THEN found := faults(taskq.preview(id, cost), exact);
        WHEN 'remaining' THEN
            IF floor(taskq.remaining(id)) <> (exact #>> '{}')::float8 THEN found := 'remaining ' || taskq.remaining(id); END IF;
        WHEN 'reset_after' THEN
            IF micros(taskq.reset_after(id)) <> micros_up(exact) THEN found := 'reset_after ' || taskq.reset_after(id); END IF;
        WHEN 'refund' THEN PERFORM taskq.refund(id, cost);
        WHEN 'reset' THEN PERFORM taskq.reset(id);
    END CASE;
    RETURN found || coalesce(state_faults(id, v, step -> 'state_after'), '');
END $$;

CREATE FUNCTION helpers.replay(v jsonb) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    step jsonb;
    number int := 0;
BEGIN
    PERFORM clock_starts((v ->> 'clock_start')::numeric);
    PERFORM define(v);
    FOR step IN SELECT s FROM jsonb_array_elements(v -> 'steps') AS s LOOP
        number := number + 1;
        PERFORM at((step ->> 't')::numeric);
        RETURN NEXT is(step_faults(v, step), '', format('%s step %s: %s(%s) at %s, %s', v ->> 'id', number, step ->> 'op',
                                                        coalesce(step ->> 'cost', ''), step ->> 't', v ->> 'purpose'));
    END LOOP;
END $$;

SELECT is((SELECT count(*) FROM vectors), 58::bigint, 'there are 58 sequences');
SELECT is((SELECT sum(jsonb_array_length(v -> 'steps')) FROM vectors), 306::bigint, 'they have 306 steps');

SELECT replay(v) FROM (SELECT v FROM vectors WHERE v ->> 'id' NOT IN ('df09', 'df10', 'df11') ORDER BY position) AS s;

-- No double counts beyond 2^53, so such limits could not be exact everywhere.
SELECT throws_ok(format('SELECT define(%L)', v), '22023', NULL, (v ->> 'id') || ': a limit above 2^52 is refused') FROM vectors
WHERE v ->> 'id' IN ('df09', 'df10', 'df11') ORDER BY position;

SELECT finish();
ROLLBACK;
