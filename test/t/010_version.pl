# Installing: one version everywhere, a clean failure where a name is taken, and a session that survives DROP and CREATE EXTENSION.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('version');
my $version = $node->safe_psql('postgres', "SELECT default_version FROM pg_available_extensions WHERE name = 'taskq_ratelimit'");
is($node->safe_psql('postgres', 'SELECT taskq.version()'), $version, 'library and control file agree');
my ($meta) = grep { -e } map { "$_/META.json" } $FindBin::RealBin, "$FindBin::RealBin/../..";
ok($meta, 'META.json is there') and like(slurp_file($meta), qr/"version": "\Q$version\E"/, 'and agrees');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_extension_update_paths('taskq_ratelimit') WHERE path IS NULL"), '0', 'every version can be updated');

$node->safe_psql('postgres', 'CREATE DATABASE taken');
$node->safe_psql('taken', 'CREATE SCHEMA taskq; CREATE TABLE taskq.rate_limits (mine text)');
my ($status, $out, $err) = $node->psql('taken', 'CREATE EXTENSION taskq_ratelimit');
like($err, qr/relation "rate_limits" already exists/, 'a table of the same name is not adopted');
is($node->safe_psql('taken', 'SELECT count(*) FROM pg_extension WHERE extname = $$taskq_ratelimit$$'), '0', 'and nothing is left behind');

# One session: what it has cached must not outlive what it was made from.
is( $node->safe_psql('postgres', "
	SET client_min_messages = warning;
	SELECT taskq.register_token_bucket('x', 5, 0);
	SELECT remaining FROM taskq.acquire('x');
	DROP EXTENSION taskq_ratelimit;
	CREATE EXTENSION taskq_ratelimit;
	SELECT count(*) FROM taskq.rate_limits;
	SELECT taskq.register_token_bucket('x', 7, 0);
	SELECT remaining FROM taskq.acquire('x');"),
	"t\n4\n0\nt\n6", 'DROP and CREATE EXTENSION in one session');
($status, $out, $err) = $node->psql('postgres', "SELECT taskq.allow('x');\nDROP EXTENSION taskq_ratelimit;\nSELECT taskq.allow('x');");
like($err, qr/function taskq.allow\(unknown\) does not exist|schema "taskq" does not exist/, 'after DROP EXTENSION nothing is left to call');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'taskq'"), '0', 'no function stays');

done_testing();
