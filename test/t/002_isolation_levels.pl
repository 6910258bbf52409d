# Many clients at REPEATABLE READ and SERIALIZABLE on one hot key: no transaction fails, and the counts are exact (B061).
#
# Every transaction takes its snapshot first, so that nearly all of them decide on a row that was replaced after it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('isolation');
$node->safe_psql('postgres', 'CREATE UNLOGGED TABLE grants (run text, decided_at timestamptz)');

my %definition = (
	token_bucket => "register_token_bucket('%s', 300, 0)",
	log          => "register_sliding_window('%s', 300, '1 hour')",
	counter      => "register_sliding_window('%s', 300, '1 hour', style => 'counter')",
	fixed_window => "register_fixed_window('%s', 300, '1 hour')",
	gcra         => "register_sliding_window('%s', 300, '100 days', style => 'gcra')");

foreach my $level ('repeatable read', 'serializable')
{
	local $ENV{PGOPTIONS} = "-c default_transaction_isolation=" . ($level =~ s/ /\\ /r);
	foreach my $kind (sort keys %definition)
	{
		my $run = "$kind at $level";
		$node->safe_psql('postgres', 'SELECT taskq.' . sprintf($definition{$kind}, $run));
		my ($status, $out, $err) = hammer(
			$node,
			"BEGIN;\nSELECT count(*) FROM pg_am;\n"
			  . "INSERT INTO grants SELECT '$run', decided_at FROM taskq.acquire('$run') WHERE allowed;\nCOMMIT;\n",
			'-c', 16, '-j', 2, '-t', 40);
		is($status, 0, "$run: no client was stopped by an error") or diag($err);
		like($out, qr/number of failed transactions: 0 /, "$run: no transaction failed");
		is($node->safe_psql('postgres', "SELECT count(*) FROM grants WHERE run = '$run'"), 300, "$run: exactly 300 of 640 granted");
	}
}
unlike(slurp($node), qr/could not serialize/, 'no 40001 in the log');

sub slurp { return PostgreSQL::Test::Utils::slurp_file(shift->logfile) }

$node->stop;
done_testing();
