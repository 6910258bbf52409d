\set k random(1, 10000)
SELECT allowed, remaining, retry_after FROM taskq.acquire('keys', key => 'user' || :k);
