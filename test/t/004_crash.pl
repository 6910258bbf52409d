# Crashes in the middle of traffic, synchronous_commit on: a backend killed with SIGKILL, and the whole server stopped at once.
#
# After recovery the committed grants keep to the exact bound, the state is that of the committed grants (none counted twice, none
# lost), rows are usable, and no lock is left. A backend that dies in the middle of a transaction has taken nothing (B055).
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('crash', conf => "restart_after_crash = on\nsynchronous_commit = on\n");
$node->safe_psql('postgres', "CREATE TABLE grants (run text, decided_at timestamptz);
	SELECT taskq.register_token_bucket('bucket', 50, 400);
	SELECT taskq.register_sliding_window('log', 50, '200 ms');
	SELECT taskq.register_token_bucket('quota', 1000000, 0);");

my $traffic = join '', map { "INSERT INTO grants SELECT '$_', decided_at FROM taskq.acquire('$_') WHERE allowed;\n" } qw(bucket log quota);

sub check_state
{
	my $after = shift;
	my @bucket = grants_of($node, "run = 'bucket'");
	is(meter_overdrawn(50, 2500, @bucket), 0, "$after: bucket never overdrawn in " . @bucket . ' grants');
	cmp_ok(most_in_any_window(200_000, grants_of($node, "run = 'log'")), '<=', 50, "$after: log never above its limit");
	is($node->safe_psql('postgres', "SELECT 1000000 - taskq.remaining('quota') - count(*) FROM grants WHERE run = 'quota'"),
		0, "$after: the quota's state is what the committed grants took");
	is($node->safe_psql('postgres', "SELECT b.used - b.tail - sum(e.cost) FROM taskq.rate_limit_buckets b
			JOIN taskq.rate_limit_window_entries e USING (bucket_id) GROUP BY b.used, b.tail"),
		0, "$after: the log's entries are those that its state counts");
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE relation = 'taskq.rate_limit_buckets'::regclass AND pid <> pg_backend_pid()"),
		0, "$after: no lock is left");
	is($node->safe_psql('postgres', "SET taskq_ratelimit.lock_timeout = '1ms'; SELECT count(*) FROM unnest(ARRAY['bucket', 'log', 'quota']) name,
			LATERAL taskq.preview(name) p WHERE p.reason IN ('ok', 'limited')"),
		3, "$after: rows are usable");
	is($node->safe_psql('postgres', "SET taskq_ratelimit.lock_timeout = '1ms'; INSERT INTO grants SELECT 'quota', decided_at FROM taskq.acquire('quota') RETURNING run"),
		'quota', "$after: and can be taken from at once");
}

# Waits until traffic flows, and for some more grants.
sub let_flow
{
	my $before = $node->safe_psql('postgres', 'SELECT count(*) FROM grants');
	poll($node, "SELECT count(*) > $before + 300 FROM grants");
}

my $output = '';
my $clients = start_hammer($node, \$output, $traffic, '-c', 8, '-j', 2, '-T', 60);
let_flow();
my $victim = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND query LIKE 'INSERT INTO grants%' LIMIT 1");
kill 'KILL', $victim;
$clients->finish;
poll($node, 'SELECT true');
check_state('a backend was killed');

foreach my $round (1 .. 3)
{
	$clients = start_hammer($node, \$output, $traffic, '-c', 8, '-j', 2, '-T', 60);
	let_flow();
	$node->stop('immediate');
	$clients->finish;
	$node->start;
	check_state("immediate stop $round");
}

# B055: holders that die in the middle of a transaction.
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('held', 1, 0)");
foreach my $how ('terminated', 'killed')
{
	my $holder = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $holder->query('SELECT pg_backend_pid()');
	is($holder->query("BEGIN; SELECT allowed FROM taskq.acquire('held')"), 't', "B055: the holder to be $how takes");
	if ($how eq 'killed') { kill 'KILL', $pid; }
	else                  { $node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 5000)"); }
	poll($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)");
	is($node->safe_psql('postgres', "SELECT allowed, remaining FROM taskq.preview('held')"), 't|0', "B055: the holder was $how: it has taken nothing");
	eval { $holder->quit };
}

$node->stop;
done_testing();
