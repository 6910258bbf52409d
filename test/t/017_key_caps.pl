# Caps on keys under load.
#
# B085: many sessions make keys at once while the cap is near. Each other session may exceed it by one key (by a 64th of a large cap), no more;
# no error comes up, nothing hangs. B091: 20 000 keys in one transaction, one call each, with the smallest lock table.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('key_caps', conf => "max_locks_per_transaction = 64\n");
my $clients = 16;
my @isolation = ('read committed', 'repeatable read', 'serializable');

sub keys_of
{
	my $name = shift;
	return $node->safe_psql('postgres', "SELECT count(*) FROM taskq.rate_limit_buckets JOIN taskq.rate_limits USING (limit_id) WHERE name = '$name'");
}

sub slot_keys_of
{
	my $name = shift;
	return $node->safe_psql('postgres', "SELECT count(DISTINCT key) FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = '$name'");
}

# Every call brings a new key. Spent for ever, or full again after a microsecond.
my $cap = 60;
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('spent', 1, 0, keyed => true, max_keys => $cap),
	taskq.register_token_bucket('idle', 1, 1000000, keyed => true, max_keys => $cap),
	taskq.register_reservation('held', 1, '1 hour', keyed => true, max_keys => $cap),
	taskq.register_reservation('brief', 1, '1 us', keyed => true, max_keys => $cap)");
foreach my $level (@isolation)
{
	$node->safe_psql('postgres', "ALTER DATABASE postgres SET default_transaction_isolation = '$level'");
	my ($status, $out, $err) = hammer($node, "\\set k random(1, 1000000000)
		SELECT allowed FROM taskq.acquire('spent', 1, 'key ' || :k);
		SELECT allowed FROM taskq.acquire('idle', 1, 'key ' || :k);
		SELECT allowed FROM taskq.acquire_slot('held', NULL, NULL, 'key ' || :k);
		SELECT allowed FROM taskq.acquire_slot('brief', NULL, NULL, 'key ' || :k);\n", '-c', $clients, '-j', 2, '-t', 100);
	is($status, 0, "$level: $clients clients make keys at once, no error") or diag($err);
	unlike($err, qr/ERROR|aborted/, "$level: none at all");
	cmp_ok(keys_of('spent'), '>=', $cap, "$level: the limit is full");
	cmp_ok(keys_of('spent'), '<', $cap + $clients, "$level: and not by a key for each other session above the cap");
	cmp_ok(slot_keys_of('held'), '>=', $cap, "$level: the reservation is full");
	cmp_ok(slot_keys_of('held'), '<', $cap + $clients, "$level: and not above the cap either");
	# Where keys come and go at the same time a count may miss some that moved; what was made too much goes again.
	cmp_ok(keys_of('idle'), '<', $cap + 2 * $clients, "$level: idle keys make room");
	cmp_ok(slot_keys_of('brief'), '<', $cap + 2 * $clients, "$level: so do keys whose leases have ended");
	$node->safe_psql('postgres', "SELECT taskq.acquire('idle', 1, 'later ' || i), taskq.acquire_slot('brief', NULL, NULL, 'later ' || i) FROM generate_series(1, 2 * $clients) AS i");
	is(keys_of('idle') . ' ' . slot_keys_of('brief'), "$cap $cap", "$level: new keys one after the other bring it back to the cap");
}
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET default_transaction_isolation');

# A large cap, where keys are not counted each time: one session alone never exceeds it.
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('large', 1, 0, keyed => true, max_keys => 5000)");
is($node->safe_psql('postgres', "SELECT count(*) FILTER (WHERE allowed), count(*) FILTER (WHERE reason = 'too_many_keys') FROM generate_series(1, 6000) AS i, taskq.acquire('large', 1, 'key ' || i)"),
	'5000|1000', 'one session makes as many keys as the cap says');
is(keys_of('large'), 5000, 'and they are there');

# Where nothing is idle, that is remembered for a second: a flood of new keys does not search each time.
my $blocks = "SELECT sum(idx_blks_hit + heap_blks_hit) FROM pg_statio_all_tables WHERE relid = 'taskq.rate_limit_buckets'::regclass";
my $session = $node->background_psql('postgres');
$session->query("SELECT taskq.allow('large', 1, 'x')");
$session->query('SELECT pg_stat_force_next_flush()');
my $before = $node->safe_psql('postgres', $blocks);
$session->query("SELECT count(*) FROM generate_series(1, 2000) AS i WHERE taskq.allow('large', 1, 'stranger ' || i)");
$session->query('SELECT pg_stat_force_next_flush()');
my $read = $node->safe_psql('postgres', $blocks) - $before;
# Two searches of 5 000 keys, a count and a few pages for each call; searching each time would read ten million.
cmp_ok($read, '<', 100_000, "2000 denials of new keys read $read pages");
$session->quit;

# B091
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('many', 1, 0, keyed => true)");
my $many = $node->background_psql('postgres');
$many->query('BEGIN');
is($many->query("SELECT count(*) FROM generate_series(1, 10000) AS i WHERE taskq.allow('many', 1, 'key ' || i)"), 10000, 'B091: 10 000 keys in a transaction');
is($node->safe_psql('postgres', "SELECT count(*) FROM generate_series(1, 1000) AS i WHERE taskq.allow('many', 1, 'other ' || i)"), 1000, 'B091: another session goes on');
is($many->query("SELECT count(*) FROM generate_series(10001, 20000) AS i WHERE taskq.allow('many', 1, 'key ' || i)"), 10000, 'B091: 20 000 keys');
cmp_ok($many->query('SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()'), '<', 60, 'B091: few locks are held');
is($node->safe_psql('postgres', "SELECT count(*) FROM generate_series(1001, 2000) AS i WHERE taskq.allow('many', 1, 'other ' || i)"), 1000, 'B091: another session still goes on');
$many->query('COMMIT');
is(keys_of('many'), 22000, 'B091: all are there');
$many->quit;

$node->stop;
done_testing();
