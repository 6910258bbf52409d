# Groups (acquire_all) under contention: B049 opposite orders, B066 interrupted, and sums that are exact to the last unit.
# TASKQ_GROUP_SECONDS makes the part with opposite orders longer (5 by default).
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node    = new_server('groups');
my $seconds = $ENV{TASKQ_GROUP_SECONDS} // 5;
sub sql { return $node->safe_psql('postgres', $_[0]); }

# Every deadlock, be it one that a client would survive, is in the server's log.
sub deadlocks { return scalar(() = slurp_file($node->logfile) =~ /deadlock detected/g); }

# Two groups in opposite orders, with slots, so that nobody is refused: no deadlock, and every unit is accounted for.
sql("SELECT taskq.register_token_bucket(n, 10000000, 0) FROM unnest('{a,b,c}'::text[]) AS n;
	SELECT taskq.register_reservation('slots', 50, '1 hour');
	CREATE UNLOGGED TABLE calls (part text, allowed boolean, cost float8)");
my $forth = "SELECT taskq.request('a'), taskq.request('slots'), taskq.request('b'), taskq.request('c')";
my $back  = "SELECT taskq.request('c'), taskq.request('b'), taskq.request('slots'), taskq.request('a')";

sub group_script
{
	my ($part, $requests) = @_;
	$requests =~ s/^SELECT (.*)$/ARRAY[$1]/;
	return "WITH g AS MATERIALIZED (SELECT * FROM taskq.acquire_all($requests)), "
	  . "r AS (INSERT INTO calls SELECT '$part', allowed, 1 FROM g) SELECT taskq.release_all(handle) FROM g WHERE allowed;\n";
}
{
	my $folder = PostgreSQL::Test::Utils::tempdir();
	append_to_file("$folder/forth.sql", group_script('orders', $forth));
	append_to_file("$folder/back.sql",  group_script('orders', $back));
	my ($status, $out, $err) = (0, '', '');
	$status = IPC::Run::run(
		['pgbench', '-n', '-c', 16, '-j', 2, '-T', $seconds, '-f', "$folder/forth.sql", '-f', "$folder/back.sql", $node->connstr('postgres')],
		'>', \$out, '2>', \$err);
	ok($status, 'B049 opposite orders: no client was stopped by an error') or diag($err);
	like($out, qr/number of failed transactions: 0 /, 'B049 no transaction failed');
}
is(deadlocks(), 0, 'B049 no deadlock');
my $done = sql("SELECT count(*) FROM calls WHERE part = 'orders' AND allowed");
cmp_ok($done, '>', 100, "B049 $done groups were taken");
is(sql("SELECT count(*) FROM calls WHERE part = 'orders' AND NOT allowed"), 0, 'B049 nobody was refused: there was enough of everything');
is(sql("SELECT remaining FROM taskq.peek('$_')"), 10000000 - $done, "B049 the sum of $_ is exact") foreach qw(a b c);
is(sql("SELECT held FROM taskq.peek_reservation('slots')"), 0, 'B049 all slots are free');

# Three limits that run dry at different times, while they refill: what each has given is what the allowed groups took, and no refused
# group took anything.
sql("SELECT taskq.register_token_bucket('fast', 300, 200), taskq.register_sliding_window('log', 1500, '1 hour'),
	taskq.register_fixed_window('windows', 100000, '1 day'), taskq.register_reservation('few', 3, '1 hour')");
foreach my $requests (
	"SELECT taskq.request('fast', 2), taskq.request('log'), taskq.request('windows', 3), taskq.request('few')",
	"SELECT taskq.request('windows', 3), taskq.request('few'), taskq.request('log'), taskq.request('fast', 2)")
{
	my ($status, $out, $err) = hammer($node, group_script('dry', $requests), '-M', 'simple', '-c', 12, '-j', 2, '-t', 150);
	is($status, 0, 'running dry: no client was stopped by an error') or diag($err);
}
my $taken = sql("SELECT count(*) FROM calls WHERE part = 'dry' AND allowed");
cmp_ok(sql("SELECT count(*) FROM calls WHERE part = 'dry' AND NOT allowed"), '>', 100, 'running dry: many were refused');
is(sql("SELECT 100000 - remaining FROM taskq.peek('windows')"), 3 * $taken, "the fixed window gave exactly to the $taken groups that got in");
is(sql("SELECT 1500 - remaining FROM taskq.peek('log')"), $taken, 'so did the log');
is(sql('SELECT count(*) FROM taskq.rate_limit_window_entries'), $taken, 'which has one entry for each');
is(sql("SELECT held FROM taskq.peek_reservation('few')"), 0, 'no slot was left behind by a refusal');

# B066: interrupted at any instant, a group counts fully or not at all.
sql("SELECT taskq.register_token_bucket(n, 1000000, 0) FROM unnest('{x,y}'::text[]) AS n; SELECT taskq.register_reservation('s', 1000000, '1 hour')");
my $script = '';
foreach my $i (1 .. 300)
{
	my $timeout = 1 + $i % 5;
	$script .= "SET statement_timeout = '${timeout}ms';\n"
	  . "SELECT count(*) FROM generate_series(1, 40) AS i CROSS JOIN LATERAL taskq.acquire_all(ARRAY[taskq.request('y', 1 + 0 * i), taskq.request('s'), taskq.request('x')]) AS g;\n";
}
my @clients = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 3;
$_->query($script) foreach @clients;
$_->quit foreach @clients;
my $x = sql("SELECT 1000000 - remaining FROM taskq.peek('x')");
is(sql("SELECT 1000000 - remaining FROM taskq.peek('y')"), $x, "B066 $x groups counted fully");
is(sql("SELECT held FROM taskq.peek_reservation('s')"), $x, 'B066 with one slot each');
is(deadlocks(), 0, 'no deadlock anywhere');

$node->stop;
done_testing();
