# Slots by random interleavings: many clients, transactions and savepoints, leases that end, clients and backends that are killed, a crash of
# the server, a number of slots that goes up and down, keys that take each other's place, sweeps. SlotChecker judges from the clients' logs:
# never more leases than slots, no false "full", fences that only grow, one holder for each slot, and stale fences that change nothing.
#
# RATELIMIT_SEED repeats what the clients do, RATELIMIT_MODEL_SECONDS (8) makes it longer.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use SlotChecker;
use SlotClient;
use Test::More;
use Time::HiRes qw(time sleep);

# The checker can complain: logs made by hand, each with the rule that it breaks, or none.
{
	my $known   = { r => { slots => 1, lease => 100 }, x => { slots => 1, lease => 100 } };
	my $take    = sub { my ($t0, $t1, $slot, $fence, $end) = @_; return ("$t0 call acquire r - w", "$t1 allowed r - $slot $fence $end"); };
	my $change  = sub { my ($what, $t0, $t1, $slot, $fence, $answer) = @_; return ("$t0 call $what r - $slot $fence w", "$t1 $answer"); };
	my $control = sub { my ($what, $t0, $t1, $answer) = @_; return ("$t0 call $what", "$t1 " . ($answer // 'ok')); };
	my @cases = (
		[ 'one lease after the other', '', [ $take->(10, 20, 0, 1, 115) ], [ $take->(110, 120, 0, 2, 215) ] ],
		[ 'two at once',  'cap',  [ $take->(10, 20, 0, 1, 115) ], [ $take->(50, 60, 1, 2, 155) ] ],
		[ 'after a release', '', [ $take->(10, 20, 0, 1, 115), $change->('release', 30, 40, 0, 1, 'true') ], [ $take->(31, 60, 0, 2, 155) ] ],
		[ 'before a release', 'cap slot', [ $take->(10, 20, 0, 1, 115), $change->('release', 62, 70, 0, 1, 'true') ], [ $take->(31, 60, 0, 2, 155) ] ],
		[ 'a release that was undone', 'cap slot',
			[ $take->(10, 20, 0, 1, 115), $control->('begin', 21, 22), $change->('release', 30, 40, 0, 1, 'true'), $control->('rollback', 41, 42) ], [ $take->(50, 60, 0, 2, 155) ] ],
		[ 'undone by a savepoint', 'cap slot',
			[ $take->(10, 20, 0, 1, 115), $control->('begin', 21, 22), $control->('savepoint', 23, 24), $change->('release', 30, 40, 0, 1, 'true'), $control->('rollback_to', 41, 42), $control->('commit', 43, 44) ],
			[ $take->(50, 60, 0, 2, 155) ] ],
		[ 'undone by an error', '',
			[ $control->('begin', 1, 2), $take->(10, 20, 0, 1, 115), '30 call acquire x - w', '70 error 42704', $control->('rollback', 71, 72) ], [ $take->(40, 50, 0, 2, 145) ] ],
		[ 'a renewed lease', 'cap slot', [ $take->(10, 20, 0, 1, 115), $change->('renew', 90, 95, 0, 1, 'true 193') ], [ $take->(130, 140, 0, 2, 235) ] ],
		[ 'a renewal that was undone', '',
			[ $take->(10, 20, 0, 1, 115), $control->('begin', 21, 22), $change->('renew', 90, 95, 0, 1, 'true 193'), $control->('rollback', 96, 97) ], [ $take->(130, 140, 0, 2, 235) ] ],
		[ 'grown', '', [ $take->(10, 20, 0, 1, 115) ], [ '30 call resize r 2', '40 ok', $take->(35, 60, 1, 2, 155) ] ],
		[ 'growth undone', 'cap', [ $take->(10, 20, 0, 1, 115) ], [ '30 call resize r 2', '40 undone', $take->(45, 60, 1, 2, 155) ] ],
		[ 'taken before shrinking', '', [ '1 call resize r 2', '2 ok', $take->(10, 20, 0, 1, 115) ], [ $take->(11, 60, 1, 2, 155) ], [ '30 call resize r 1', '40 ok' ] ],
		[ 'taken after shrinking', 'cap', [ '1 call resize r 2', '2 ok', $take->(10, 20, 0, 1, 115) ], [ $take->(41, 60, 1, 2, 155) ], [ '30 call resize r 1', '40 ok' ] ],
		[ 'full', '', [ $take->(10, 20, 0, 1, 115) ], [ '50 call acquire r - v', '60 denied r - 1' ] ],
		[ 'full after the lease', 'full', [ $take->(10, 20, 0, 1, 115) ], [ '120 call acquire r - v', '130 denied r - 1' ] ],
		[ 'full after the release', 'full', [ $take->(10, 20, 0, 1, 115), $change->('release', 30, 40, 0, 1, 'true') ], [ '50 call acquire r - v', '60 denied r - 1' ] ],
		[ 'full during the release', '', [ $take->(10, 20, 0, 1, 115), $change->('release', 30, 55, 0, 1, 'true') ], [ '50 call acquire r - v', '60 denied r - 1' ] ],
		[ 'full by an open transaction', '',
			[ $control->('begin', 1, 2), $take->(10, 20, 0, 1, 115), $control->('rollback', 300, 310) ], [ '250 call acquire r - v', '260 denied r - 1' ] ],
		[ 'full after an undone one', 'full',
			[ $control->('begin', 1, 2), $take->(10, 20, 0, 1, 115), $control->('rollback', 30, 40) ], [ '50 call acquire r - v', '60 denied r - 1' ] ],
		[ 'full by one who was killed', '', [ '10 call acquire r - w', '20 gone' ], [ '110 call acquire r - v', '115 denied r - 1' ] ],
		[ 'full long after he was killed', 'full', [ '10 call acquire r - w', '20 gone' ], [ '125 call acquire r - v', '130 denied r - 1' ] ],
		[ 'taken from one whose backend was ended', '',
			[ $control->('begin', 1, 2), $take->(10, 20, 0, 1, 115), '40 call release r - 0 1 w', '50 gone' ], [ $take->(30, 45, 0, 2, 135) ] ],
		[ 'two wanted, one free', '', [ '1 call resize r 2', '2 ok', $take->(10, 20, 0, 1, 115) ], [ '50 call group v r - 2', '60 denied r - 2' ] ],
		[ 'two wanted, both free', 'full', [ '1 call resize r 2', '2 ok', '50 call group v r - 2', '60 denied r - 2' ] ],
		[ 'fences in disorder', 'fence', [ $take->(10, 20, 0, 7, 115) ], [ $take->(120, 130, 0, 6, 215) ] ],
		[ 'a fence twice', 'fence', [ $take->(10, 20, 0, 7, 115) ], [ $take->(120, 130, 0, 7, 215) ] ],
		[ 'a slot twice', 'slot', [ '1 call resize r 2', '2 ok', $take->(10, 20, 0, 1, 115) ], [ $take->(30, 40, 0, 2, 135) ] ],
		[ 'a stale fence is refused', '', [ $take->(10, 20, 0, 1, 115), $change->('release', 130, 140, 0, 1, 'false'), $change->('renew', 150, 160, 0, 1, 'false') ] ],
		[ 'a stale fence releases', 'stale', [ $take->(10, 20, 0, 1, 115), $change->('release', 130, 140, 0, 1, 'true') ] ],
		[ 'a stale fence renews', 'stale', [ $take->(10, 20, 0, 1, 115), $change->('renew', 130, 140, 0, 1, 'true 235') ] ],
		[ 'released twice', 'stale', [ $take->(10, 20, 0, 1, 115), $change->('release', 30, 40, 0, 1, 'true'), $change->('release', 50, 60, 0, 1, 'true') ] ],
		[ 'by somebody else', 'stale', [ $take->(10, 20, 0, 1, 115), '30 call release r - 0 1 v', '40 true' ] ],
		[ 'a good fence is refused', 'stale', [ $take->(10, 20, 0, 1, 115), $change->('renew', 30, 40, 0, 1, 'false') ] ],
		[ 'all but one renewed', 'stale', [ $take->(10, 20, 0, 1, 115), '30 call renew_slots w', '40 renewed' ] ],
		[ 'an old one renewed, too', 'stale', [ $take->(10, 20, 0, 1, 115), '130 call renew_slots w', '140 renewed 1 235' ] ]);
	foreach (@cases)
	{
		my ($name, $wanted, @logs) = @$_;
		my %found = map { /^(\w+)/; $1 => 1 } SlotChecker::complaints($known, map { ($_ => $logs[$_]) } 0 .. $#logs);
		my $found = join ' ', sort keys %found;
		is($found, $wanted, "the checker on '$name': " . ($wanted || 'fine'));
	}
}

my $seed    = $ENV{RATELIMIT_SEED} // time ^ ($$ << 8) & 0xffffff;
my $seconds = $ENV{RATELIMIT_MODEL_SECONDS} // 8;
my $clients = 10;
note("RATELIMIT_SEED=$seed");
srand $seed;

my %reservations = (
	steady => { slots => 4, lease => 300_000 },
	moving => { slots => 5, lease => 200_000 },
	keyed  => { slots => 2, lease => 150_000 });
my @places = ([ 'steady', '-' ], [ 'moving', '-' ], map { [ 'keyed', $_ ] } qw(a b c d e));

my $node = new_server('slot_model', conf => "restart_after_crash = on\n");
$node->safe_psql('postgres', "SELECT taskq.register_reservation('steady', 4, '300 ms'), taskq.register_reservation('moving', 5, '200 ms'),
	taskq.register_reservation('keyed', 2, '150 ms', keyed => true, max_keys => 4), taskq.register_token_bucket('many', 1000000, 1000000)");
my $folder = PostgreSQL::Test::Utils::tempdir();
my $socket = $node->host . '/.s.PGSQL.' . $node->port;
my $user   = getpwuid $>;
my $born   = 0;

sub start_role
{
	my ($role, $upto, @where) = @_;
	my $number = ++$born;
	my $log    = "$folder/$number.log";
	my $pid    = SlotClient::start($role, socket => $socket, user => $user, log => $log, seed => $seed % 10000 * 1000 + $number, upto => $upto, places => \@where);
	return { pid => $pid, log => $log, role => $role };
}

sub lines_of { return split /\n/, slurp_file($_[0]); }

# Kills a client in whatever it is doing, and starts another one.
sub kill_client
{
	my ($one, $upto) = @_;
	kill 'KILL', $one->{pid};
	waitpid $one->{pid}, 0;
	my ($backend) = map { /connect (\d+)/ ? $1 : () } reverse lines_of($one->{log});
	poll($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $backend)") if $backend;
	append_to_file($one->{log}, SlotClient::after() . " gone\n");
	return start_role('work', $upto, @places);
}

my $upto    = time + $seconds;
my @workers = map { start_role('work', $upto, @places) } 1 .. $clients;
my @others  = (start_role('resize', $upto, [ 'moving', '-' ]), start_role('sweep', $upto));
my ($killed, $terminated) = (0, 0);
while (time < $upto - 0.5)
{
	sleep rand 0.3;
	if (rand() < 0.5) { my $which = int rand @workers; $workers[$which] = kill_client($workers[$which], $upto); $killed++; }
	else { $terminated += $node->safe_psql('postgres', "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'model' ORDER BY random() LIMIT 1) AS a"); }
}
waitpid($_->{pid}, 0), is($?, 0, "$_->{role} ran to its end") foreach @workers, @others;
note("killed $killed clients, terminated $terminated backends");

# The same in the crash of the server.
my $crash_upto = time + 4;
my @survivors  = map { start_role('work', $crash_upto, @places) } 1 .. $clients;
sleep 1.5 + rand 0.5;
kill 'KILL', $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'model' ORDER BY random() LIMIT 1");
waitpid($_->{pid}, 0), is($?, 0, 'a client went on after the crash') foreach @survivors;
$node->poll_query_until('postgres', 'SELECT true');
like(slurp_file($node->logfile), qr/automatic recovery in progress|all server processes terminated; reinitializing/, 'the server crashed');

my %logs    = map { $_ => [ lines_of("$folder/$_.log") ] } 1 .. $born;
my %errors;
/^\d+ error (?!22023 a group asks for more slots than there are)(\w+)/ and $errors{$1}++ foreach map { @$_ } values %logs;
my $verdict = SlotChecker::complaints(\%reservations, %logs);
my @complaints = @{ $verdict->{complaints} };
is(scalar(@complaints), 0, 'nothing to complain of') or diag(join "\n", "RATELIMIT_SEED=$seed", @complaints > 20 ? @complaints[ 0 .. 19 ] : @complaints);
is(join(' ', map { "$_=$errors{$_}" } sort keys %errors), '', 'no client got an error');
cmp_ok($verdict->{counts}{leases}, '>', 300, "$verdict->{counts}{calls} calls, $verdict->{counts}{leases} leases");
cmp_ok($verdict->{full},  '>', 100, "$verdict->{full} times full");
cmp_ok($verdict->{stale}, '>', 30,  "$verdict->{stale} stale or wrong holders refused");

$node->stop;
done_testing();
