# Dump and restore (B071): definitions travel, each once and without an error line; the state of buckets stays behind, so every
# bucket is full afterwards; numbers of limits go on after those that were restored.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('dump');
$node->safe_psql('postgres', "
	SELECT taskq.register_token_bucket('bucket', 3, 1.5);
	SELECT taskq.register_token_bucket('changed', 3, 1);
	SELECT taskq.register_token_bucket('changed', 30, 2, replace => true, inherit => 'proportional');
	SELECT taskq.register_sliding_window('log', 5, '1 hour', keyed => true, shadow => true);
	SELECT taskq.register_fixed_window('daily', 7, '1 day', anchor => '2026-01-01 00:00+00');
	SELECT taskq.pause('log', 'infinity');
	SELECT taskq.acquire('bucket', 2), taskq.acquire('daily'), taskq.acquire_token_bucket('ad hoc', 4, 1);");

my $file = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $file, $node->connstr('postgres') ], 'dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
my ($stdout, $stderr) = run_command([ 'pg_restore', '-d', $node->connstr('restored'), $file ]);
is($stderr, '', 'restore says nothing');

# pg_dump writes a random token into its scripts.
sub script_of
{
	my $script = $node->basedir . "/$_[0].sql";
	$node->command_ok([ 'pg_dump', '-f', $script, $node->connstr($_[0]) ], "dump of $_[0] as a script");
	return join '', grep { !/^\\(un)?restrict / } split /^/, slurp_file($script);
}
is(script_of('restored'), script_of('postgres'), 'a dump of the restored database is the same');

my $definitions = 'SELECT * FROM taskq.rate_limits ORDER BY limit_id';
is($node->safe_psql('restored', $definitions), $node->safe_psql('postgres', $definitions), 'the definitions are the same');
is($node->safe_psql('restored', 'SELECT count(*) FROM taskq.rate_limit_buckets'), '0', 'no state was dumped');
is($node->safe_psql('restored', "SELECT remaining FROM taskq.acquire('bucket')"), '2', 'a restored limit starts full');
is($node->safe_psql('restored', "SELECT remaining FROM taskq.acquire('changed')"), '29', 'under its newest definition');
is($node->safe_psql('restored', "SELECT allowed, reason FROM taskq.acquire('log', key => 'a')"), 't|shadow', 'shadow and pause travel');
is( $node->safe_psql('restored', "SELECT extract(epoch FROM reset_after) = 86400 - extract(epoch FROM decided_at)::numeric % 86400 FROM taskq.acquire('daily')"),
	't', 'and so does an anchor');
is($node->safe_psql('restored', "SELECT taskq.register_token_bucket('bucket', 3, 1.5)"), 'f', 'the same definition is still a no-op');
is($node->safe_psql('restored', "SELECT taskq.register_token_bucket('new', 1, 1)"), 't', 'a new limit gets a number of its own');
is( $node->safe_psql('restored', 'SELECT count(DISTINCT limit_id) = count(*) AND max(limit_id) = (SELECT limit_id FROM taskq.rate_limits WHERE name = $$new$$) FROM taskq.rate_limits'),
	't', 'after all others');

is($node->safe_psql('restored', "SELECT allowed, remaining, quota FROM taskq.acquire_token_bucket('ad hoc', 4, 1)"), 't|3|4', 'an ad-hoc limit goes on, too');
is($node->safe_psql('restored', 'SELECT count(*) FROM taskq.sweep()'), 1, 'upkeep works');
is($node->safe_psql('postgres', 'SELECT count(*) FROM taskq.rate_limit_buckets'), 4, 'the first database has kept its state');

sub schema_of { return $node->safe_psql($_[0], "SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
	WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'taskq_ratelimit') ORDER BY 1") }
is(schema_of('restored'), schema_of('postgres'), 'the extension has the same members');

done_testing();
