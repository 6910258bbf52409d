# The background worker of a preloaded library: it sweeps every database that it should, shows what it does, and survives errors,
# signals and databases that come and go.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use RateLimitTest;
use Test::More;

my $node = new_server('sweeper', conf => "shared_preload_libraries = 'taskq_ratelimit'\ntaskq_ratelimit.sweep_interval = '50 ms'\n");
my $launcher = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'taskq_ratelimit launcher'";

# One bucket that is full and was not used for two hours, under a key of its own.
sub add_idle
{
	my ($database, $key) = @_;
	$node->safe_psql($database, "
		SELECT taskq.register_token_bucket('idle', 5, 1, keyed => true);
		SELECT taskq.allow('idle', 1, '$key')");
	$node->safe_psql($database, "UPDATE taskq.rate_limit_buckets SET at = at - interval '2 hours' WHERE key = '$key'");
}

sub vanishes
{
	my ($database, $key, $what) = @_;
	ok($node->poll_query_until($database, "SELECT NOT EXISTS (SELECT FROM taskq.rate_limit_buckets WHERE key = '$key')"), $what);
}

# A whole round that began after now: all workers that are started later than this are through with their databases.
sub wait_for_round
{
	add_idle('postgres', 'mark');
	vanishes('postgres', 'mark', 'a round passes');
}

sub set
{
	my ($name, $value) = @_;
	$node->safe_psql('postgres', "ALTER SYSTEM SET taskq_ratelimit.$name = $value");
	$node->reload;
}

# Two databases, one without the extension.
$node->safe_psql('postgres', 'CREATE DATABASE second; CREATE DATABASE third; CREATE DATABASE without');
$node->safe_psql($_, 'CREATE EXTENSION taskq_ratelimit') foreach qw(second third);
add_idle($_, 'a') foreach qw(postgres second third);
vanishes($_, 'a', "$_ is swept") foreach qw(postgres second third);
is($node->safe_psql('postgres', "SELECT count(*), min(application_name), min(datname) FROM pg_stat_activity WHERE backend_type = 'taskq_ratelimit launcher'"),
	'1|taskq_ratelimit launcher|', 'the launcher is seen, and has no database');
ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'taskq_ratelimit launcher'
	AND query LIKE 'sweeping database %' AND state = 'active'"), 'with the database that is swept');
ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'taskq_ratelimit launcher'
	AND query = 'waiting for the next sweep' AND state = 'idle' AND backend_xmin IS NULL AND xact_start IS NULL"), 'or that it waits, without a snapshot');

# What is not idle stays.
$node->safe_psql('second', "SELECT taskq.allow('idle', 1, 'fresh')");
wait_for_round();
wait_for_round();
is($node->safe_psql('second', "SELECT count(*) FROM taskq.rate_limit_buckets WHERE key = 'fresh'"), 1, 'a bucket in use stays');

# It is terminated, and a server process crashes.
my $pid = $node->safe_psql('postgres', $launcher);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 AND min(pid) <> $pid FROM ($launcher) AS l"), 'terminated, the launcher comes back');
add_idle('second', 'b');
vanishes('second', 'b', 'and sweeps');
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
$node->reload;
$pid = $node->safe_psql('postgres', $launcher);
kill 'KILL', $pid;
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 AND min(pid) <> $pid FROM ($launcher) AS l"), 'killed, too');
add_idle('second', 'c');
vanishes('second', 'c', 'and sweeps');

# An error in one database: the others are swept, and the log says where and what.
my $offset = -s $node->logfile;
$node->safe_psql('second', 'ALTER TABLE taskq.rate_limit_refunds RENAME TO elsewhere');
add_idle('third', 'd');
vanishes('third', 'd', 'an error in the second database does not keep the third from being swept');
ok($node->wait_for_log(qr/relation "taskq.rate_limit_refunds" does not exist.*background sweep of database "second"/s, $offset), 'the log tells');
$node->safe_psql('second', 'ALTER TABLE taskq.elsewhere RENAME TO rate_limit_refunds');
add_idle('second', 'e');
vanishes('second', 'e', 'put right, it is swept again');

# A database's own settings are not the worker's.
$node->safe_psql('postgres', "ALTER DATABASE second SET default_transaction_read_only = on;
	ALTER DATABASE second SET default_transaction_isolation = 'serializable'; ALTER DATABASE second SET statement_timeout = '1 ms'");
{
	local $ENV{PGOPTIONS} = '-c default_transaction_read_only=off -c statement_timeout=0';
	add_idle('second', 'f');
	vanishes('second', 'f', 'a database that is read only by default');
}
$node->safe_psql('postgres', 'ALTER DATABASE second RESET ALL');

# Switched off and on, other databases, by reload.
set('sweep', 'off');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query = 'switched off by taskq_ratelimit.sweep'"), 'switched off, the launcher says so');
add_idle('second', 'g');
set('sweep_databases', "'postgres, \"third\"'");
set('sweep', 'on');
wait_for_round();
wait_for_round();
is($node->safe_psql('second', "SELECT count(*) FROM taskq.rate_limit_buckets WHERE key = 'g'"), 1, 'a database that is not listed is not swept');
add_idle('third', 'g');
vanishes('third', 'g', 'one that is listed is');
set('sweep_databases', "'*'");
vanishes('second', 'g', 'with * all are');
my ($status, $out, $err) = $node->psql('postgres', "ALTER SYSTEM SET taskq_ratelimit.sweep_databases = 'a,,b'");
like($err, qr/invalid value for parameter "taskq_ratelimit.sweep_databases": "a,,b"\nDETAIL:.*"a,,b"\.\nHINT:.*double quotes/, 'a list that is none is refused');

# More than one call of sweep deletes, in one round: the next comes in an hour.
set('sweep', 'off');
$node->safe_psql('third', "SELECT count(*) FROM generate_series(1, 21000) AS i WHERE taskq.allow('idle', 1, 'many' || i);
	UPDATE taskq.rate_limit_buckets SET at = at - interval '2 hours'");
set('sweep_interval', "'1 h'");
set('sweep', 'on');
ok($node->poll_query_until('third', 'SELECT count(*) = 0 FROM taskq.rate_limit_buckets'), 'a round deletes until there is no more to delete');

# Databases come and go while it sweeps without a pause, and so does the extension.
set('sweep_interval', "'10 ms'");
foreach my $round (1 .. 5)
{
	$node->safe_psql('postgres', 'CREATE DATABASE passing TEMPLATE second');
	$node->safe_psql('passing', 'DROP EXTENSION taskq_ratelimit; CREATE EXTENSION taskq_ratelimit');
	$node->safe_psql('postgres', 'DROP DATABASE passing');
}
pass('databases are copied and dropped beside it');
is($node->safe_psql('postgres', "SELECT count(*) FROM ($launcher) AS l"), 1, 'the launcher is still there');

$node->stop;
done_testing();
