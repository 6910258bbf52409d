# Without preloading, one line for pg_cron sweeps: the one in docs/reference.md.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use RateLimitTest;
use Test::More;

my $node = new_server('cron', conf => "shared_preload_libraries = 'pg_cron'\ncron.use_background_workers = on\n");
$node->safe_psql('postgres', "CREATE EXTENSION pg_cron; SELECT taskq.register_token_bucket('idle', 5, 1, keyed => true); SELECT taskq.allow('idle', 1, 'a')");
$node->safe_psql('postgres', "UPDATE taskq.rate_limit_buckets SET at = at - interval '2 hours'");
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'taskq_ratelimit%'"), 0, 'not preloaded, there is no worker');
$node->safe_psql('postgres', "SELECT cron.schedule('sweep', '* * * * *', 'SELECT taskq.sweep()')");
ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM cron.job_run_details WHERE command = 'SELECT taskq.sweep()' AND status = 'succeeded'"),
	'pg_cron runs it within a minute');
is($node->safe_psql('postgres', 'SELECT count(*) FROM taskq.rate_limit_buckets'), 0, 'the idle bucket is gone');

$node->stop;
done_testing();
