# On a hot standby everything that looks works, and everything that takes fails with 25006 and a hint that names the primary
# (B063). After promotion the state that was replicated goes on.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $primary = new_server('primary', standby => 1);
$primary->safe_psql('postgres', "
	SELECT taskq.register_token_bucket('quota', 10, 0);
	SELECT taskq.register_sliding_window('log', 3, '1 day');
	SELECT taskq.register_token_bucket('keyed', 5, 0, keyed => true);
	SELECT taskq.register_reservation('slots', 2, '1 day'), taskq.acquire_slot('slots', NULL, NULL);
	SELECT taskq.acquire('quota', 4), taskq.acquire('log'), taskq.acquire('keyed', 2, 'a');");
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
$primary->safe_psql('postgres', "SELECT taskq.acquire('quota')");
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('write'));

my %looks = (
	"SELECT held, free FROM taskq.peek_reservation('slots')"             => '1|1',
	"SELECT held, free FROM taskq.reservation_status"                    => '1|1',
	"SELECT remaining, is_exhausted FROM taskq.peek('quota')"            => '5|f',
	"SELECT taskq.remaining('log')"                                      => '2',
	"SELECT taskq.reset_after('quota') IS NULL"                          => 't',
	"SELECT allowed, remaining FROM taskq.preview('quota', 5)"           => 't|0',
	"SELECT allowed FROM taskq.preview('quota', 6)"                      => 'f',
	"SELECT remaining FROM taskq.peek('keyed', 'never used')"            => '5',
	"SELECT string_agg(bucket_name || ' ' || key || ' ' || remaining, ', ' ORDER BY bucket_name) FROM taskq.rate_limit_status"
	  => 'keyed a 3, log  2, quota  5',
	"SELECT taskq.http_headers(d) ->> 'RateLimit-Remaining' FROM taskq.preview('quota') AS d" => '4');
is($standby->safe_psql('postgres', $_), $looks{$_}, "on the standby: $_") foreach sort keys %looks;

my @takes = (
	"SELECT taskq.acquire_slot('slots', NULL, NULL)", "SELECT taskq.release_slot('slots', 0, fence => 1)",
	"SELECT taskq.renew_slot('slots', 0, fence => 1)", "SELECT taskq.sync_slots()",
	"SELECT taskq.acquire('quota')",         "SELECT taskq.allow('quota')",
	"SELECT taskq.require('quota')",         "SELECT taskq.reserve('quota')",
	"SELECT taskq.charge('quota')",          "SELECT taskq.refund('quota', 1)",
	"SELECT taskq.reset('quota')",           "SELECT taskq.pause('quota', 'infinity')",
	"SELECT taskq.resume('quota')",          "SELECT taskq.sweep()",
	"SELECT taskq.evict_idle('1 s')",        "CALL taskq.wait('quota')",
	"SELECT taskq.drop_rate_limit('quota')", "SELECT taskq.register_token_bucket('new', 1, 1)",
	"SELECT taskq.acquire_many('{quota}')",  "SELECT taskq.acquire_token_bucket('adhoc', 1, 1)");
foreach my $take (@takes)
{
	my ($status, $out, $err) = $standby->psql('postgres', "\\set VERBOSITY verbose\n$take");
	like($err, qr/ERROR:  25006: cannot execute taskq\.\w+\(\) in a read-only transaction.*HINT:.*primary/s, "on the standby: $take");
}

# A session of the standby that has used a definition sees it change.
my $reader = $standby->background_psql('postgres');
is($reader->query("SELECT capacity, remaining FROM taskq.peek('keyed', 'a')"), '5|3', 'a session of the standby looks');
$primary->safe_psql('postgres', "SELECT taskq.register_token_bucket('keyed', 20, 0, keyed => true, replace => true); SELECT taskq.allow('keyed', 1, 'a')");
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('write'));
is($reader->query("SELECT capacity, remaining FROM taskq.peek('keyed', 'a')"), '20|17', 'and sees the changed definition');
$reader->quit;

my ($status, $out, $err) = $primary->psql('postgres', "\\set VERBOSITY verbose\nBEGIN READ ONLY; SELECT taskq.remaining('quota'); SELECT taskq.acquire('quota');");
like($err, qr/ERROR:  25006: cannot execute taskq\.acquire\(\) in a read-only transaction.*HINT:.*READ WRITE/s, 'B063: a read-only transaction is told what it needs');
is($out, 5, 'B063: and may look');

$standby->promote;
is($standby->safe_psql('postgres', "SELECT allowed, remaining FROM taskq.acquire('quota', 5)"), 't|0', 'after promotion the state goes on');
is($standby->safe_psql('postgres', "SELECT taskq.allow('quota')"), 'f', 'and a spent quota stays spent');
is($standby->safe_psql('postgres', "SELECT remaining FROM taskq.acquire('log')"), '1', 'and so does a log');

done_testing();
