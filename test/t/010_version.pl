# One version everywhere; an installation that meets foreign objects fails cleanly; dropping removes all, and sessions survive it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('version');
my $installed = $node->safe_psql('postgres', "SELECT extversion FROM pg_extension WHERE extname = 'taskq_ratelimit'");
like($installed, qr/^\d+\.\d+\.\d+$/, "version $installed is installed");
is($node->safe_psql('postgres', 'SELECT taskq.version()'), $installed, 'the library says so');
is($node->safe_psql('postgres', "SELECT default_version FROM pg_available_extensions WHERE name = 'taskq_ratelimit'"), $installed, 'so does the control file');
like(slurp_file("$FindBin::RealBin/version.hpp"), qr/"\Q$installed\E"/, 'and the core');
my $meta = slurp_file("$FindBin::RealBin/META.json") =~ s/"meta-spec".*?\}//sr;
is_deeply([ grep { $_ ne $installed } $meta =~ /"version"\s*:\s*"([^"]*)"/g ], [], 'and META.json');
like($meta, qr/"version"/, 'which names versions');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_extension_update_paths('taskq_ratelimit') WHERE path IS NULL"), 0, 'every version can be updated');

# Foreign objects in the way.
my $objects = "SELECT (SELECT count(*) FROM pg_class c WHERE c.relnamespace = 'taskq'::regnamespace) + (SELECT count(*) FROM pg_proc p WHERE p.pronamespace = 'taskq'::regnamespace)
	+ (SELECT count(*) FROM pg_type t WHERE t.typnamespace = 'taskq'::regnamespace)";
foreach my $object (
	'TABLE taskq.rate_limits (x int)',
	'VIEW taskq.rate_limit_status AS SELECT 1 AS x',
	"FUNCTION taskq.version() RETURNS text LANGUAGE sql AS 'SELECT NULL'",
	'TYPE taskq.rate_limit_decision AS (x int)')
{
	my ($database, $what) = ('foreign_' . lc(substr $object, 0, 4), $object =~ s/ [(A].*| RET.*//r);
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, "CREATE SCHEMA taskq; CREATE $object");
	my $before = $node->safe_psql($database, $objects);
	my ($status, $out, $err) = $node->psql($database, 'CREATE EXTENSION taskq_ratelimit');
	like($err, qr/already exists/, "$what is in the way: the installation fails");
	is($node->safe_psql($database, $objects), $before, "$what: nothing is left of it");
	is($node->safe_psql($database, "SELECT count(*) FROM pg_extension WHERE extname = 'taskq_ratelimit'"), 0, "$what: not installed");
}

# Dropped and created again, in one session and under the eyes of another.
my $one     = $node->background_psql('postgres', on_error_stop => 0);
my $another = $node->background_psql('postgres', on_error_stop => 0);
my $define  = "SELECT taskq.register_token_bucket('b', 3, 0), taskq.register_sliding_window('w', 3, '1 day')";
my $take    = "SELECT a.remaining, w.remaining FROM taskq.acquire('b') a, taskq.acquire('w') w";
$one->query($define);
is($one->query($take),     '2|2', 'a session takes');
is($another->query($take), '1|1', 'and another');
is($one->query("BEGIN; DROP EXTENSION taskq_ratelimit; ROLLBACK; $take"), '0|0', 'a drop that is rolled back changes nothing');
$one->query('DROP EXTENSION taskq_ratelimit');
is($one->query($objects), 0, 'dropping removes all');
$another->{stderr} = '';
is($another->query($take), '', 'another session has nothing to call');
like($another->{stderr}, qr/function taskq\.acquire\(unknown\) does not exist/, 'and is told so');
$one->query('CREATE EXTENSION taskq_ratelimit');
$another->{stderr} = '';
is($another->query($take), '', 'after creating it again the limit is unknown');
like($another->{stderr}, qr/rate limit "b" does not exist/, 'also to a session that knew it');
$one->query($define);
is($one->query($take),     '2|2', 'after registering again limits are fresh');
is($another->query($take), '1|1', 'in all sessions');
is($one->query("BEGIN; DROP EXTENSION taskq_ratelimit; CREATE EXTENSION taskq_ratelimit; $define; $take; COMMIT"), "t|t\n2|2", 'all in one transaction');
is($another->query($take), '1|1', 'which the other session follows');
$one->query('ALTER TABLE taskq.rate_limit_buckets SET (fillfactor = 60); VACUUM FULL taskq.rate_limit_buckets; REINDEX TABLE taskq.rate_limit_buckets; CLUSTER taskq.rate_limit_window_entries USING rate_limit_window_entries_pkey');
is($another->query($take), '0|0', 'sessions follow tables that were rewritten');
is($another->query("SELECT a.allowed, w.allowed FROM taskq.acquire('b') a, taskq.acquire('w') w"), 'f|f', 'and nothing was lost');
$one->query('TRUNCATE taskq.rate_limit_buckets, taskq.rate_limit_window_entries');
is($another->query($take), '2|2', 'or emptied');
$_->quit foreach $one, $another;

$node->stop;
done_testing();
