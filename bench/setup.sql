-- What is compared: ours, and the two shapes that people write by hand. All limits are so wide that every call is admitted,
-- except the ones called denied.
CREATE EXTENSION taskq_ratelimit;
SELECT taskq.register_token_bucket('hot', 1e9, 1e6);
SELECT taskq.register_token_bucket('keys', 1e9, 1e6, keyed => true);
SELECT taskq.register_token_bucket(name, 1e9, 1e6) FROM unnest('{hot_2,hot_3}'::text[]) AS name;
SELECT taskq.register_token_bucket(name, 1e9, 1e6, keyed => true) FROM unnest('{keys_2,keys_3}'::text[]) AS name;
SELECT taskq.register_token_bucket('denied', 1, 0);
SELECT taskq.acquire('denied');
-- The same pace at limits 10 000 times apart.
SELECT taskq.register_sliding_window('log_100', 100, '10 ms', style => 'log');
SELECT taskq.register_sliding_window('log_1000000', 1000000, '100 s', style => 'log');
-- Slots, few and many; always some are free.
SELECT taskq.register_reservation('slots_10', 10, '1 min');
SELECT taskq.register_reservation('slots_10000', 10000, '1 min');

CREATE SCHEMA bench;
CREATE TABLE bench.upsert (key text PRIMARY KEY, tokens float8 NOT NULL, at timestamptz NOT NULL) WITH (fillfactor = 50);
CREATE TABLE bench.for_update (LIKE bench.upsert INCLUDING ALL) WITH (fillfactor = 50);

-- The usual PL/pgSQL shape: lock the row, compute, write.
CREATE FUNCTION bench.acquire(k text, capacity float8, rate float8, cost float8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  b bench.for_update%ROWTYPE;
  t timestamptz;
BEGIN
  SELECT * INTO b FROM bench.for_update WHERE key = k FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO bench.for_update VALUES (k, capacity, clock_timestamp()) ON CONFLICT DO NOTHING;
    SELECT * INTO b FROM bench.for_update WHERE key = k FOR UPDATE;
  END IF;
  t := greatest(b.at, clock_timestamp());
  b.tokens := least(capacity, b.tokens + extract(epoch FROM t - b.at) * rate);
  IF b.tokens < cost THEN RETURN false; END IF;
  UPDATE bench.for_update SET tokens = b.tokens - cost, at = t WHERE key = k;
  RETURN true;
END $$;
