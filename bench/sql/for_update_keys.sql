\set k random(1, 10000)
SELECT bench.acquire('user' || :k, 1e9, 1e6, 1);
