# Clocks that step back (B033) or jitter between sessions (B034), through SQL with the test clock.
#
# B033: after a step of 60 s back, a denied call re-anchors the state, which is stored although it was denied; the waits it
# reports are honest, and not longer than a window or a full refill; a log line tells. B034: jitter credits nothing.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('clock');
# kind => definition, and the longest wait in seconds that can be honest
my $anchor = "anchor => '1970-01-01 00:00+00'";
my %definition = (
	token_bucket => [ "register_token_bucket('%s', 5, 1)",                                     1 ],
	leaky_bucket => [ "register_leaky_bucket('%s', 5, 1)",                                     1 ],
	fixed_window => [ "register_fixed_window('%s', 5, '60 s', $anchor)",                       60 ],
	log          => [ "register_sliding_window('%s', 5, '60 s')",                              60 ],
	counter      => [ "register_sliding_window('%s', 5, '60 s', style => 'counter', $anchor)", 120 ],
	gcra         => [ "register_sliding_window('%s', 5, '5 s', style => 'gcra')",              1 ]);

my $base = 1_700_000_040;
my $session = $node->background_psql('postgres');
sub at
{
	my ($seconds, $query) = @_;
	return $session->query(sprintf("SET taskq_ratelimit.test_clock = '%.6f'; ", $base + $seconds) . $query);
}
sub granted
{
	my ($seconds, $name, $calls) = @_;
	return at($seconds, "SELECT count(*) FILTER (WHERE taskq.allow('$name', 1 + 0 * g)) FROM generate_series(1, $calls) g");
}
sub stored_time
{
	return at(0, "SELECT extract(epoch FROM b.at)::numeric - $base FROM taskq.rate_limit_buckets b JOIN taskq.rate_limits l USING (limit_id) WHERE l.name = '$_[0]'");
}
sub steps_logged
{
	my $name = shift;
	my $log  = slurp_file($node->logfile);
	return scalar(() = $log =~ /LOG:  rate limit "$name": the clock was set back by/g);
}

foreach my $kind (sort keys %definition)
{
	my ($definition, $longest) = @{ $definition{$kind} };
	my $name = "step $kind";
	at(0, 'SELECT taskq.' . sprintf($definition, $name));
	is(granted(100, $name, 8), 5, "B033 $kind: all are spent at 100");
	my $denied = at(40, "SELECT allowed, remaining, retry_after_seconds FROM taskq.preview('$name')");
	is(stored_time($name) + 0, 100, "B033 $kind: a preview at 40 leaves the state alone");
	is(at(40, "SELECT allowed, remaining, retry_after_seconds FROM taskq.acquire('$name')"), $denied, "B033 $kind: acquire at 40 answers the same");
	like($denied, qr/^f\|0\|/, "B033 $kind: denied, nothing negative");
	is(stored_time($name) + 0, 40, "B033 $kind: and the state is re-anchored");
	is(steps_logged($name),    1,  "B033 $kind: which is logged once");
	my $wait = (split /\|/, $denied)[2];
	cmp_ok($wait, '>',  0,        "B033 $kind: the wait is $wait");
	cmp_ok($wait, '<=', $longest, "B033 $kind: not longer than $longest");
	is(granted(40 + $wait - 0.000001, $name, 3), 0, "B033 $kind: one microsecond less does not get in");
	is(granted(40 + $wait,            $name, 1), 1, "B033 $kind: waiting that long does");
	is(steps_logged($name), 1, "B033 $kind: no other step was logged");

	# Set back and forth: at most what the interval was worth, capped at one capacity.
	$name = "back and forth $kind";
	at(0, 'SELECT taskq.' . sprintf($definition, $name));
	is(granted(100, $name, 8), 5, "B033 $kind: all are spent again");
	my $granted = 0;
	$granted += granted($_ % 2 ? 98.5 : 100, $name, 3) foreach 1 .. 200;
	cmp_ok($granted, '<=', $kind eq 'fixed_window' || $kind eq 'log' || $kind eq 'counter' ? 0 : 150,
		"B033 $kind: a clock that steps back and forth grants $granted");

	$name = "jitter $kind";
	at(0, 'SELECT taskq.' . sprintf($definition, $name));
	is(granted(100, $name, 8), 5, "B034 $kind: all are spent at 100");
	$granted = 0;
	$granted += granted($_ % 2 ? 99.99 : 100, $name, 5) foreach 1 .. 200;
	is($granted, 0, "B034 $kind: 1000 calls at 99.99 and 100 in turn are all denied");
	is(stored_time($name) + 0, 100, "B034 $kind: the state's time has not moved");
	is(steps_logged($name),    0,   "B034 $kind: no step was logged");
	is(granted(101, $name, 3), 1, "B034 $kind: one more at 101") if $longest == 1;
}

# Entries of a log that come from the future become entries of now.
at(0, "SELECT taskq.register_sliding_window('entries', 5, '60 s')");
is(granted(90, 'entries', 2) + granted(100, 'entries', 3), 5, 'a log is full');
is(granted(95, 'entries', 1), 0, 'its clock is set back by 5 s');
is(at(95, "SELECT string_agg((extract(epoch FROM e.at) - $base)::int::text, ' ' ORDER BY e.upto) FROM taskq.rate_limit_window_entries e
	JOIN taskq.rate_limit_buckets b USING (bucket_id) JOIN taskq.rate_limits l USING (limit_id) WHERE l.name = 'entries'"),
	'90 90 95 95 95', 'entries of the future are entries of now');

# B035: the clock is not the transaction's.
$session->quit;
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('frozen', 1, 10)");
is($node->safe_psql('postgres', "BEGIN; SELECT taskq.allow('frozen'); SELECT pg_sleep(0.11); SELECT taskq.allow('frozen'); COMMIT"), "t\n\nt",
	'B035: time passes within a transaction');

$node->safe_psql('postgres', 'CREATE ROLE plain; GRANT USAGE ON SCHEMA taskq TO plain; GRANT EXECUTE ON ALL ROUTINES IN SCHEMA taskq TO plain');
my ($status, $out, $err) = $node->psql('postgres', "LOAD 'taskq_ratelimit'; SET ROLE plain; SET taskq_ratelimit.test_clock = '1'");
like($err, qr/permission denied to set parameter/, 'only superusers may drive the clock');
is($node->safe_psql('postgres', "SET ROLE plain; SET taskq_ratelimit.test_clock = '1'; SELECT decided_at > now() - interval '1 minute' FROM taskq.preview('frozen')"),
	't', 'also before the library is loaded');

$node->stop;
done_testing();
