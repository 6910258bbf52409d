-- A million calls, spread over the minute that ends now, so that the window of log_1000000 is full from the start.
DO $$
DECLARE
  first numeric := extract(epoch FROM clock_timestamp()) - 50;
BEGIN
  FOR i IN 1 .. 1000000 LOOP
    PERFORM set_config('taskq_ratelimit.test_clock', round(first + i * 0.000060, 6)::text, true);
    PERFORM taskq.allow('log_1000000');
  END LOOP;
END $$;
VACUUM ANALYZE taskq.rate_limit_window_entries;
