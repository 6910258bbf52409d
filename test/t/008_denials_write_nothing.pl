# What is written: nothing by denials, nearly only HOT updates by allowed calls, and no lock table entries by many keys (B091).
#
# With data checksums and wal_log_hints even a hint bit on a page would show in the WAL. The server is quiet: no autovacuum, no
# background writer, no snapshots for standbys. So the WAL position may not move by one byte.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server(
	'quiet',
	init => ['--data-checksums'],
	conf => "wal_level = minimal\nmax_wal_senders = 0\nwal_log_hints = on\nbgwriter_lru_maxpages = 0\ncheckpoint_timeout = 1d\nmax_locks_per_transaction = 64\n");
my %definition = (
	'token bucket' => "register_token_bucket('%s', 100, 0.001)",
	'leaky bucket' => "register_leaky_bucket('%s', 100, 0)",
	'log'          => "register_sliding_window('%s', 100, '1 day')",
	'gcra'         => "register_sliding_window('%s', 100, '1 day', style => 'gcra')",
	'counter'      => "register_sliding_window('%s', 100, '1 day', style => 'counter')",
	'fixed window' => "register_fixed_window('%s', 100, '1 day')");

sub updates
{
	return $node->safe_psql('postgres',
		"SELECT pg_stat_force_next_flush(); SELECT sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del) FROM pg_stat_user_tables WHERE schemaname = 'taskq'");
}
sub wal { return $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()'); }

# Many calls in one session, single calls, and four sessions at once. Returns how many were allowed.
sub ask
{
	my ($name, $calls) = @_;
	my $allowed = $node->safe_psql('postgres', "SELECT count(*) FILTER (WHERE taskq.allow('$name', 1 + 0 * g)) FROM generate_series(1, $calls) g");
	$allowed += $node->safe_psql('postgres', "SELECT count(*) FROM taskq.$_ WHERE allowed") foreach "acquire('$name')", "preview('$name')", "acquire('$name', 100)",
	  "acquire_all(ARRAY[taskq.request('open'), taskq.request('slots'), taskq.request('$name')])";
	my ($status) = hammer($node, "SELECT taskq.acquire('$name');\nSELECT taskq.peek('$name');\n", '-c', 4, '-j', 2, '-t', 100);
	is($status, 0, "$name: four sessions at once");
	return $allowed;
}

# Every catalog page that these statements read gets its hints now, not between two looks at the WAL.
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('warm', 100, 0); SELECT taskq.acquire('warm', 100);
	SELECT taskq.register_token_bucket('open', 100, 0), taskq.register_reservation('slots', 3, '1 hour'); SELECT taskq.acquire('open'); SELECT taskq.acquire_slot('slots', NULL, NULL)");
ask('warm', 10);
updates();
wal();

foreach my $name (sort keys %definition)
{
	$node->safe_psql('postgres', 'SELECT taskq.' . sprintf($definition{$name}, $name));
	is($node->safe_psql('postgres', "SELECT count(*) FILTER (WHERE taskq.allow('$name', 1 + 0 * g)) FROM generate_series(1, 101) g"), 100, "$name: the limit is used up");
	$node->safe_psql('postgres', 'CHECKPOINT');
	my ($before, $rows) = (wal(), updates());
	is(ask($name, 3000), 0,       "$name: some 3400 calls are denied");
	is(wal(),            $before, "$name: the WAL has not moved by one byte");
	is(updates(),        $rows,   "$name: no row was inserted, updated or deleted");
}

# HOT updates on one key, which four sessions use.
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('hot', 1000000, 0); SELECT pg_stat_reset()");
my ($status) = hammer($node, "SELECT taskq.acquire('hot');\n", '-c', 4, '-j', 2, '-t', 1500);
is($status, 0, '6000 calls on one key');
$node->safe_psql('postgres', 'SELECT pg_stat_force_next_flush()');
poll($node, "SELECT n_tup_upd >= 6000 FROM pg_stat_user_tables WHERE relname = 'rate_limit_buckets'");
my ($updated, $hot) = split /\|/, $node->safe_psql('postgres', "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'rate_limit_buckets'");
cmp_ok($hot / $updated, '>=', 0.95, "at least 95 % of updates are HOT ($hot of $updated)");
cmp_ok($node->safe_psql('postgres', "SELECT pg_total_relation_size('taskq.rate_limit_buckets')"), '<=', 256 * 1024, 'the table stays small without any vacuum');

# B091: many keys in one transaction, while other sessions go on.
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('keys', 5, 0, keyed => true)");
my $output = '';
my $others = start_hammer($node, \$output, "SELECT taskq.acquire('keys', key => 'other ' || :client_id || ' ' || (random() * 1000)::int);\n", '-M', 'simple', '-c', 4, '-j', 1, '-T', 4);
is($node->safe_psql('postgres', "BEGIN; SELECT count(*) FILTER (WHERE taskq.allow('keys', key => 'k' || g)) FROM generate_series(1, 20000) g;
	SELECT count(*) < 200 FROM pg_locks WHERE pid = pg_backend_pid(); COMMIT"), "20000\nt", 'B091: 20000 keys in one transaction');
is($node->safe_psql('postgres', "SELECT count(*) FILTER (WHERE allowed), count(*) FROM taskq.acquire_many(ARRAY['keys'], keys => (SELECT array_agg('k' || g) FROM generate_series(1, 5000) g))"),
	'5000|5000', 'B091: 5000 keys in one call');
ok($others->finish, 'B091: the other sessions went on');
unlike($output, qr/ERROR|out of shared memory/, 'B091: without any error');
is($node->safe_psql('postgres', "SELECT taskq.remaining('keys', 'k5000'), taskq.remaining('keys', 'k5001')"), '3|4', 'B091: each key was charged what it was asked for');

$node->stop;
done_testing();
