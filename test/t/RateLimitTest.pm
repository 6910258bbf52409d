# What the TAP tests share: a server with the extension, clients that hammer it, and exact replays of what was granted.
package RateLimitTest;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(new_server hammer start_hammer grants_of balances_of meter_overdrawn meter_misstated most_in_any_window poll);

# A running server with the extension. Options: conf => 'lines', init => [initdb options], standby => 1.
sub new_server
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(
		$options{init}    ? (extra            => $options{init}) : (),
		$options{standby} ? (allows_streaming => 1)              : ());
	$node->append_conf('postgresql.conf', "max_connections = 100\nautovacuum = off\n" . ($options{conf} // ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION taskq_ratelimit');
	return $node;
}

sub bench_command
{
	my ($node, $script, @options) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . '/script.sql';
	append_to_file($file, $script);
	return [ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-M', 'prepared', '-f', $file, @options, 'postgres' ];
}

# Runs a pgbench script. Returns exit status, standard output and standard error.
sub hammer
{
	my ($node, $script, @options) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run(bench_command($node, $script, @options), '>', \$out, '2>', \$err);
	return ($? >> 8, $out, $err);
}

# The same in the background. Returns the IPC::Run handle, to be finished.
sub start_hammer
{
	my ($node, $output, $script, @options) = @_;
	return IPC::Run::start(bench_command($node, $script, @options), '>', $output, '2>&1');
}

# The microseconds since 1970 at which calls were granted, in order.
sub grants_of
{
	my ($node, $where) = @_;
	return map { int $_ } split /\n/, $node->safe_psql('postgres',
		"SELECT (extract(epoch FROM decided_at) * 1000000)::bigint FROM grants WHERE $where ORDER BY decided_at");
}

# Those with what each left behind.
sub balances_of
{
	my ($node, $where) = @_;
	return map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres',
		"SELECT (extract(epoch FROM decided_at) * 1000000)::bigint, remaining FROM grants WHERE $where ORDER BY decided_at, remaining DESC");
}

# How often a bucket of so many units, which regains one every `pace` microseconds, was overdrawn by grants of one unit.
# All in whole microseconds, so exact.
sub meter_overdrawn
{
	my ($capacity, $pace, @at) = @_;
	my ($level, $last, $overdrawn) = ($capacity * $pace, $at[0], 0);
	foreach my $now (@at)
	{
		$level += $now - $last;
		$level = $capacity * $pace if $level > $capacity * $pace;
		$last  = $now;
		$level -= $pace;
		$overdrawn++ if $level < 0;
	}
	return $overdrawn;
}

# How many of such grants tell another balance than that bucket has in exact arithmetic. Each is [decided_at, remaining].
# `grain`: what it tells is rounded down to a multiple of so many microseconds of pace (1: not rounded).
sub meter_misstated
{
	my ($capacity, $pace, $grain, @grants) = @_;
	my ($level, $last, $misstated) = ($capacity * $pace, $grants[0][0], 0);
	foreach (@grants)
	{
		my ($now, $remaining) = @$_;
		$level += $now - $last;
		$level = $capacity * $pace if $level > $capacity * $pace;
		$last  = $now;
		$level -= $pace;
		$misstated++ if abs($level - $level % $grain - $remaining * $pace) > 1e-6;
	}
	return $misstated;
}

# The most grants in any half-open window of that many microseconds.
sub most_in_any_window
{
	my ($window, @at) = @_;
	my ($first, $most) = (0, 0);
	foreach my $last (0 .. $#at)
	{
		$first++ while $at[$first] <= $at[$last] - $window;
		$most = $last - $first + 1 if $most < $last - $first + 1;
	}
	return $most;
}

# Waits until a query answers true, for at most 30 seconds.
sub poll
{
	my ($node, $query) = @_;
	return $node->poll_query_until('postgres', $query);
}

1;
