# Waiting for slots of reservations: CALL taskq.wait() (B058), and waiters that are told to stop.
#
# Whoever is interrupted, wherever it is, holds no slot afterwards: not while it sleeps, not while it takes one, and not between the commit
# and the answer. The latter is made to last by waiting for a standby that does not exist.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node   = new_server('slot_wait', conf => "wal_level = replica\nmax_wal_senders = 5\nsynchronous_commit = local\nsynchronous_standby_names = 'nobody'\n");
my $folder = PostgreSQL::Test::Utils::tempdir();
my $holder = "'aaaaaaaa-0000-4000-8000-000000000000'";

sub start_psql
{
	my ($output, $script) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . '/script.sql';
	append_to_file($file, $script);
	return IPC::Run::start([ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres'), '-f', $file ], '>', $output, '2>', "$output.err");
}
sub sleepers
{
	my ($name, $count) = @_;
	return poll($node, "SELECT count(*) = $count FROM pg_stat_activity WHERE query LIKE 'CALL taskq.wait(''$name''%' AND wait_event_type = 'Extension'");
}
sub held { return $node->safe_psql('postgres', "SELECT held FROM taskq.peek_reservation('$_[0]')"); }

# B058: two held, two waiting; one transaction releases both.
$node->safe_psql('postgres', "SELECT taskq.register_reservation(name, slots, '1 hour') FROM (VALUES ('pair', 2), ('dropped', 1), ('few', 2), ('last', 1), ('ended', 1), ('cancelled', 1)) AS r (name, slots);
	SELECT taskq.acquire_slot('pair', NULL, $holder) FROM generate_series(1, 2)");
my @waiters = map { start_psql("$folder/pair$_", "CALL taskq.wait('pair', timeout => '10 minutes');\n") } 1, 2;
sleepers('pair', 2);
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity AS a WHERE query LIKE 'CALL taskq.wait%'
	AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL OR EXISTS (SELECT FROM pg_locks AS l WHERE l.pid = a.pid AND locktype NOT IN ('virtualxid')))"),
	0, 'B058: asleep, waiters have no snapshot, no transaction id and no lock');
is(held('pair'), 2, 'B058: both slots are held, two wait');
$node->safe_psql('postgres', "BEGIN; SELECT taskq.release_slot('pair', i, $holder) FROM generate_series(0, 1) AS i; COMMIT");
$_->finish foreach @waiters;
my @answers = map { [ split /\|/, slurp_file("$folder/pair$_") ] } 1, 2;
is(join(' ', map { "$_->[0] $_->[4]" } @answers), 't ok t ok', 'B058: both get in');
is(join(' ', sort map { $_->[5] } @answers),      '0 1',       'B058: into different slots');
is(held('pair'),                                  2,           'B058: so two run again');

# The reservation is dropped while somebody waits.
$node->safe_psql('postgres', "SELECT taskq.acquire_slot('dropped', NULL, NULL)");
my $waiter = start_psql("$folder/dropped", "CALL taskq.wait('dropped');\n");
sleepers('dropped', 1);
$node->safe_psql('postgres', "SELECT taskq.drop_reservation('dropped')");
$waiter->finish;
like(slurp_file("$folder/dropped.err"), qr/ERROR:  42704: reservation "dropped" does not exist/, 'dropped meanwhile: 42704');

# Somebody changes the definition in an open transaction, and the slot has no row yet: no longer than the timeout.
my $operator = $node->background_psql('postgres');
$operator->query("BEGIN; SELECT taskq.register_reservation('last', 2, '1 hour', replace => true)");
$node->safe_psql('postgres', "SET synchronous_commit = off; DELETE FROM taskq.reservation_slots WHERE slot_index = 0 AND reservation_id = (SELECT reservation_id FROM taskq.reservations WHERE name = 'last')");
like($node->safe_psql('postgres', "SET taskq_ratelimit.lock_timeout = '1h'; CALL taskq.wait('last', timeout => '100 ms')"), qr/^f\|.*\|lock_timeout\|/, 'the lock of a reservation is waited for no longer than the timeout');
$operator->query('ROLLBACK');
$operator->quit;

# Many are interrupted at random instants, also in the middle of taking a slot. Each releases what it was told it has.
my ($clients, $calls, $random) = (6, 60, 0);
my @outputs = map { "$folder/few$_" } 1 .. $clients;
srand 1;
@waiters = map {
	my $worker = sprintf "'%08d-0000-4000-8000-000000000000'", $_;
	my $script = '';
	foreach (1 .. $calls)
	{
		$script .= '\set slot_index 0' . "\n" . '\set fence -1' . "\nSET statement_timeout = '" . (1 + int rand 40) . "ms';\nCALL taskq.wait('few', worker_id => $worker) \\gset\nSET statement_timeout = 0;\n"
		  . "SELECT pg_sleep(" . (rand 0.03) . ") WHERE :fence > 0;\nSELECT 'took' WHERE taskq.release_slot('few', :slot_index, fence => :fence);\n";
	}
	start_psql("$folder/few$_", $script)
} 1 .. $clients;
$_->finish foreach @waiters;
my $took        = grep { /^took$/ } map { split /\n/, slurp_file($_) } @outputs;
my @errors      = grep { /ERROR|FATAL/ } map { split /\n/, slurp_file("$_.err") } @outputs;
my $interrupted = grep { /57014/ } @errors;
cmp_ok($took,        '>', 50, "$took waiters got a slot");
cmp_ok($interrupted, '>', 50, "$interrupted were interrupted");
is(scalar(@errors), $interrupted, 'without another error');
is($took + $interrupted, $clients * $calls, 'each was told one or the other');
is(held('few'), 0, 'and nobody holds a slot that he was not told of');

# Terminated after the slot was committed and before the answer.
foreach my $run ([ 'ended', 'pg_terminate_backend(pid, 30000)', 0 ], [ 'cancelled', 'pg_cancel_backend(pid)', 1 ])
{
	my ($name, $stop, $kept) = @$run;
	$waiter = start_psql("$folder/$name", "SET synchronous_commit = on;\nCALL taskq.wait('$name', timeout => '1 minute');\n");
	poll($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'CALL taskq.wait(''$name''%' AND wait_event = 'SyncRep'");
	$node->safe_psql('postgres', "SELECT $stop FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
	$waiter->finish;
	is(slurp_file("$folder/$name") =~ /^t\|/ ? 1 : 0, $kept, "$name while it commits: " . ($kept ? 'answered' : 'not answered'));
	is(held($name), $kept, "$name while it commits: " . ($kept ? 'and held' : 'and not held'));
}

$node->stop;
done_testing();
