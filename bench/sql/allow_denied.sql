SELECT taskq.allow('denied');
