# Many clients on one key, WITH refill: what is admitted is never above the exact bound, and nothing that was regained is lost:
# every balance is the exact one. Of windows at least 97 % is granted.
#
# A test without refill cannot see a clock that was read before the row was held. Every grant's decided_at is recorded in
# the transaction that took it, and the grants are replayed in exact integer arithmetic: no bucket is ever overdrawn by one
# unit, no window ever holds one call more than its limit.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use POSIX ();
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $seconds = 2;
my $node    = new_server('contention');
$node->safe_psql('postgres', 'CREATE UNLOGGED TABLE grants (run text, decided_at timestamptz, remaining float8)');

# A meter regains one unit every 2500 us (400 per second), after a burst.
my $pace = 2500;
sub check_meter
{
	my ($run, $capacity, $grain, @at) = @_;
	is(meter_overdrawn($capacity, $pace, @at), 0, "$run: never overdrawn");
	my $bound = $capacity + ($at[-1] - $at[0]) / $pace;
	cmp_ok(scalar(@at), '<=', $bound,        "$run: " . @at . " granted, at most burst + rate * elapsed = $bound");
	is(meter_misstated($capacity, $pace, $grain, balances_of($node, "run = '$run'")), 0, "$run: each leaves behind what exact arithmetic says, so nothing is lost");
}

# Windows admit 100 in 400 ms.
my ($limit, $window) = (100, 400_000);
sub count_per_window
{
	my %count;
	$count{ int($_ / $window) }++ foreach @_;
	return %count;
}

# Of the aligned windows between the first grant's and the last one's.
sub check_share_of_whole_windows
{
	my ($run, %count) = @_;
	my @whole = sort { $a <=> $b } keys %count;
	my $windows = $whole[-1] - $whole[0] - 1;
	my $granted = 0;
	$granted += $count{$_} // 0 foreach $whole[0] + 1 .. $whole[-1] - 1;
	cmp_ok($granted, '>=', 0.97 * $limit * $windows, "$run: $granted granted in $windows whole windows, at least 97 % of the limit");
}

sub check_fixed_window
{
	my ($run, @at) = @_;
	my %count = count_per_window(@at);
	is(scalar(grep { $_ > $limit } values %count), 0, "$run: no window above the limit");
	check_share_of_whole_windows($run, %count);
}

sub check_log
{
	my ($run, @at) = @_;
	cmp_ok(most_in_any_window($window, @at), '<=', $limit, "$run: no window of any start above the limit");
	my $whole   = POSIX::floor(($at[-1] - $at[0]) / $window);
	my $granted = grep { $_ < $at[0] + $whole * $window } @at;
	cmp_ok($granted, '>=', 0.97 * $limit * $whole, "$run: $granted granted in $whole windows, at least 97 % of the limit");
}

# previous * (window - elapsed) + current * window <= limit * window, at each grant.
sub check_counter
{
	my ($run, @at) = @_;
	my (%count, $above);
	$above = 0;
	foreach my $now (@at)
	{
		my ($number, $elapsed) = (int($now / $window), $now % $window);
		$count{$number}++;
		$above++ if ($count{ $number - 1 } // 0) * ($window - $elapsed) + $count{$number} * $window > $limit * $window;
	}
	is($above, 0, "$run: the weight never passes the limit");
	cmp_ok(most_in_any_window($window, @at), '<=', 2 * $limit - 1, "$run: at most 2 * limit - 1 in any window");
	check_share_of_whole_windows($run, %count);
}

sub check_gcra
{
	my ($run, @at) = @_;
	check_meter($run, 200, $pace, @at);
	cmp_ok(most_in_any_window(200 * $pace, @at), '<=', 2 * 200 - 1, "$run: at most 2 * limit - 1 in any window");
}

my %kinds = (
	token_bucket => [ "register_token_bucket('%s', 50, 400)", sub { check_meter(shift, 50, 1, @_) } ],
	leaky_bucket => [ "register_leaky_bucket('%s', 50, 400)", sub { check_meter(shift, 50, 1, @_) } ],
	gcra         => [ "register_sliding_window('%s', 200, '500 ms', style => 'gcra')", \&check_gcra ],
	log          => [ "register_sliding_window('%s', 100, '400 ms')",                  \&check_log ],
	counter      => [ "register_sliding_window('%s', 100, '400 ms', style => 'counter', anchor => '1970-01-01 00:00+00')", \&check_counter ],
	fixed_window => [ "register_fixed_window('%s', 100, '400 ms', anchor => '1970-01-01 00:00+00')", \&check_fixed_window ]);

sub contend
{
	my ($kind, $clients, $synchronous_commit) = @_;
	my $run = "$kind, $clients clients, synchronous_commit $synchronous_commit";
	my ($definition, $check) = @{ $kinds{$kind} };
	$node->safe_psql('postgres', 'SELECT taskq.' . sprintf($definition, $run));
	local $ENV{PGOPTIONS} = "-c synchronous_commit=$synchronous_commit";
	my ($status, $out, $err) = hammer(
		$node,
		"INSERT INTO grants SELECT '$run', decided_at, remaining FROM taskq.acquire('$run') WHERE allowed;\n",
		'-c', $clients, '-j', 2, '-T', $seconds);
	is($status, 0, "$run: no call failed") or diag($err);
	my @at = grants_of($node, "run = '$run'");
	$check->($run, @at);
}

foreach my $kind (sort keys %kinds)
{
	contend($kind, 16, 'on');
	contend($kind, 32, 'off');
}
contend($_, 32, 'on')  foreach qw(token_bucket log);
contend($_, 16, 'off') foreach qw(token_bucket log);

is($node->safe_psql('postgres', 'SELECT count(*) FROM grants WHERE remaining < 0'), 0, 'nothing left is never less than nothing (B006)');
is( $node->safe_psql('postgres', 'SELECT count(*) FROM taskq.rate_limit_buckets'),
	$node->safe_psql('postgres', 'SELECT count(*) FROM taskq.rate_limits'),
	'one row for each limit');

# B059: a quota that never refills, by 20 clients.
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('quota', 100, 0)");
my ($status) = hammer($node, "INSERT INTO grants SELECT 'quota', decided_at, remaining FROM taskq.acquire('quota') WHERE allowed;\n",
	'-c', 20, '-j', 2, '-t', 25);
is($status, 0, 'B059: no call failed');
is($node->safe_psql('postgres', "SELECT count(*), count(DISTINCT remaining) FROM grants WHERE run = 'quota'"),
	'100|100', 'B059: exactly 100 of 500 are granted, each another one');

$node->stop;
done_testing();
