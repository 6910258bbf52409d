# Judges what clients of reservations were told, from their logs alone.
#
# A log is the lines of one client, in order: "TIME WORD ...", times in microseconds. A call is logged before it is sent, its answer after it
# has come; so what the server did, it did between the two.
#
#   call acquire RES KEY WORKER               allowed RES KEY SLOT FENCE END ... | denied [RES KEY COUNT ...]: those that are full
#   call group WORKER RES KEY COUNT ...       the same
#   call release|renew RES KEY SLOT FENCE WORKER    true [END] | false; WORKER is * for whoever has that fence
#   call renew_slots WORKER                   renewed [FENCE END ...]: those that were renewed
#   call begin|savepoint|rollback_to|commit|rollback    ok
#   call resize RES SLOTS                     ok | undone: by a rollback
#   error SQLSTATE                            instead of an answer
#   gone                                      the connection was lost, and its backend has ended
#
# A lease holds for certain from its answer until its end, or until its release is called; a release that is undone ends nothing. It possibly
# holds from its call until its end, or until its release has been committed, and as long as an open transaction has changed it.
package SlotChecker;

use strict;
use warnings;
use List::Util qw(max min);

# The complaints, each beginning with the rule that was broken. `reservations`: name => { slots => at first, lease => microseconds }.
#   cap    Some lease of those that hold for certain was taken last, when all others held; so there are no more of them than the largest
#          number that was in force at some instant between the last call and the last answer among them.
#   full   Who is told "full" was told so because at some instant of its call, possibly as many were held.
#   fence  A lease whose call began after another one's answer has a higher fence; no two have the same.
#   slot   No slot has two holders for certain.
#   stale  Nobody changes a lease that is over, or that is another's; nobody is told that a lease is over that holds for certain.
sub complaints
{
	my ($reservations, %logs) = @_;
	my $self = bless { reservations => $reservations, leases => [], by_fence => {}, possible => {}, ops => [], caps => {}, complaints => [] };
	push @{ $self->{ops} }, map { ops_of($logs{$_}) } sort keys %logs;
	$self->note_sizes;
	$self->note_leases;
	$self->note_changes;
	$self->settle;
	$self->check_cap;
	$self->check_full;
	$self->check_fence;
	$self->check_slot;
	$self->check_stale;
	$self->{counts} = { calls => scalar @{ $self->{ops} }, leases => scalar @{ $self->{leases} } };
	return wantarray ? @{ $self->{complaints} } : $self;
}

sub complain { my ($self, $rule, $text) = @_; push @{ $self->{complaints} }, "$rule: $text"; }

# The calls of one client, each with its fate: kept, undone or unknown, decided between two times.
sub ops_of
{
	my $lines = shift;
	my (@ops, @open, $in_transaction, $pending, $answered, $failing);
	# An error undoes what a rollback is called for afterwards.
	my $decide = sub { my ($fate, $t0, $t1, @which) = @_; $t0 = min(grep { defined } $t0, $failing); undef $failing; @$_{qw(fate decided0 decided1)} = ($fate, $t0, $t1) foreach @which; };
	foreach (@$lines)
	{
		my ($t, $word, @rest) = split;
		if ($word eq 'call')
		{
			$pending = { what => shift @rest, args => \@rest, t0 => $t, answer => [''] };
			push @ops, $pending;
			push @open, $pending if $in_transaction && $pending->{what} !~ /^(commit|rollback|rollback_to)$/;
		}
		elsif ($word eq 'gone')
		{
			my $sent = $pending && ($pending->{what} eq 'commit' || !$in_transaction);
			# An open transaction may have been over before the call that found out.
			$decide->($sent ? 'unknown' : 'undone', $in_transaction || !$pending ? $answered : $pending->{t0}, $t, @open, $pending ? $pending : ());
			($pending, $in_transaction, @open) = ();
		}
		elsif ($word ne 'connect')
		{
			my $op = $pending or die "an answer without a call: $_";
			@$op{qw(t1 answer)} = ($t, [ $word, @rest ]);
			$pending = undef;
			$failing //= $op->{t0} if $word eq 'error';
			if (!$in_transaction) { $decide->($word =~ /^(error|undone)$/ ? 'undone' : 'kept', $op->{t0}, $t, $op); }
			if ($op->{what} eq 'begin') { ($in_transaction, @open) = (1); }
			elsif ($op->{what} =~ /^(commit|rollback)$/)
			{
				$decide->($op->{what} eq 'commit' && $word eq 'ok' ? 'kept' : 'undone', $op->{t0}, $t, @open, $op);
				($in_transaction, @open) = ();
			}
			elsif ($op->{what} eq 'rollback_to')
			{
				my @undone;
				while (@open) { my $one = pop @open; push @undone, $one; last if $one->{what} eq 'savepoint'; }
				$decide->('undone', $op->{t0}, $t, @undone, $op);
			}
		}
		$answered = $t if $word ne 'call';
	}
	die 'a log ends in the middle of a call or a transaction' if $pending || $in_transaction;
	return @ops;
}

# Numbers of slots, each with the times between which it was possibly in force.
sub note_sizes
{
	my $self = shift;
	$self->{caps}{$_} = [ { slots => $self->{reservations}{$_}{slots}, from => 0, upto => 9e18 } ] foreach keys %{ $self->{reservations} };
	foreach my $op (sort { $a->{t0} <=> $b->{t0} } grep { $_->{what} eq 'resize' } @{ $self->{ops} })
	{
		my $caps = $self->{caps}{ $op->{args}[0] };
		my $size = { slots => $op->{args}[1], from => $op->{t0}, upto => 9e18 };
		if ($op->{fate} eq 'undone') { @$size{qw(upto undone)} = ($op->{decided1}, 1); }
		elsif ($op->{fate} eq 'kept') { $_->{upto} = min($_->{upto}, $op->{decided1}) foreach @$caps; }
		push @$caps, $size;
	}
}

sub sizes { my ($self, $res, $t0, $t1) = @_; return grep { $_->{from} <= $t1 && $_->{upto} >= $t0 } @{ $self->{caps}{$res} }; }

# What a call asks for: [reservation, key, count], and for whom.
sub wishes_of
{
	my $op = shift;
	return ([], undef) if $op->{what} !~ /^(acquire|group)$/;
	my @args = @{ $op->{args} };
	return ([ [ @args[ 0, 1 ], 1 ] ], $args[2]) if $op->{what} eq 'acquire';
	my ($worker, @wishes) = shift @args;
	while (@args) { push @wishes, [ splice @args, 0, 3 ]; }
	return (\@wishes, $worker);
}

sub hold_possibly { my ($self, $res, $key, $t0, $t1, $count, $op) = @_; push @{ $self->{possible}{"$res $key"} }, [ $t0, $t1, $count, $op ]; }

# Does a denied call have a slot in hand for a while? A group may; a single call only where a smaller number takes hold.
sub takes_and_gives_back { my ($self, $op, $res) = @_; return $op->{what} eq 'group' || @{ $self->{caps}{$res} } > 1; }

sub note_leases
{
	my $self = shift;
	foreach my $op (@{ $self->{ops} })
	{
		my ($wishes, $worker) = wishes_of($op);
		my ($word, @rest) = @{ $op->{answer} };
		if ($word eq 'allowed')
		{
			while (@rest)
			{
				my %lease = (op => $op, worker => $worker, t0 => $op->{t0}, t1 => $op->{t1}, changes => []);
				@lease{qw(res key slot fence end)} = splice @rest, 0, 5;
				push @{ $self->{leases} }, \%lease;
				$self->{by_fence}{ $lease{fence} } = \%lease;
			}
			next;
		}
		foreach (@$wishes)
		{
			my ($res, $key, $count) = @$_;
			my $lost = $word eq '' && $op->{fate} eq 'unknown' ? $self->{reservations}{$res}{lease} : 0;
			next if $word eq 'denied' && !$self->takes_and_gives_back($op, $res);
			$self->hold_possibly($res, $key, $op->{t0}, $op->{decided1} + $lost, $count, $op);
		}
	}
}

# Gives each lease the releases and renewals that were told to have changed it, or may have.
sub note_changes
{
	my $self = shift;
	foreach my $op (@{ $self->{ops} })
	{
		my ($word, @rest) = @{ $op->{answer} };
		if ($op->{what} =~ /^(release|renew)$/ && $word =~ /^(true|)$/)
		{
			my $lease = $self->{by_fence}{ $op->{args}[3] } or next;
			push @{ $lease->{changes} }, { what => $op->{what}, op => $op, end => $rest[0] };
		}
		elsif ($op->{what} eq 'renew_slots' && $word eq 'renewed')
		{
			my %ends = @rest;
			push @{ $self->{by_fence}{$_}{changes} }, { what => 'renew', op => $op, end => $ends{$_} } foreach keys %ends;
		}
		elsif ($op->{what} eq 'renew_slots' && $word eq '')
		{
			push @{ $_->{changes} }, { what => 'renew', op => $op } foreach grep { $_->{worker} eq $op->{args}[0] } @{ $self->{leases} };
		}
	}
}

# When each lease holds for certain, and when possibly.
sub settle
{
	my $self = shift;
	foreach my $lease (@{ $self->{leases} })
	{
		my ($from, $end, $last) = ($lease->{t1}, $lease->{end}, max($lease->{end}, $lease->{op}{decided1}));
		$lease->{certain} = [];
		foreach (@{ $lease->{changes} })
		{
			my ($op, $fate) = ($_->{op}, $_->{op}{fate});
			my $new_end = $_->{end} // $op->{decided1} + $self->{reservations}{ $lease->{res} }{lease};
			$last = max($last, $op->{decided1});
			if ($_->{what} eq 'renew')
			{
				$end = $_->{end} if $fate eq 'kept';
				$last = max($last, $new_end) if $fate ne 'undone';
				next;
			}
			push @{ $lease->{certain} }, [ $from, min($end, $op->{t0}) ];
			$from = $fate eq 'undone' ? $op->{decided1} : 9e18;
			$last = $op->{decided1} if $fate eq 'kept';
			last if $fate ne 'undone';
		}
		push @{ $lease->{certain} }, [ $from, $end ];
		if ($lease->{op}{fate} ne 'kept') { $_->[1] = min($_->[1], $lease->{op}{decided0}) foreach @{ $lease->{certain} }; }
		$last = $lease->{op}{decided1} if $lease->{op}{fate} eq 'undone';
		$lease->{certain} = [ grep { $_->[0] < $_->[1] } @{ $lease->{certain} } ];
		$self->hold_possibly(@$lease{qw(res key t0)}, $last, 1, $lease->{op});
	}
}

sub check_cap
{
	my $self = shift;
	my %events;
	foreach my $lease (@{ $self->{leases} })
	{
		push @{ $events{"$lease->{res} $lease->{key}"} }, [ $_->[0], 1, $lease ], [ $_->[1], 0, $lease ] foreach @{ $lease->{certain} };
	}
	foreach my $place (sort keys %events)
	{
		my %holding;
		foreach (sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } @{ $events{$place} })
		{
			my ($t, $begins, $lease) = @$_;
			delete $holding{ $lease->{fence} }, next if !$begins;
			$holding{ $lease->{fence} } = $lease;
			my @all   = values %holding;
			my @sizes = grep { !$_->{undone} } $self->sizes($lease->{res}, max(map { $_->{t0} } @all), max(map { $_->{t1} } @all));
			my $most  = max(map { $_->{slots} } @sizes);
			$self->complain('cap', scalar(@all) . " leases of $place at $t, where $most are allowed: " . join(' ', sort { $a <=> $b } keys %holding)) if @all > $most;
		}
	}
}

# Times at which the number of possible holders changes, and the number from then on.
sub levels_of
{
	my @events = sort { $a->[0] <=> $b->[0] || $b->[1] <=> $a->[1] } map { [ $_->[0], $_->[2] ], [ $_->[1] + 1, -$_->[2] ] } @_;
	my (@times, @levels);
	my $level = 0;
	foreach (@events)
	{
		$level += $_->[1];
		push @times,  $_->[0];
		push @levels, $level;
	}
	return (\@times, \@levels);
}

sub most_between
{
	my ($times, $levels, $t0, $t1) = @_;
	my ($low, $high) = (0, scalar @$times);
	while ($low < $high)
	{
		my $middle = int(($low + $high) / 2);
		$times->[$middle] < $t0 ? ($low = $middle + 1) : ($high = $middle);
	}
	my $most = $low > 0 ? $levels->[ $low - 1 ] : 0;
	for (my $i = $low; $i < @$times && $times->[$i] <= $t1; $i++) { $most = max($most, $levels->[$i]); }
	return $most;
}

sub check_full
{
	my $self   = shift;
	my %levels = map { $_ => [ levels_of(@{ $self->{possible}{$_} }) ] } keys %{ $self->{possible} };
	foreach my $op (grep { $_->{answer}[0] eq 'denied' } @{ $self->{ops} })
	{
		my (undef, @full) = @{ $op->{answer} };
		while (my ($res, $key, $count) = splice @full, 0, 3)
		{
			my $held = most_between(@{ $levels{"$res $key"} // [ [], [] ] }, $op->{t0}, $op->{t1});
			$held -= $count if $self->takes_and_gives_back($op, $res);  # its own
			my $slots = min(map { $_->{slots} } $self->sizes($res, $op->{t0}, $op->{t1}));
			$self->{full}++;
			next if $held > $slots - $count;
			$self->complain('full', "$count of $res $key denied from $op->{t0} to $op->{t1}, where at most $held of $slots were held");
		}
	}
}

sub check_fence
{
	my $self = shift;
	my (%twice, %by_reservation);
	foreach my $lease (@{ $self->{leases} })
	{
		# A crash may undo that a fence was drawn, together with the transaction that drew it.
		next if $lease->{op}{fate} ne 'kept';
		$self->complain('fence', "two leases with fence $lease->{fence}") if $twice{ $lease->{fence} }++;
		push @{ $by_reservation{ $lease->{res} } }, $lease;
	}
	foreach my $res (sort keys %by_reservation)
	{
		my @answered = sort { $a->{t1} <=> $b->{t1} } @{ $by_reservation{$res} };
		my $highest = 0;
		foreach my $lease (sort { $a->{t0} <=> $b->{t0} } @{ $by_reservation{$res} })
		{
			while (@answered && $answered[0]{t1} < $lease->{t0}) { $highest = max($highest, shift(@answered)->{fence}); }
			$self->complain('fence', "$res: $lease->{fence} after $highest") if $lease->{fence} <= $highest;
		}
	}
}

sub check_slot
{
	my $self = shift;
	my %slots;
	foreach my $lease (@{ $self->{leases} })
	{
		push @{ $slots{"$lease->{res} $lease->{key} $lease->{slot}"} }, map { [ @$_, $lease->{fence} ] } @{ $lease->{certain} };
	}
	foreach my $slot (sort keys %slots)
	{
		my $before;
		foreach (sort { $a->[0] <=> $b->[0] } @{ $slots{$slot} })
		{
			$self->complain('slot', "$slot: lease $_->[2] begins at $_->[0], $before->[2] lasts until $before->[1]") if $before && $_->[0] < $before->[1];
			$before = $_ if !$before || $_->[1] > $before->[1];
		}
	}
}

sub holds_throughout { my ($lease, $op) = @_; return grep { $_->[0] <= $op->{t0} && $_->[1] > $op->{t1} } @{ $lease->{certain} }; }

# Why a lease was certainly over when a call began; '' if it was not.
sub why_over
{
	my ($lease, $op) = @_;
	return 'was never taken' if !$lease->{op};
	return 'was undone' if $lease->{op}{fate} eq 'undone' && $lease->{op}{decided1} < $op->{t0};
	my $end = $lease->{end};
	foreach (@{ $lease->{changes} })
	{
		last if $_->{op} == $op;
		my $undone = $_->{op}{fate} eq 'undone' && $_->{op}{decided1} <= $op->{t0};
		if    ($_->{what} eq 'renew')    { $end = max($end, $_->{end} // 9e18) if !$undone; }
		elsif ($_->{op}{answer}[0] ne '' && !$undone) { return 'was released'; }
	}
	return $end <= $op->{t0} ? "had ended at $end" : '';
}

sub check_stale
{
	my $self = shift;
	foreach my $op (@{ $self->{ops} })
	{
		my ($word, @rest) = @{ $op->{answer} };
		if ($op->{what} =~ /^(release|renew)$/)
		{
			my ($fence, $worker) = @{ $op->{args} }[ 3, 4 ];
			my $lease = $self->{by_fence}{$fence} // {};
			my $mine  = $lease->{op} && ($worker eq '*' || $lease->{worker} eq $worker);
			my $over  = $mine ? why_over($lease, $op) : "is not of $worker";
			$self->{stale}++ if $over ne '' && $word eq 'false';
			$self->complain('stale', "$op->{what} at $op->{t0} of $fence, which $over") if $word eq 'true' && $over ne '';
			$self->complain('stale', "$op->{what} at $op->{t0} of $fence answered false, but it holds") if $word eq 'false' && $mine && holds_throughout($lease, $op);
		}
		elsif ($op->{what} eq 'renew_slots' && $word eq 'renewed')
		{
			my %renewed = @rest;
			foreach (keys %renewed)
			{
				my $over = why_over($self->{by_fence}{$_} // {}, $op);
				$self->complain('stale', "renew_slots at $op->{t0} renewed $_, which $over") if $over ne '';
			}
			foreach (@{ $self->{of_worker}{ $op->{args}[0] } //= [ grep { $_->{worker} eq $op->{args}[0] } @{ $self->{leases} } ] })
			{
				$self->complain('stale', "renew_slots at $op->{t0} left out $_->{fence}, which holds") if !$renewed{ $_->{fence} } && holds_throughout($_, $op);
			}
		}
	}
}

1;
