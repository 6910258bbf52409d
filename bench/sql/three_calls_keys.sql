\set k random(1, 10000)
BEGIN;
SELECT allowed, remaining, retry_after FROM taskq.acquire('keys', key => 'user' || :k);
SELECT allowed, remaining, retry_after FROM taskq.acquire('keys_2', key => 'user' || :k);
SELECT allowed, remaining, retry_after FROM taskq.acquire('keys_3', key => 'user' || :k);
COMMIT;
