SELECT allowed, remaining, retry_after FROM taskq.acquire('hot');
