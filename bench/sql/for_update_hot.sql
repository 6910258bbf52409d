SELECT bench.acquire('hot', 1e9, 1e6, 1);
