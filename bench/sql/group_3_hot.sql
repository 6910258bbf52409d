SELECT allowed, refused_by, retry_after FROM taskq.acquire_all(ARRAY[taskq.request('hot'), taskq.request('hot_2'), taskq.request('hot_3')]);
