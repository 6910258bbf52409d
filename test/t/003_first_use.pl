# Keys and ad-hoc names that nobody has used before, used by 20 sessions at the same instant (B060):
# exactly 5 grants each, no 23505, no 40001, at every isolation level.
#
# All clients sleep until the next tick of a common clock, and use what is named after that tick.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('first_use');
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('keyed bucket', 5, 0, keyed => true);
	SELECT taskq.register_sliding_window('keyed log', 5, '1 hour', keyed => true);
	CREATE UNLOGGED TABLE calls (run text, tick bigint, allowed boolean);");

my %acquire = (
	'keyed bucket'  => "taskq.acquire('keyed bucket', key => '%s' || :tick)",
	'keyed log'     => "taskq.acquire('keyed log', key => '%s' || :tick)",
	'ad-hoc bucket' => "taskq.acquire_token_bucket('%s' || :tick, 5, 0)",
	'ad-hoc log'    => "taskq.acquire_sliding_window('%s' || :tick, 5, '1 hour')");
my $ticks  = 12;
my $length = 0.05;

foreach my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
{
	foreach my $what (sort keys %acquire)
	{
		my $run  = "$what, $level ";
		my $call = sprintf($acquire{$what}, $run);
		my ($status, $out, $err) = hammer(
			$node,
			"BEGIN ISOLATION LEVEL $level;\n"
			  . "SELECT pg_sleep($length - extract(epoch FROM clock_timestamp())::numeric % $length);\n"
			  . "SELECT floor(extract(epoch FROM clock_timestamp()) / $length)::bigint AS tick \\gset\n"
			  . "INSERT INTO calls SELECT '$run', :tick, allowed FROM $call;\nCOMMIT;\n",
			'-M', 'simple', '-c', 20, '-j', 2, '-t', $ticks);
		is($status, 0, "$run: no client was stopped by an error") or diag($err);
		like($out, qr/number of failed transactions: 0 /, "$run: no transaction failed");
		is( $node->safe_psql('postgres',
				"SELECT count(*) FROM (SELECT count(*) AS calls, count(*) FILTER (WHERE allowed) AS granted FROM calls
				 WHERE run = '$run' GROUP BY tick) t WHERE granted <> least(calls, 5)"),
			0, "$run: exactly 5 granted each time");
		cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM (SELECT FROM calls WHERE run = '$run' GROUP BY tick HAVING count(*) >= 10) t"),
			'>=', 3, "$run: at least thrice 10 or more met");
	}
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM (SELECT FROM taskq.rate_limit_buckets GROUP BY limit_id, key HAVING count(*) > 1) d'),
	0, 'one row for each key');
my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
unlike($log, qr/duplicate key|could not serialize|deadlock/, 'nothing of the kind in the log');

$node->stop;
done_testing();
