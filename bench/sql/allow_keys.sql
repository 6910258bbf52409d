\set k random(1, 10000)
SELECT taskq.allow('keys', key => 'user' || :k);
