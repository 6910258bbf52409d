-- A million calls, spread over the last 100 s, so that the window of log_1000000 is full from the start.
DO $$
DECLARE
  first numeric := extract(epoch FROM clock_timestamp()) - 90;
BEGIN
  FOR i IN 1 .. 1000000 LOOP
    PERFORM set_config('taskq_ratelimit.test_clock', round(first + i * 0.000100, 6)::text, true);
    PERFORM taskq.allow('log_1000000');
  END LOOP;
END $$;
VACUUM ANALYZE taskq.rate_limit_window_entries;
