INSERT INTO bench.upsert AS b VALUES ('hot', 1e9 - 1, clock_timestamp())
ON CONFLICT (key) DO UPDATE SET
  tokens = least(1e9, b.tokens + extract(epoch FROM greatest(b.at, clock_timestamp()) - b.at) * 1e6) - 1,
  at = greatest(b.at, clock_timestamp())
WHERE least(1e9, b.tokens + extract(epoch FROM greatest(b.at, clock_timestamp()) - b.at) * 1e6) >= 1
RETURNING tokens;
