# Slots under load. Independent checks: leases are replayed from a log of the server's times.
#
# B057: with as many slots as clients, nobody is ever denied. Many clients on few slots: never more leases at a time than slots, also while
# the number changes all the time. B055: who dies keeps a slot until its lease ends, and no longer; who dies in the middle has nothing.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('slots');
$node->safe_psql('postgres', "
	CREATE TABLE leases (run text, slot int, fence bigint, acquired_at timestamptz, released_at timestamptz);
	CREATE TABLE denials (run text);
	CREATE TABLE sizes (slots int, since timestamptz);
	-- One job: takes a slot, and notes it; in a statement of its own, releases it. Times are taken inside what they bound.
	CREATE FUNCTION take(reservation text, OUT slot int, OUT lease bigint) LANGUAGE plpgsql AS \$\$
	DECLARE d taskq.slot_decision;
	BEGIN
		d := taskq.acquire_slot(reservation, NULL, NULL);
		IF d.allowed THEN INSERT INTO leases VALUES (reservation, d.slot_index, d.fence, clock_timestamp());
		ELSE INSERT INTO denials VALUES (reservation); END IF;
		slot := coalesce(d.slot_index, -1);
		lease := coalesce(d.fence, -1);
	END \$\$;
	CREATE FUNCTION leave(reservation text, slot int, lease bigint) RETURNS boolean LANGUAGE plpgsql AS \$\$
	DECLARE t timestamptz := clock_timestamp();
	BEGIN
		IF lease < 0 OR NOT taskq.release_slot(reservation, slot, fence => lease) THEN RETURN false; END IF;
		UPDATE leases SET released_at = t WHERE fence = lease;
		RETURN true;
	END \$\$;
	CREATE INDEX ON leases (fence);
	SELECT taskq.register_reservation('eight', 8, '30 s'), taskq.register_reservation('five', 5, '30 s'),
	       taskq.register_reservation('changing', 5, '30 s'), taskq.register_reservation('key', 3, '30 s', keyed => true);");

# The most leases that lived at one instant.
sub most_at_once
{
	my $where = shift;
	return $node->safe_psql('postgres', "SELECT max(n) FROM (SELECT sum(step) OVER (ORDER BY at, step) AS n FROM (
		SELECT acquired_at AS at, 1 AS step FROM leases WHERE $where UNION ALL SELECT released_at, -1 FROM leases WHERE $where AND released_at IS NOT NULL) AS e) AS s");
}

my $job = sub { "SELECT * FROM take('$_[0]') \\gset\nSELECT leave('$_[0]', :slot, :lease);\n" };

# B057: acquire and release, each on its own.
my ($status, $out, $err) = hammer($node, "SELECT slot_index, fence FROM taskq.acquire_slot('eight', NULL, 'aaaaaaaa-0000-4000-8000-000000000000') \\gset
	SELECT 1 / taskq.release_slot('eight', :slot_index, fence => :fence)::int;\n", '-c', 8, '-j', 2, '-t', 2000);
is($status, 0, 'B057: 8 clients on 8 slots: 16 000 times taken and released, nobody was denied') or diag($err);
unlike($err, qr/ERROR|aborted/, 'B057: without an error');
is($node->safe_psql('postgres', "SELECT held, free FROM taskq.peek_reservation('eight')"), '0|8', 'B057: all are free afterwards');
is($node->safe_psql('postgres', "SELECT count(*) FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = 'eight'"), 8, 'B057: there are 8 rows');
# Versions of 32 000 updates would fill some 500 pages; they are cleaned away as they come, without vacuum.
cmp_ok($node->safe_psql('postgres', "SELECT pg_relation_size('taskq.reservation_slots') / 8192"), '<=', 160, 'B057: the table stays small');
cmp_ok($node->safe_psql('postgres', "SELECT 100.0 * pg_stat_get_tuples_hot_updated(c) / pg_stat_get_tuples_updated(c) FROM (SELECT 'taskq.reservation_slots'::regclass::oid AS c) AS t"),
	'>=', 95, 'at least 95 % of the updates are HOT');

# Many on few, and a key that nobody has used before.
foreach my $run ([ 'five', 5 ])
{
	my ($name, $slots) = @$run;
	($status, $out, $err) = hammer($node, $job->($name), '-c', 16, '-j', 2, '-T', 6);
	is($status, 0, "$name: no error") or diag($err);
	my $taken = $node->safe_psql('postgres', "SELECT count(*) FROM leases WHERE run = '$name'");
	cmp_ok($taken, '>', 500, "$name: $taken leases");
	is(most_at_once("run = '$name'"), $slots, "$name: 16 clients, never more than $slots leases at a time, and once all of them");
	is($node->safe_psql('postgres', "SELECT count(*) FROM (SELECT acquired_at < lag(released_at) OVER (PARTITION BY slot ORDER BY fence) AS bad FROM leases WHERE run = '$name') AS s WHERE bad"),
		0, "$name: no two leases of a slot overlap, and fences grow");
	cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM denials WHERE run = '$name'"), '>', 0, "$name: the others were denied");
}
($status, $out, $err) = hammer($node, "SELECT count(*) FROM taskq.acquire_slot('key', NULL, NULL, 'new') WHERE allowed;\n", '-c', 16, '-j', 2, '-t', 1);
is($node->safe_psql('postgres', "SELECT held FROM taskq.peek_reservation('key', 'new')"), 3, 'first use of a key by 16 at once: 3 get a slot');
is($status, 0, 'and the others an answer') or diag($err);

# Grow and shrink under load. The log of sizes brackets each change: an instant counts as `slots` once the change has been committed.
my $output = '';
my $clients = start_hammer($node, \$output, $job->('changing'), '-c', 12, '-j', 2, '-T', 10);
foreach my $round (1 .. 40)
{
	my $slots = 1 + $round * 3 % 7;
	$node->safe_psql('postgres', "SELECT taskq.register_reservation('changing', $slots, '30 s', replace => true)");
	$node->safe_psql('postgres', "INSERT INTO sizes VALUES ($slots, clock_timestamp())");
}
$clients->finish;
unlike($output, qr/ERROR|aborted/, 'changing: no error while the number changes 40 times') or diag($output);
is($node->safe_psql('postgres', "
	WITH periods AS (SELECT slots, since, lead(since, 1, 'infinity') OVER (ORDER BY since) AS upto, lead(slots, 1, 0) OVER (ORDER BY since) AS next FROM sizes),
	     events AS (SELECT acquired_at AS at, 1 AS step FROM leases WHERE run = 'changing' UNION ALL SELECT released_at, -1 FROM leases WHERE run = 'changing' AND released_at IS NOT NULL),
	     levels AS (SELECT at, step, sum(step) OVER (ORDER BY at, step) AS n FROM events)
	SELECT count(*) FROM levels JOIN periods ON at > since AND at < upto WHERE step = 1 AND n > greatest(slots, next)"),
	0, 'changing: nobody got a slot above the number in force');
cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM leases WHERE run = 'changing'"), '>', 200, 'changing: traffic flowed');
$node->safe_psql('postgres', "SELECT * FROM taskq.sync_slots()");
is($node->safe_psql('postgres', "SELECT count(*) = max(r.slots), bool_or(surplus) FROM taskq.reservation_slots JOIN taskq.reservations AS r USING (reservation_id) WHERE name = 'changing'"),
	't|f', 'changing: there are as many rows as slots');

# B055: the client is killed, then the backend in the middle of acquiring.
$node->safe_psql('postgres', "SELECT taskq.register_reservation('dies', 1, '2 s')");
my $holder = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $holder->query('SELECT pg_backend_pid()');
is($holder->query("SELECT allowed FROM taskq.acquire_slot('dies', NULL, NULL)"), 't', 'B055: a client takes the only slot');
$holder->{run}->kill_kill;
is($node->safe_psql('postgres', "SELECT allowed, retry_after BETWEEN interval '1 us' AND '2 s' FROM taskq.acquire_slot('dies', NULL, NULL)"), 'f|t', 'B055: it is killed: denied, for at most the lease');
$node->safe_psql('postgres', 'SELECT pg_sleep(2)');
is($node->safe_psql('postgres', "SELECT allowed FROM taskq.acquire_slot('dies', NULL, NULL)"), 't', 'B055: free after the lease, with no clean-up');
$node->safe_psql('postgres', "SELECT taskq.register_reservation('crash', 1, '1 hour')");
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
$node->restart;
$holder = $node->background_psql('postgres', on_error_stop => 0);
$pid = $holder->query('SELECT pg_backend_pid()');
is($holder->query("BEGIN; SELECT allowed FROM taskq.acquire_slot('crash', NULL, NULL)"), 't', 'B055: a backend takes a slot in a transaction');
kill 'KILL', $pid;
poll($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)");
is($node->safe_psql('postgres', "SELECT held, free FROM taskq.peek_reservation('crash')"), '0|1', 'B055: it is killed: nothing was taken');
is($node->safe_psql('postgres', "SELECT allowed FROM taskq.acquire_slot('crash', NULL, NULL)"), 't', 'B055: and the slot can be taken at once');
eval { $holder->quit };

# Rows of free slots are deleted all the time beside it: with as many slots as clients nobody is denied, and no slot is held twice.
$node->safe_psql('postgres', "SELECT taskq.register_reservation('swept', 4, '30 s', keyed => true)");
my $sweeps = '';
my $sweeper = start_hammer($node, \$sweeps, "SELECT taskq.evict_idle('0');\n", '-c', 2, '-T', 6);
($status, $out, $err) = hammer($node, "SELECT slot_index, fence FROM taskq.acquire_slot('swept', NULL, NULL, 'k') \\gset
	SELECT 1 / taskq.release_slot('swept', :slot_index, key => 'k', fence => :fence)::int;\n", '-c', 4, '-j', 2, '-T', 5);
$sweeper->finish;
is($status, 0, 'swept: 4 clients on 4 slots whose rows are being deleted, nobody was denied') or diag($err);
unlike("$err$sweeps", qr/ERROR|aborted/, 'swept: without an error');

# A dump carries definitions and the count of fences, not who holds what.
$node->safe_psql('postgres', 'CREATE DATABASE restored');
my $file = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $file, $node->connstr('postgres') ], 'dump');
$node->command_ok([ 'pg_restore', '-d', $node->connstr('restored'), $file ], 'restore');
is($node->safe_psql('restored', 'SELECT count(*) FROM taskq.reservation_slots'), 0, 'no slots were dumped');
my $before = $node->safe_psql('postgres', 'SELECT max(fence) FROM taskq.reservation_slots');
is($node->safe_psql('restored', "SELECT allowed, fence > $before FROM taskq.acquire_slot('dies', NULL, NULL)"), 't|t', 'a restored reservation starts free, and its fences go on');

$node->stop;
done_testing();
