# Calls that are interrupted (B066), and waiting (B082, B083).
#
# Interrupted by statement_timeout or pg_cancel_backend under contention, a call is counted fully or not at all, the session goes
# on, and its memory does not grow. Who waits in CALL taskq.wait() holds nothing meanwhile, and who is interrupted there
# hands his place back.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('cancel');
$node->safe_psql('postgres', "CREATE TABLE grants (run text, name text, cost float8, decided_at timestamptz);
	SELECT taskq.register_token_bucket(n, 1000000, 0) FROM unnest(ARRAY['a', 'b', 'c']) n;
	SELECT taskq.register_sliding_window('log', 1000000, '1 day');");

sub start_psql
{
	my ($output, $script) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . '/script.sql';
	append_to_file($file, $script);
	return IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', $file ], '>', $output, '2>', "$output.err");
}

my $folder = PostgreSQL::Test::Utils::tempdir();
my $calls  = 200;
my $memory = "SELECT 'memory ' || sum(used_bytes) FROM pg_backend_memory_contexts;\n";
sub call
{
	return "INSERT INTO grants SELECT '$_[0]', bucket_name, cost, decided_at FROM taskq.acquire_many(ARRAY['a', 'b', 'c', 'log']) WHERE allowed;\n";
}

sub check_interrupted
{
	my ($run, @outputs) = @_;
	my ($cancelled, $grown) = (0, 0);
	foreach my $output (@outputs)
	{
		my @lines = split /\n/, slurp_file("$output.err");
		$cancelled += grep { /canceling statement/ } @lines;
		is_deeply([ grep { /ERROR|FATAL|WARNING/ && !/canceling statement due to (statement timeout|user request)/ } @lines ], [], "$run: no other error");
		my @memory = slurp_file($output) =~ /^memory (\d+)$/mg;
		is(scalar(@memory), 2, "$run: the session went on to its end");
		$grown++ if $memory[1] > $memory[0] + 64 * 1024;
	}
	cmp_ok($cancelled, '>=', 20, "$run: $cancelled of " . @outputs * $calls . ' calls were interrupted');
	is($grown, 0, "$run: no session's memory grew");
	is($node->safe_psql('postgres', "SELECT n, 1000000 - taskq.remaining(n) - (SELECT count(*) FROM grants WHERE name = n) FROM unnest(ARRAY['a', 'b', 'c', 'log']) n ORDER BY n"),
		"a|0\nb|0\nc|0\nlog|0", "$run: each call was counted fully or not at all");
	is($node->safe_psql('postgres', "SELECT used - tail - (SELECT count(*) FROM taskq.rate_limit_window_entries) FROM taskq.rate_limit_buckets WHERE bucket_id <> 0"),
		0, "$run: and so were window entries");
}

# A neighbour that holds the first bucket for some milliseconds, again and again, so that calls wait: at first awake, after 20 ms
# in the lock manager.
sub start_neighbour
{
	my $block = "BEGIN; INSERT INTO grants SELECT 'neighbour', bucket_name, cost, decided_at FROM taskq.acquire('a') WHERE allowed; SELECT pg_sleep(0.012 + 0.06 * random()); COMMIT;\n";
	return start_psql("$folder/neighbour", $block x 80);
}

my @outputs = map { "$folder/timeout$_" } 1 .. 6;
my $neighbour = start_neighbour();
my @sessions = map {
	my $number = $_;
	start_psql($outputs[ $number - 1 ],
		call('warm') x 20 . $memory
		  . join('', map { 'SET statement_timeout = ' . (1 + ($_ * 7 + $number) % ($_ % 4 ? 20 : 60)) . ";\n" . call('timeout') } 1 .. $calls)
		  . "RESET statement_timeout;\n$memory")
} 1 .. 6;
$_->finish foreach @sessions, $neighbour;
check_interrupted('statement_timeout', @outputs);

@outputs   = map { "$folder/cancelled$_" } 1 .. 6;
$neighbour = start_neighbour();
@sessions  = map { start_psql($outputs[ $_ - 1 ], call('warm') x 20 . $memory . call('cancelled') x $calls . "SELECT pg_sleep(0.1);\n" x 5 . $memory) } 1 .. 6;
my $canceller = start_psql("$folder/canceller",
	"SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'INSERT INTO grants SELECT ''cancelled''%';\nSELECT pg_sleep(0.004);\n" x 300);
$_->finish foreach @sessions, $canceller, $neighbour;
check_interrupted('pg_cancel_backend', @outputs);

# One call with many decisions
my $long = "SELECT count(*) FROM taskq.acquire_many(array_fill('log'::text, ARRAY[500000]))";
my $before = time;
my (undef, undef, $stopped) = $node->psql('postgres', "SET statement_timeout = '100ms'; $long");
like($stopped, qr/canceling statement due to statement timeout/, 'acquire_many is interrupted');
cmp_ok(time - $before, '<', 2, 'between two of its decisions');

# wait() under a crowd (B082)
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('crowd', 1, 10, keyed => true);
	SELECT taskq.register_token_bucket('slow', 1, 1.0 / 60, keyed => true);
	CREATE TABLE releases (who int, at timestamptz, allowed boolean)");
my $wait = "SET synchronous_commit = off; SELECT pg_sleep(1 - extract(epoch FROM clock_timestamp())::numeric % 1);
CALL taskq.wait('crowd', key => 'k') \\gset
INSERT INTO releases VALUES (%d, clock_timestamp(), :'allowed');\n";
my $began = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
my @waiters = map { start_psql("$folder/waiter$_", sprintf($wait, $_)) } 1 .. 6;
poll($node, "SELECT count(*) > 0 FROM releases");
is($node->safe_psql('postgres', "SET statement_timeout = '90ms'; SELECT allowed FROM taskq.acquire('crowd', key => 'another')"), 't', 'B082: another key is not held up');
$_->finish foreach @waiters;
is($node->safe_psql('postgres', 'SELECT count(*), bool_and(allowed) FROM releases'), '6|t', 'B082: all six are released');
my ($smallest, $span) = split /\|/, $node->safe_psql('postgres',
	"SELECT min(gap), sum(gap) FROM (SELECT extract(epoch FROM at - lag(at) OVER (ORDER BY at)) AS gap FROM releases) g");
cmp_ok($smallest, '>=', 0.03, "B082: no two together (smallest gap $smallest)");
cmp_ok($span,     '>=', 0.46, "B082: six take at least half a second ($span)");
cmp_ok($span,     '<=', 5,    'B082: and not much longer');
is($node->safe_psql('postgres', "SELECT remaining < 1 FROM taskq.preview('crowd', key => 'k')"), 't', 'B082: each consumed a token');

# What a waiter holds while it sleeps: nothing.
my ($status, $out, $err);
is($node->safe_psql('postgres', "SELECT allowed FROM taskq.acquire('slow', key => 'k')"), 't', 'the slow bucket is emptied');
my $first = start_psql("$folder/first", "CALL taskq.wait('slow', key => 'k');\nSELECT 'goes on';\n");
my $sleeper = "FROM pg_stat_activity WHERE query LIKE 'CALL taskq.wait(''slow''%'";
poll($node, "SELECT count(*) = 1 $sleeper AND wait_event_type = 'Extension'");
is($node->safe_psql('postgres', "SELECT backend_xid IS NULL, backend_xmin IS NULL $sleeper"), 't|t', 'a sleeper holds no transaction id and no snapshot');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE pid = (SELECT pid $sleeper) AND locktype <> 'virtualxid'"), 0, 'and no lock');
($status) = $node->psql('postgres', "SET lock_timeout = '1s'; SET taskq_ratelimit.lock_timeout = '1s'; SELECT taskq.resume('slow', 'k')");
is($status, 0, 'another session can change the same bucket');
$node->safe_psql('postgres', 'CREATE DATABASE passing');
is($node->safe_psql('postgres', "SET statement_timeout = '20s'; DROP DATABASE passing"), '', 'DROP DATABASE, which waits for every backend, does not wait for a sleeper');

# A cancelled waiter hands its place back (B083).
my $delay = "SELECT round(retry_after_seconds / 60) FROM taskq.preview('slow', key => 'k')";
is($node->safe_psql('postgres', $delay), 2, 'B083: with one waiter the next place is two minutes away');
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) $sleeper");
$first->finish;
like(slurp_file("$folder/first.err"), qr/canceling statement due to user request/, 'B083: the waiter is cancelled');
is(slurp_file("$folder/first"), "goes on\n", 'B083: its session goes on');
is($node->safe_psql('postgres', $delay), 1, 'B083: its place is free again');
($status, $out, $err) = $node->psql('postgres', "SET statement_timeout = '100ms'; CALL taskq.wait('slow', key => 'k')");
like($err, qr/canceling statement due to statement timeout/, 'B083: a waiter with statement_timeout is interrupted');
is($node->safe_psql('postgres', $delay), 1, 'B083: and hands its place back');
my $started = time;
is($node->safe_psql('postgres', "CALL taskq.wait('slow', key => 'k', timeout => '50 ms')") =~ s/\|.*//r, 'f', 'B083: a deadline that cannot be met is a denial');
cmp_ok(time - $started, '<=', 5, 'B083: without waiting for the minute');
is($node->safe_psql('postgres', $delay), 1, 'B083: which takes no place');
$first = start_psql("$folder/terminated", "CALL taskq.wait('slow', key => 'k');\n");
poll($node, "SELECT count(*) = 1 $sleeper AND wait_event_type = 'Extension'");
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid, 10000) $sleeper");
$first->finish;
is($node->safe_psql('postgres', $delay), 1, 'B083: neither keeps it who is terminated');

# If somebody holds the bucket, the place is lost, but nobody has to wait for the session to end.
$first = start_psql("$folder/terminated", "CALL taskq.wait('slow', key => 'k');\n");
poll($node, "SELECT count(*) = 1 $sleeper AND wait_event_type = 'Extension'");
my $holder = start_psql("$folder/holder", "BEGIN; SELECT taskq.pause('slow', 'k', now()); SELECT pg_sleep(8); ROLLBACK;\n");
poll($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'BEGIN; SELECT taskq.pause%' OR query LIKE 'SELECT pg_sleep(8)%'");
poll($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
is($node->safe_psql('postgres', "SELECT pg_terminate_backend(pid, 4000) $sleeper"), 't', 'a waiter is terminated although its bucket is held');
$_->finish foreach $first, $holder;

# Windows: waiters retry, and each gets what it waited for.
$node->safe_psql('postgres', "SELECT taskq.register_fixed_window('window', 3, '200 ms'); SELECT taskq.register_sliding_window('wait log', 3, '200 ms');
	TRUNCATE releases");
@waiters = map { start_psql("$folder/window$_", "CALL taskq.wait('window') \\gset\nINSERT INTO releases VALUES ($_, clock_timestamp(), :'allowed');\nCALL taskq.wait('wait log') \\gset\nINSERT INTO releases VALUES ($_, clock_timestamp(), :'allowed');\n") } 1 .. 8;
$_->finish foreach @waiters;
is($node->safe_psql('postgres', 'SELECT count(*), bool_and(allowed) FROM releases'), '16|t', 'eight waiters of a window, then of a log, are all released');
is($node->safe_psql('postgres', "SELECT used FROM taskq.rate_limit_buckets b JOIN taskq.rate_limits l USING (limit_id) WHERE l.name = 'wait log'"), 8, 'each took one');

($status, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nBEGIN; CALL taskq.wait('crowd', key => 'k')");
like($err, qr/ERROR:  25001: /, 'CALL in a transaction block: 25001');
$node->safe_psql('postgres', "CREATE PROCEDURE work() LANGUAGE plpgsql AS \$\$ DECLARE go boolean; rest float8; waited interval; again interval; why text; slot int; fence bigint; lease_end timestamptz;
	BEGIN CALL taskq.wait('crowd', 1, 'x', NULL, go, rest, waited, again, why, NULL, NULL, NULL, slot, fence, lease_end); INSERT INTO releases VALUES (0, clock_timestamp(), go); END \$\$");
is($node->safe_psql('postgres', 'CALL work()'), '', 'a procedure may CALL it');
is($node->safe_psql('postgres', 'SELECT allowed FROM releases WHERE who = 0'), 't', 'and is told');

$node->stop;
done_testing();
