-- Several rate limits and slots at once, all or nothing.
SET taskq_ratelimit.test_clock = '1700000000';
SELECT taskq.register_token_bucket('user', 1, refill_amount => 1, refill_period => '1 minute', keyed => true),
       taskq.register_fixed_window('global', 10, '1 minute', anchor => '1970-01-01 00:00+00'),
       taskq.register_reservation('gpu', 2, '30 seconds'), taskq.register_token_bucket('quota', 1, 0),
       taskq.register_token_bucket('half', 10, 1), taskq.register_sliding_window('hourly', 100, '1 hour');

-- B047: a refusal by one charges none
SELECT a.allowed, a.refused_by, a.reason, count(*)
    FROM generate_series(1, 20) AS i
    CROSS JOIN LATERAL (SELECT g.* FROM taskq.acquire_all(ARRAY[taskq.request('user', key => 'u1' || left(i::text, 0)), taskq.request('global')]) AS g) AS a
    GROUP BY a.allowed, a.refused_by, a.reason ORDER BY a.allowed DESC;
SELECT remaining FROM taskq.peek('global');
SELECT allowed FROM taskq.acquire_all(ARRAY[taskq.request('user', key => 'u2'), taskq.request('global')]);
SELECT remaining FROM taskq.peek('global');

-- B048: the wait is the longest, and it is named; all that refuse are told
SELECT taskq.allow('half', 9.5), taskq.allow('hourly', 40);
SET taskq_ratelimit.test_clock = '1700002400';
SELECT taskq.allow('half', 10), taskq.allow('hourly', 60);
SET taskq_ratelimit.test_clock = '1700002400.5';
SELECT g.allowed, g.refused_by, g.retry_after, d.name, d.allowed, d.reason, d.retry_after, d.remaining
    FROM taskq.acquire_all(ARRAY[taskq.request('half'), taskq.request('global'), taskq.request('hourly')]) AS g, unnest(g.decisions) AS d;

-- B050: the same limit twice is asked for the sum
SELECT taskq.register_token_bucket('twice', 3, 0), taskq.allow('twice');
SELECT g.allowed, (g.decisions[1]).remaining, (g.decisions[2]).remaining
    FROM taskq.acquire_all(ARRAY[taskq.request('twice'), taskq.request('twice')]) AS g;
SELECT taskq.register_token_bucket('twice_one', 2, 0), taskq.allow('twice_one');
SELECT g.allowed, g.refused_by, g.retry_after, (g.decisions[2]).remaining
    FROM taskq.acquire_all(ARRAY[taskq.request('twice_one'), taskq.request('twice_one')]) AS g;
SELECT * FROM taskq.acquire_all(ARRAY[taskq.request('twice_one', 2), taskq.request('twice_one')]);

-- B051: a slot that was taken for a refused group is free again
SELECT g.allowed, g.refused_by, d.kind, d.name, d.slot_index IS NOT NULL AS has_slot, d.fence IS NOT NULL AS has_fence, d.remaining
    FROM taskq.acquire_all(ARRAY[taskq.request('gpu', worker_id => '00000000-0000-0000-0000-00000000000a'), taskq.request('quota')]) AS g,
    unnest(g.decisions) AS d;
SELECT g.allowed, g.refused_by, g.retry_after, g.handle, d.name, d.allowed, d.slot_index
    FROM taskq.acquire_all(ARRAY[taskq.request('gpu'), taskq.request('quota')]) AS g, unnest(g.decisions) AS d;
SELECT held, free FROM taskq.peek_reservation('gpu');

-- Two slots of one reservation; full; the longest wait is that of the slots
SELECT g.allowed, g.refused_by, g.reason, g.retry_after FROM taskq.acquire_all(ARRAY[taskq.request('gpu'), taskq.request('gpu')]) AS g;
SELECT allowed FROM taskq.acquire_all(ARRAY[taskq.request('gpu'), taskq.request('half', 0.5)]);
SELECT g.allowed, g.refused_by, g.retry_after FROM taskq.acquire_all(ARRAY[taskq.request('half', 1), taskq.request('gpu')]) AS g;

-- Why
SELECT * FROM taskq.explain_acquire(ARRAY[taskq.request('half', 1), taskq.request('gpu'), taskq.request('global'), taskq.request('quota')]);

-- The handle gives everything back, once
SELECT taskq.register_reservation('pool', 3, '1 minute', keyed => true), taskq.register_sliding_window('log', 5, '1 minute'),
       taskq.register_token_bucket('tokens', 0.3, 0);
CREATE TEMP TABLE held AS SELECT g.handle FROM taskq.acquire_all(ARRAY[taskq.request('log', 2), taskq.request('pool', key => 'a'),
    taskq.request('tokens', 0.1), taskq.request('pool', key => 'b'), taskq.request('log')]) AS g;
SELECT jsonb_array_length(handle -> 'slots') AS slots, jsonb_array_length(handle -> 'rate_limits') AS limits FROM held;
SELECT (taskq.peek('log')).remaining AS log, (taskq.peek('tokens')).remaining AS tokens, held FROM taskq.peek_reservation('pool', 'a');
SELECT r.* FROM held, taskq.release_all(handle) AS r;
SELECT (taskq.peek('log')).remaining AS log, (taskq.peek('tokens')).remaining AS tokens, held FROM taskq.peek_reservation('pool', 'a');
SELECT r.* FROM held, taskq.release_all(handle, refund => true) AS r;
SELECT (taskq.peek('log')).remaining AS log, (taskq.peek('tokens')).remaining AS tokens;
SELECT r.* FROM held, taskq.release_all(handle, refund => true) AS r;
SELECT taskq.drop_reservation('pool'), taskq.drop_rate_limit('log');
SELECT r.* FROM held, taskq.release_all(handle, refund => true) AS r;

-- Many times in one transaction; a group of none; a savepoint
SET taskq_ratelimit.test_clock = '1700006100';
BEGIN;
SELECT count(*) FILTER (WHERE g.allowed) AS allowed FROM generate_series(1, 200) AS i
    CROSS JOIN LATERAL taskq.acquire_all(ARRAY[taskq.request('half', 0.01 + 0 * i), taskq.request('hourly')]) AS g;
SAVEPOINT s;
SELECT allowed, decisions, handle FROM taskq.acquire_all('{}');
SELECT allowed FROM taskq.acquire_all(ARRAY[taskq.request('half'), taskq.request('gpu')]);
ROLLBACK TO s;
SELECT (taskq.peek('half')).remaining, held FROM taskq.peek_reservation('gpu');
ROLLBACK;

-- Errors leave everything as it was
SELECT * FROM taskq.acquire_all(NULL);
SELECT * FROM taskq.acquire_all(ARRAY[NULL::taskq.acquire_request]);
SELECT * FROM taskq.acquire_all(ARRAY[taskq.request('half', 0.1), taskq.request('nowhere')]);
SELECT * FROM taskq.acquire_all(ARRAY[taskq.request('half', 0.1), taskq.request(NULL)]);
SELECT * FROM taskq.acquire_all(ARRAY[taskq.request('half', 11)]);
SELECT * FROM taskq.acquire_all(ARRAY[taskq.request('half', 'NaN')]);
SELECT * FROM taskq.acquire_all(ARRAY[taskq.request('user')]);
SELECT * FROM taskq.acquire_all(ARRAY[taskq.request('gpu', 2)]);
SELECT * FROM taskq.acquire_all(ARRAY[taskq.request('gpu'), taskq.request('gpu'), taskq.request('gpu')]);
SELECT * FROM taskq.acquire_all(ARRAY[taskq.request('half', kind => 'slot')]);
SELECT * FROM taskq.acquire_all(ARRAY(SELECT taskq.request('half', 0.001) FROM generate_series(1, 1001)));
SELECT taskq.register_token_bucket('gpu', 5, 0);
SELECT * FROM taskq.acquire_all(ARRAY[taskq.request('gpu')]);
SELECT (g.decisions[1]).kind FROM taskq.acquire_all(ARRAY[taskq.request('gpu', kind => 'rate_limit')]) AS g;
SELECT g.refused_by FROM taskq.acquire_all(ARRAY[taskq.request('gpu', job_id => '00000000-0000-0000-0000-00000000000b')]) AS g;
SELECT * FROM taskq.release_all(NULL);
SELECT * FROM taskq.release_all('[]');
SELECT * FROM taskq.release_all('{"slots": [], "rate_limits": [1]}');
SELECT * FROM taskq.release_all('{"slots": [{"name": "gpu", "key": "", "slot": -1, "fence": 1}], "rate_limits": []}');
SELECT remaining FROM taskq.peek('half');
SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;
SELECT count(taskq.drop_reservation(name)::text) FROM taskq.reservations;
