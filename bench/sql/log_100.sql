SELECT allowed, remaining, retry_after FROM taskq.acquire('log_100');
