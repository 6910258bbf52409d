# Processes that use reservations at random, each with a log for SlotChecker. What they do follows from a seed; when, does not.
package SlotClient;

use strict;
use warnings;
use POSIX ();
use Time::HiRes qw(time sleep);
use Wire;

# Starts a process that plays a role until the time `upto`. Options: socket, user, log, seed, upto, places => [[reservation, key], ...].
sub start
{
	my ($role, %options) = @_;
	open my $out, '>>', $options{log} or die "$options{log}: $!";
	my $pid = fork // die "fork: $!";
	return $pid if $pid;
	my $self = bless { %options, out => $out, life => 0, held => [], old => [] }, __PACKAGE__;
	eval { $self->play($role); 1 } and POSIX::_exit(0);  # not exit: the server is not ours to stop
	syswrite STDERR, "client $options{seed}: $@";
	POSIX::_exit(1);
}

sub play
{
	my ($self, $role) = @_;
	srand $self->{seed};
	$self->connect_again;
	while (time < $self->{upto})
	{
		eval { $self->$role; 1 } and next;
		die $@ if $@ ne "lost\n";
		$self->connect_again;
	}
}

sub chance { return rand() < $_[0]; }
sub one_of { return $_[ int rand @_ ]; }

sub note
{
	my ($self, $time, @words) = @_;
	syswrite $self->{out}, sprintf("%.0f %s\n", $time, join ' ', @words);
}

sub before { return POSIX::floor(time * 1e6) - 1; }
sub after  { return POSIX::ceil(time * 1e6) + 1; }

# Nothing is known of a backend whose connection is lost, except that all is decided when it has ended.
sub connect_again
{
	my $self   = shift;
	my $former = $self->{wire} && $self->{wire}{pid};
	my $limit  = time + 60;
	for (;;)
	{
		die "no connection for a minute\n" if time > $limit;
		my $wire = Wire->connect_to($self->{socket}, $self->{user});
		my $seen = $wire && ($former ? $wire->query("SELECT count(*) FROM pg_stat_activity WHERE pid = $former") : { rows => [ [0] ] });
		if ($seen && @{ $seen->{rows} } && !$seen->{rows}[0][0]) { $self->{wire} = $wire; last; }
		sleep 0.02;
	}
	$self->note(after(), 'gone') if $former;
	$self->note(after(), 'connect', $self->{wire}{pid});
	$self->{worker} = sprintf '%08d-%04d-4000-8000-000000000000', $self->{seed} % 100000000, ++$self->{life};
	$self->forget(@{ $self->{held} });
	$self->{held} = [];
}

sub forget { my ($self, @leases) = @_; push @{ $self->{old} }, @leases; splice @{ $self->{old} }, 0, -30 if @{ $self->{old} } > 60; }

# Logs a call, makes it, and logs what `tell` says of the answer's rows. Returns the rows, or undef after an error.
sub call
{
	my ($self, $sql, $tell, @words) = @_;
	$self->note(before(), 'call', @words);
	my $answer = $self->{wire}->query($sql);
	my $time = after();
	die "lost\n" if !$answer;
	if ($answer->{error}) { $self->note($time, 'error', $answer->{error}, $answer->{message}); $self->{failed} = 1; return undef; }
	$self->note($time, $tell->(@{ $answer->{rows} }));
	return $answer->{rows};
}

sub plainly { my ($self, $sql, @words) = @_; return $self->call($sql, sub { 'ok' }, @words); }

sub us { return "(extract(epoch FROM $_[0]) * 1000000)::bigint"; }
sub quoted { return "'" . ($_[0] eq '-' ? '' : $_[0]) . "'"; }

sub take
{
	my ($self, $sql, @words) = @_;
	my @got;
	$self->call($sql, sub {
		my @full;
		foreach (@_)
		{
			my ($allowed, $res, $key, $reason, $slot, $fence, $end) = @$_;
			$key = '-' if $key eq '';
			if ($allowed eq 't') { push @got, { res => $res, key => $key, slot => $slot, fence => $fence, end => $end }; }
			elsif ($reason eq 'full') { push @full, [ $res, $key ]; }
		}
		return ('allowed', map { @$_{qw(res key slot fence end)} } @got) if @got;
		my %count;
		$count{"@$_"}++ foreach @full;
		return ('denied', map { ($_, $count{$_}) } sort keys %count);
	}, @words);
	foreach my $lease (@got)
	{
		# A worker's older lease of the slot can be named only by its fence from now on.
		my @same = grep { "$_->{res} $_->{key} $_->{slot}" eq "$lease->{res} $lease->{key} $lease->{slot}" } @{ $self->{held} };
		$self->forget(@same);
		my %same = map { $_->{fence} => 1 } @same;
		$self->{held} = [ (grep { !$same{ $_->{fence} } } @{ $self->{held} }), $lease ];
	}
}

sub acquire
{
	my $self = shift;
	my ($res, $key) = @{ one_of(@{ $self->{places} }) };
	$self->take("SELECT allowed, '$res', key, reason, slot_index, fence, " . us('lease_expires_at') .
		" FROM taskq.acquire_slot('$res', NULL, '$self->{worker}', " . quoted($key) . ')', 'acquire', $res, $key, $self->{worker});
}

sub acquire_group
{
	my $self  = shift;
	my %count = map { ("@{ one_of(@{ $self->{places} }) }" => 1 + int rand 2) } 1 .. 1 + int rand 2;
	my @wanted;
	foreach (keys %count)
	{
		my ($res, $key) = split / /;
		push @wanted, ("taskq.request('$res', key => " . quoted($key) . ", worker_id => '$self->{worker}')") x $count{$_};
	}
	push @wanted, "taskq.request('many')" if chance(0.5);
	@wanted = sort { rand() <=> 0.5 } @wanted;
	$self->take("SELECT g.allowed, d.name, d.key, d.reason, d.slot_index, d.fence, " . us('d.lease_expires_at') .
		" FROM taskq.acquire_all(ARRAY[" . join(', ', @wanted) . "]) AS g, unnest(g.decisions) AS d WHERE d.kind = 'reservation'",
		'group', $self->{worker}, map { ($_, $count{$_}) } sort keys %count);
}

sub change
{
	my ($self, $what, $lease, $worker, $how) = @_;
	my %by  = (fence => "fence => $lease->{fence}", worker => "worker_id => '$worker'");
	my $by  = $how eq 'both' ? "$by{fence}, $by{worker}" : $by{$how};
	my $sql = "taskq.${what}_slot('$lease->{res}', $lease->{slot}, key => " . quoted($lease->{key}) . ", $by)";
	my $rows = $self->call($what eq 'renew' ? 'SELECT ' . us($sql) : "SELECT $sql", sub {
		my $value = $_[0][0] // 'f';
		return $value eq 'f' ? 'false' : $value eq 't' ? 'true' : ('true', $value);
	}, $what, @$lease{qw(res key slot fence)}, $how eq 'fence' ? '*' : $worker);
	return $rows;
}

sub release
{
	my $self = shift;
	return $self->acquire if !@{ $self->{held} };
	my ($lease) = splice @{ $self->{held} }, int rand @{ $self->{held} }, 1;
	$self->forget($lease);
	$self->change('release', $lease, $self->{worker}, one_of(qw(fence worker both)));
}

sub renew
{
	my $self = shift;
	return $self->acquire if !@{ $self->{held} };
	$self->change('renew', one_of(@{ $self->{held} }), $self->{worker}, one_of(qw(fence worker both)));
}

sub renew_all
{
	my $self = shift;
	$self->call("SELECT fence, " . us('lease_expires_at') . " FROM taskq.renew_slots('$self->{worker}') WHERE renewed",
		sub { ('renewed', map { @$_ } @_) }, 'renew_slots', $self->{worker});
}

# With a fence of a lease that is over, or as somebody else.
sub be_wrong
{
	my $self = shift;
	my $what = one_of(qw(release renew));
	if (@{ $self->{old} } && chance(0.7)) { my $lease = one_of(@{ $self->{old} }); $self->change($what, $lease, $self->{worker}, 'fence'); }
	elsif (@{ $self->{held} }) { $self->change($what, one_of(@{ $self->{held} }), 'ffffffff-0000-4000-8000-000000000000', one_of(qw(worker both))); }
}

sub anything
{
	my $self = shift;
	my $x = rand;
	return $x < 0.42 ? $self->acquire : $x < 0.52 ? $self->acquire_group : $x < 0.75 ? $self->release : $x < 0.86 ? $self->renew : $x < 0.90 ? $self->renew_all : $self->be_wrong;
}

sub copies { return [ map { +{%$_} } @_ ]; }

sub transaction
{
	my $self = shift;
	my ($outer, $inner) = (copies(@{ $self->{held} }));
	$self->plainly(chance(0.3) ? 'BEGIN ISOLATION LEVEL REPEATABLE READ' : 'BEGIN', 'begin');
	$self->{failed} = 0;
	foreach (0 .. int rand 4)
	{
		if (!$inner && chance(0.2)) { $self->plainly('SAVEPOINT s', 'savepoint'); $inner = copies(@{ $self->{held} }); }
		$self->anything;
		if ($inner && ($self->{failed} || chance(0.3)))
		{
			$self->plainly('ROLLBACK TO SAVEPOINT s; RELEASE SAVEPOINT s', 'rollback_to');
			($self->{held}, $inner, $self->{failed}) = ($inner, undef, 0);
		}
		last if $self->{failed};
		sleep rand 0.01 if chance(0.3);
	}
	return $self->plainly('COMMIT', 'commit') if !$self->{failed} && chance(0.65);
	$self->plainly('ROLLBACK', 'rollback');
	$self->{held} = $outer;
}

# The roles

sub work
{
	my $self = shift;
	chance(0.15) ? $self->transaction : $self->anything;
	sleep rand 0.01 if chance(0.3);
}

sub resize
{
	my $self   = shift;
	my $slots  = 1 + int rand 7;
	my $res    = $self->{places}[0][0];
	my $change = "SELECT taskq.register_reservation('$res', $slots, '200 ms', replace => true)";
	my $x      = rand;
	my $sql    = $x < 0.6 ? $change : "BEGIN; $change; SELECT pg_sleep(" . rand(0.02) . '); ' . ($x < 0.8 ? 'COMMIT' : 'ROLLBACK');
	$self->call($sql, sub { $x < 0.8 ? 'ok' : 'undone' }, 'resize', $res, $slots);
	$self->{wire}->query('ROLLBACK') if $self->{failed};
	$self->{failed} = 0;
	sleep rand 0.1;
}

sub sweep
{
	my $self = shift;
	my $sql = one_of("SELECT taskq.evict_idle('0')", 'SELECT * FROM taskq.sweep()');
	$sql = "BEGIN; $sql; SELECT pg_sleep(" . rand(0.02) . '); ' . one_of('COMMIT', 'ROLLBACK') if chance(0.5);
	$self->{wire}->query($sql) or die "lost\n";
	sleep rand 0.02;
}

1;
