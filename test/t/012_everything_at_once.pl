# Everything at once on a few keys: acquire, refund of decisions, settle, charge, reset, pause, changed definitions, sweep and
# eviction, at READ COMMITTED and at REPEATABLE READ (sweep always at READ COMMITTED). No call fails, no session dies, and the
# tables agree with each other afterwards.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('all');
$node->safe_psql('postgres', "SELECT taskq.register_token_bucket('bucket', 20, 100, keyed => true);
	SELECT taskq.register_sliding_window('log', 20, '100 ms', keyed => true);
	SELECT taskq.register_sliding_window('log of all', 20, '100 ms');
	CREATE TABLE decisions (d taskq.rate_limit_decision, id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);");

my $key = "\\set k random(1, 3)\n";
my %script = (
	acquire => $key . "SELECT taskq.acquire('bucket', key => 'k' || :k), taskq.acquire('log', key => 'k' || :k), taskq.acquire('log of all', 2);\n",
	refund  => $key . "SELECT taskq.refund(a) FROM taskq.acquire('log', 2, 'k' || :k) a;\nSELECT taskq.refund(a) FROM taskq.acquire('bucket', 2, 'k' || :k) a;\n"
	  . "SELECT taskq.settle(a, 1) FROM taskq.acquire('log', 3, 'k' || :k) a WHERE allowed;\nSELECT taskq.refund('log of all', 1);\n",
	later   => $key . "INSERT INTO decisions SELECT taskq.acquire('log', 1, 'k' || :k);\n\\set o random(0, 5)\n"
	  . "SELECT taskq.refund(d) FROM (SELECT d FROM decisions ORDER BY id DESC LIMIT 1 OFFSET :o) last;\n",
	rollback => $key . "BEGIN;\nSELECT taskq.charge('bucket', 1, 'k' || :k), taskq.acquire('log', 2, 'k' || :k);\nROLLBACK;\n",
	many     => "SELECT taskq.acquire_many(ARRAY['log', 'bucket', 'log', 'bucket'], keys => ARRAY['k3', 'k2', 'k1', 'k1']);\n",
	look     => "SELECT count(*) FROM taskq.rate_limit_status;\nSELECT taskq.peek('log', 'k1'), taskq.preview('log of all', 5);\n",
	reset    => $key . "SELECT taskq.reset('log', 'k' || :k), taskq.reset('log of all');\nSELECT taskq.pause('bucket', 'k' || :k, now());\nSELECT taskq.resume('bucket', 'k' || :k);\n",
	sweep    => "BEGIN ISOLATION LEVEL READ COMMITTED;\nSELECT taskq.sweep();\nEND;\nSELECT taskq.evict_idle('1 ms');\n",
	replace  => "\\set n random(5, 40)\nSELECT taskq.register_sliding_window('log', :n, '100 ms', keyed => true, replace => true);\n"
	  . "SELECT taskq.register_token_bucket('bucket', :n, 100, keyed => true, replace => true, inherit => 'proportional');\n"
	  . "SELECT taskq.register_sliding_window('log of all', :n, '100 ms', style => CASE :n % 3 WHEN 0 THEN 'gcra' ELSE 'log' END, replace => true);\n");
my %weight = (acquire => 40, refund => 15, later => 10, rollback => 5, many => 10, look => 5, reset => 3, sweep => 3, replace => 3);

my $folder = PostgreSQL::Test::Utils::tempdir();
my @files;
foreach my $name (sort keys %script)
{
	append_to_file("$folder/$name.sql", $script{$name});
	push @files, '-f', "$folder/$name.sql\@$weight{$name}";
}
foreach my $level ('read committed', 'repeatable read')
{
	local $ENV{PGOPTIONS} = '-c default_transaction_isolation=' . ($level =~ s/ /\\ /r);
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'pgbench', '-n', '-M', 'simple', '-h', $node->host, '-p', $node->port, '-c', 12, '-j', 2, '-T', 4, @files, 'postgres' ], '>', \$out, '2>', \$err);
	is($? >> 8, 0, "$level: no client was stopped by an error") or diag($err);
	my ($failed) = $out =~ /number of failed transactions: (\d+)/;
	is($failed, 0, "$level: no transaction failed");
	is($node->safe_psql('postgres', "SELECT count(*) FROM taskq.rate_limit_buckets b WHERE bucket_id <> 0 AND used - tail <>
			(SELECT coalesce(sum(cost), 0) FROM taskq.rate_limit_window_entries e WHERE e.bucket_id = b.bucket_id)"),
		0, "$level: each log has the entries that its state counts");
	is($node->safe_psql('postgres', "SELECT count(*) FROM (SELECT upto - cost - lag(upto) OVER (PARTITION BY bucket_id ORDER BY upto) AS gap
			FROM taskq.rate_limit_window_entries JOIN taskq.rate_limit_buckets USING (bucket_id)) g WHERE gap <> 0"),
		0, "$level: without gaps or overlaps");
	is($node->safe_psql('postgres', "SELECT count(*) FROM taskq.rate_limit_buckets b JOIN taskq.rate_limits l USING (limit_id) WHERE b.version < l.version AND NOT EXISTS
			(SELECT FROM taskq.rate_limit_versions v WHERE v.limit_id = b.limit_id AND v.version = b.version)"),
		0, "$level: no former definition is missing");
	is($node->safe_psql('postgres', "SELECT count(*) FROM taskq.rate_limit_status WHERE remaining < 0 OR remaining > coalesce(capacity, \"limit\")"), 0, "$level: nothing is out of range");
}
my $log = slurp_file($node->logfile);
is(join("\n", $log =~ /^.*(?:ERROR|PANIC|FATAL|terminated by signal).*$/mg), '', 'nothing but normal traffic in the log');

$node->stop;
done_testing();
