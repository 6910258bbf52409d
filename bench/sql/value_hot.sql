SELECT taskq.acquire('hot');
