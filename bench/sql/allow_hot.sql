SELECT taskq.allow('hot');
