# A snapshot that is held open keeps thousands of versions of a hot row. The newest one is still found, by sessions that know the
# row and by fresh ones, and counts stay exact; also after VACUUM, and when versions are cleaned away at last.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use RateLimitTest;
use Test::More;

my $node = new_server('snapshot');
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('hot', 5000, 0); SELECT taskq.register_sliding_window('log', 2000, '1 day', keyed => true)");

sub remaining { return $node->safe_psql('postgres', "SELECT taskq.remaining('hot')"); }
sub take
{
	my ($status) = hammer($node, "SELECT taskq.acquire('hot');\n", '-c', 4, '-j', 2, '-t', $_[0] / 4);
	return $status;
}

my $reader = $node->background_psql('postgres');
my $known  = $node->background_psql('postgres');
is($known->query("SELECT remaining FROM taskq.acquire('hot')"), 4999, 'a session that knows the row');
is($known->query("SELECT remaining FROM taskq.acquire('log', key => 'k')"), 1999, 'and the log');
is($reader->query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM taskq.rate_limit_buckets"), 2, 'a snapshot is held open');
is(take(3000),  0,    '3000 are taken by four sessions');
is(remaining(), 1999, 'a fresh session finds the newest version');
is($known->query("SELECT remaining FROM taskq.acquire('hot')"), 1998, 'so does one that last saw the first');
cmp_ok($node->safe_psql('postgres', "SELECT pg_relation_size('taskq.rate_limit_buckets') / 8192"), '>', 20, 'the versions are really there');
my ($status) = hammer($node, "SELECT taskq.acquire('log', key => 'k');\n", '-c', 4, '-j', 2, '-t', 250);
is($known->query("SELECT remaining FROM taskq.acquire('log', key => 'k')"), 998, '1000 are taken from a log');
is($reader->query('SELECT count(*), sum(used) FROM taskq.rate_limit_buckets WHERE version = 1'), $reader->query('SELECT count(*), sum(used) FROM taskq.rate_limit_buckets'),
	'the old snapshot sees one version of each row');

$node->safe_psql('postgres', 'VACUUM taskq.rate_limit_buckets, taskq.rate_limit_window_entries');
is(remaining(), 1998, 'VACUUM under the snapshot changes nothing');
is(take(400),   0,    '400 more');
is($reader->query("SELECT remaining FROM taskq.acquire('hot')"), 1597, 'the holder of the snapshot takes from the newest version, too');
$reader->query('COMMIT');
is(remaining(), 1597, 'when the snapshot is gone');
$node->safe_psql('postgres', 'VACUUM taskq.rate_limit_buckets, taskq.rate_limit_window_entries');
is(remaining(), 1597, 'VACUUM cleans up');
is($known->query("SELECT remaining FROM taskq.acquire('hot')"), 1596, 'a session that remembers a place where nothing is any more');
is($known->query("SELECT remaining FROM taskq.acquire('log', key => 'k')"), 997, 'the same for the log');
is(take(1596),  0, 'the rest is taken');
is(remaining(), 0, 'to the last one');
is($known->query("SELECT allowed FROM taskq.acquire('hot')"), 'f', 'and no more');
$node->safe_psql('postgres', 'CREATE EXTENSION amcheck');
is($node->safe_psql('postgres', "SELECT bt_index_check(c.oid, true) FROM pg_class c WHERE relkind = 'i' AND relnamespace = 'taskq'::regnamespace") =~ s/\n//gr, '',
	'indexes are sound');
is($node->safe_psql('postgres', "SELECT count(*) FROM verify_heapam('taskq.rate_limit_buckets')"), 0, 'and so is the table');

$_->quit foreach $reader, $known;
$node->stop;
done_testing();
