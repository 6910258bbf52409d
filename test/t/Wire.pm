# A client of the server that is one process of its own, so that it can be killed at any instant: the simple query protocol over a socket.
package Wire;

use strict;
use warnings;
use IO::Socket::UNIX;

# A connection, or undef. Its `pid` is that of the backend.
sub connect_to
{
	my ($class, $socket, $user) = @_;
	my $self = bless { socket => IO::Socket::UNIX->new(Peer => $socket) }, $class;
	return undef if !$self->{socket};
	my $startup = pack('N', 196608) . "user\0$user\0database\0postgres\0application_name\0model\0\0";
	return undef if !$self->send_bytes(pack('N', 4 + length $startup) . $startup);
	my $answer = $self->answer;
	return undef if !$answer || $answer->{error};
	return $self;
}

# { rows => [[...]], error => SQLSTATE }, or undef if the connection is lost.
sub query
{
	my ($self, $sql) = @_;
	return undef if !$self->send_bytes('Q' . pack('N', 5 + length $sql) . "$sql\0");
	return $self->answer;
}

sub send_bytes
{
	my ($self, $bytes) = @_;
	local $SIG{PIPE} = 'IGNORE';
	return defined syswrite($self->{socket}, $bytes);
}

sub read_bytes
{
	my ($self, $count) = @_;
	my $bytes = '';
	while (length $bytes < $count)
	{
		my $got = sysread($self->{socket}, $bytes, $count - length $bytes, length $bytes);
		return undef if !$got;
	}
	return $bytes;
}

sub row_of
{
	my $body = shift;
	my ($count, @values) = unpack('n', $body);
	my $at = 2;
	foreach (1 .. $count)
	{
		my $length = unpack('l>', substr($body, $at, 4));
		push @values, $length < 0 ? undef : substr($body, $at + 4, $length);
		$at += 4 + ($length < 0 ? 0 : $length);
	}
	return \@values;
}

sub answer
{
	my $self   = shift;
	my $answer = { rows => [], error => undef };
	for (;;)
	{
		my $head = $self->read_bytes(5) // return undef;
		my ($kind, $length) = unpack('a N', $head);
		my $body = $self->read_bytes($length - 4) // return undef;
		return $answer if $kind eq 'Z';
		push @{ $answer->{rows} }, row_of($body) if $kind eq 'D';
		$self->{pid} = unpack('N', $body) if $kind eq 'K';
		next if $kind ne 'E';
		my %fields = map { substr($_, 0, 1) => substr($_, 1) } grep { length } split /\0/, $body;
		return undef if $fields{V} ne 'ERROR';
		$answer->{error} = $fields{C};
		$answer->{message} = $fields{M};
	}
}

1;
