-- The statistics of a server that has not preloaded the library: there are none, and all that asks for them says so.
SET timezone = 'UTC';
SELECT taskq.register_token_bucket('tb', 1, 0), taskq.register_reservation('slots', 1, '1 min');
SELECT taskq.allow('tb'), taskq.allow('tb'), (taskq.acquire_slot('slots', NULL, NULL)).allowed \g /dev/null

-- Every limit and reservation has its row, and nothing in it: unknown is not 0.
SELECT * FROM taskq.rate_limit_stats WHERE name IN ('tb', 'slots');
SELECT count(*) AS missing FROM (SELECT 'rate_limit' AS kind, name FROM taskq.rate_limits UNION ALL SELECT 'reservation', name FROM taskq.reservations
    EXCEPT SELECT kind, name FROM taskq.peek_stats()) AS s;
SELECT * FROM taskq.stats_info();
SELECT count(*) FROM taskq.decision_counts();

-- Nothing can be reset, whatever the arguments.
SELECT taskq.reset_stats();
\echo :LAST_ERROR_SQLSTATE
SELECT taskq.reset_stats('tb', 'rate_limit');
\echo :LAST_ERROR_SQLSTATE

-- The setting is there, and no session can set it.
SHOW taskq_ratelimit.stats_entries;
SET taskq_ratelimit.stats_entries = 5;
\echo :LAST_ERROR_SQLSTATE

-- Reading works where nothing may be written.
BEGIN READ ONLY;
SELECT count(*) FROM taskq.rate_limit_stats WHERE name = 'tb';
COMMIT;
SELECT taskq.drop_rate_limit('tb'), taskq.drop_reservation('slots');
