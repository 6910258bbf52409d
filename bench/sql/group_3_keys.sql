\set k random(1, 10000)
SELECT allowed, refused_by, retry_after FROM taskq.acquire_all(ARRAY[taskq.request('keys', key => 'user' || :k), taskq.request('keys_2', key => 'user' || :k), taskq.request('keys_3', key => 'user' || :k)]);
