# Statistics of a preloaded library: every decision is counted once, under its reason, whoever makes it and however; counts survive
# rollbacks, but not a restart; what is dropped makes room.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use RateLimitTest;
use Test::More;

my $worker = "'aaaaaaaa-0000-4000-8000-000000000000'";
my $node = new_server('stats', standby => 1, conf => "shared_preload_libraries = 'taskq_ratelimit'\nrestart_after_crash = on\nmax_prepared_transactions = 2\n");

sub sql { return $node->safe_psql('postgres', join('; ', @_)); }

# The counts that are not 0, such as "allowed 2, denied 1, limited 1".
sub counts
{
	my ($name, $kind) = @_;
	return sql("SELECT string_agg(key || ' ' || value, ', ' ORDER BY position) FROM taskq.rate_limit_stats AS s,
		jsonb_each_text(to_jsonb(s) - '{kind,name,last_denied_at,stats_reset}'::text[]) AS e,
		array_position('{allowed,denied,limited,paused,full,too_many_keys,lock_timeout,shadow}'::text[], key) AS position
		WHERE name = '$name' AND kind = '" . ($kind // 'rate_limit') . "' AND value <> '0'");
}

# Many clients: not one decision is lost or counted twice.
sql("SELECT taskq.register_token_bucket('hot', 1000, 0), taskq.register_token_bucket('keyed', 5, 0, keyed => true),
	taskq.register_reservation('slots', 3, '1 hour')");
my ($status, $out, $err) = hammer($node, "\\set key random(1, 20)\nSELECT taskq.allow('hot');\nSELECT FROM taskq.acquire('keyed', key => :key::text);\n"
	. "SELECT FROM taskq.acquire_slot('slots', NULL, NULL);\n", '-c', 16, '-j', 2, '-t', 200);
is($status, 0, 'many clients at once') or diag $err;
is(counts('hot'),   'allowed 1000, denied 2200, limited 2200', 'every call is counted');
is(counts('keyed'), 'allowed 100, denied 3100, limited 3100',  'of all keys together');
is(counts('slots', 'reservation'), 'allowed 3, denied 3197, full 3197', 'and slots');
is(sql('SELECT last_denied_at > clock_timestamp() - interval \'1 minute\', stats_reset IS NULL FROM taskq.rate_limit_stats WHERE name = \'hot\''), 't|t',
	'the last denial was just now');

# Each function that decides, and none that does not.
sql("SELECT taskq.register_token_bucket('each', 1000, 1)");
my $decisions = 0;
foreach my $call ("taskq.acquire('each')", "taskq.allow('each')", "taskq.acquire_json('each')", "taskq.require('each')", "taskq.reserve('each')",
	"taskq.acquire_many('{each}')", "taskq.acquire_all(ARRAY[taskq.request('each')])")
{
	sql("SELECT FROM $call");
	is(counts('each'), 'allowed ' . ++$decisions, $call);
}
sql("CALL taskq.wait('each')");
is(counts('each'), 'allowed ' . ++$decisions, 'CALL taskq.wait');
sql("SELECT FROM taskq.preview('each'), taskq.peek('each'), taskq.remaining('each'), taskq.explain_acquire(ARRAY[taskq.request('each')]), taskq.charge('each'),
	taskq.refund('each', 1), taskq.reset('each')");
is(counts('each'), "allowed $decisions", 'looking, charging and giving back are no decisions');
foreach my $call ("token_bucket('ad hoc', 1, 0)", "leaky_bucket('ad hoc lb', 1, 0)", "sliding_window('ad hoc sw', 1, '1 day')", "fixed_window('ad hoc fw', 1, '1 day')")
{
	sql("SELECT FROM taskq.acquire_$call", "SELECT FROM taskq.acquire_$call");
	my ($name) = $call =~ /'(.*?)'/;
	is(counts($name), 'allowed 1, denied 1, limited 1', "acquire_$call");
}
$node->psql('postgres', "SELECT taskq.require('ad hoc')");
is(counts('ad hoc'), 'allowed 1, denied 2, limited 2', 'require that raises');

# Every reason.
sql("SELECT taskq.register_token_bucket('paused', 1, 0)", "SELECT taskq.pause('paused', 'infinity')", "SELECT taskq.allow('paused')");
is(counts('paused'), 'denied 1, paused 1', 'paused');
sql("SELECT taskq.register_token_bucket('shadow', 1, 0, shadow => true)", "SELECT taskq.allow('shadow') FROM generate_series(1, 3)");
is(counts('shadow'), 'allowed 3, shadow 2', 'shadow: allowed, and would have been denied');
is(sql("SELECT last_denied_at IS NULL FROM taskq.rate_limit_stats WHERE name = 'shadow'"), 't', 'and not denied');
sql("SELECT taskq.register_token_bucket('few', 1, 0, keyed => true, max_keys => 1)", "SELECT taskq.allow('few', 1, k) FROM unnest('{a,b}'::text[]) AS k");
is(counts('few'), 'allowed 1, denied 1, too_many_keys 1', 'too_many_keys');
sql("SELECT taskq.register_reservation('few', 1, '1 hour', keyed => true, max_keys => 1)",
	"SELECT FROM unnest('{a,b}'::text[]) AS k, taskq.acquire_slot('few', NULL, NULL, k)");
is(counts('few', 'reservation'), 'allowed 1, denied 1, too_many_keys 1', 'too_many_keys of a reservation with the name of a limit');
is(counts('few'), 'allowed 1, denied 1, too_many_keys 1', 'and not of the limit');
sql("SELECT taskq.register_token_bucket('busy', 5, 0)");
my $other = $node->background_psql('postgres', on_error_stop => 1);
$other->query_safe("BEGIN; SELECT taskq.allow('busy')");
sql("SET taskq_ratelimit.lock_timeout = 1", "SELECT taskq.allow('busy')");
is(counts('busy'), 'allowed 1, denied 1, lock_timeout 1', 'lock_timeout; the open transaction of the other is counted as well');
$other->query_safe('ROLLBACK');
is(counts('busy'), 'allowed 1, denied 1, lock_timeout 1', 'and stays counted when it is rolled back');
sql("SELECT taskq.register_reservation('held', 1, '1 hour')", "CALL taskq.wait('held')", "CALL taskq.wait('held', timeout => '100 ms')");
is(counts('held', 'reservation'), 'allowed 1, denied 1, full 1', 'wait for a slot: once per answer, however often it tries');
sql("SELECT taskq.register_fixed_window('window', 1, '1 day')", "CALL taskq.wait('window')", "CALL taskq.wait('window', timeout => '10 ms')");
is(counts('window'), 'allowed 1, denied 1, limited 1', 'wait for a limit');
sql("SELECT FROM taskq.acquire_many('{window,each,window}')");
is(counts('window'), 'allowed 1, denied 3, limited 3', 'acquire_many: each element');

# Groups: all are allowed, or those who refuse are denied.
sql("SELECT taskq.register_token_bucket('g' || i, 4, 0) FROM generate_series(1, 2) AS i", "SELECT taskq.register_reservation('gs', 2, '1 hour')");
my $group = "SELECT (taskq.acquire_all(ARRAY[taskq.request('g1'), taskq.request('g1'), taskq.request('g2'), taskq.request('gs')])).allowed";
sql($group, $group);
is(join(' | ', counts('g1'), counts('g2'), counts('gs', 'reservation')), 'allowed 4 | allowed 2 | allowed 2', 'groups: each request');
is(sql($group), 'f', 'a refused group');
is(join(' | ', counts('g1'), counts('g2'), counts('gs', 'reservation')), 'allowed 4, denied 2, limited 2 | allowed 2 | allowed 2, denied 1, full 1',
	'of a refused group, those who refused');

# An interrupted wait has no answer. One that was cancelled takes nothing, and counts nothing.
sql("SELECT taskq.register_token_bucket('slow', 1, 0.01)", "SELECT taskq.allow('slow')");
$node->psql('postgres', "SET statement_timeout = 200; CALL taskq.wait('slow')");
is(counts('slow'), 'allowed 1', 'an interrupted wait is not counted');

# A rolled back transaction, a savepoint, a prepared transaction.
sql("SELECT taskq.register_token_bucket('undone', 10, 0)");
sql('BEGIN', "SELECT taskq.allow('undone')", 'SAVEPOINT s', "SELECT taskq.allow('undone')", 'ROLLBACK TO s', 'ROLLBACK');
is(counts('undone'), 'allowed 2', 'decisions that were rolled back were made');
sql('BEGIN', "SELECT taskq.allow('undone')", "PREPARE TRANSACTION 'p'");
sql("ROLLBACK PREPARED 'p'");
is(counts('undone'), 'allowed 3', 'prepared ones, too');

# Changing a definition keeps the counts; a new limit under an old name has its own.
sql("SELECT taskq.register_token_bucket('undone', 20, 0, replace => true)");
is(counts('undone'), 'allowed 3', 'a changed definition goes on counting');
sql('BEGIN', "SELECT taskq.drop_rate_limit('undone')", 'SELECT count(*) FROM taskq.rate_limit_stats', 'SELECT FROM taskq.sweep()', 'ROLLBACK');
is(counts('undone'), 'allowed 3', 'a drop that was rolled back, with the statistics read in between');
$other->query_safe("BEGIN; SELECT taskq.drop_rate_limit('undone')");
is(counts('undone'), 'allowed 3', 'one that is not committed');
$other->query_safe("SELECT taskq.register_token_bucket('undone', 1, 0); SELECT taskq.allow('undone')");
sql('SELECT count(*) FROM taskq.rate_limit_stats');
$other->query_safe('COMMIT');
is(counts('undone'), 'allowed 1', 'registered anew and counted before it is committed, while others read');

# Resetting.
sql("SELECT taskq.reset_stats('few', 'rate_limit')");
is(join(' | ', counts('few'), counts('few', 'reservation')), ' | allowed 1, denied 1, too_many_keys 1', 'reset of one kind');
is(sql("SELECT kind, stats_reset > clock_timestamp() - interval '1 minute', last_denied_at IS NULL FROM taskq.rate_limit_stats WHERE name = 'few' ORDER BY kind"),
	"rate_limit|t|t\nreservation||f", 'says when');
sql("SELECT taskq.reset_stats('few')");
is(counts('few', 'reservation'), '', 'reset of one name, of both kinds');
sql("SELECT taskq.reset_stats(kind => 'reservation')");
is(join(' | ', counts('slots', 'reservation'), counts('hot')), ' | allowed 1000, denied 2200, limited 2200', 'reset of all of one kind');
$node->safe_psql('postgres', 'CREATE DATABASE second');
$node->safe_psql('second', "CREATE EXTENSION taskq_ratelimit; SELECT taskq.register_token_bucket('hot', 5, 0); SELECT taskq.allow('hot')");
sql('SELECT taskq.reset_stats()');
is(sql('SELECT sum(allowed) + sum(denied) FROM taskq.rate_limit_stats'), 0, 'reset of everything');
is($node->safe_psql('second', "SELECT allowed FROM taskq.rate_limit_stats"), 1, 'in this database only');
sql("BEGIN READ ONLY", "SELECT taskq.reset_stats('hot')", 'COMMIT');
foreach (["'nobody'", '42704'], ["'hot', 'reservation'", '42704'], ["'slots', 'rate_limit'", '42704'], ["'hot', 'thing'", '22023'], ["kind => 'thing'", '22023'], ["''", '22023'])
{
	my ($arguments, $state) = @$_;
	my (undef, undef, $message) = $node->psql('postgres', "\\set VERBOSITY sqlstate\nSELECT taskq.reset_stats($arguments)");
	like($message, qr/ERROR:  $state/, "reset_stats($arguments)");
}

# What is dropped makes room: limits, an extension, a database.
sub entries { return sql('DO $$ BEGIN PERFORM taskq.decision_counts(); END $$', 'SELECT entries FROM taskq.stats_info()'); }
my $before = entries();
sql("SELECT taskq.drop_rate_limit('hot')", "SELECT taskq.drop_reservation('slots')");
is(entries(), $before - 2, 'entries of what was dropped go');
$node->safe_psql('second', "DROP EXTENSION taskq_ratelimit; DROP SCHEMA IF EXISTS taskq; CREATE EXTENSION taskq_ratelimit;
	SELECT taskq.register_token_bucket('new', 5, 0)");
is($node->safe_psql('second', "SELECT limit_id, allowed FROM taskq.rate_limits JOIN taskq.rate_limit_stats USING (name)"), '1|0',
	'after CREATE EXTENSION the same number is another limit');
$node->safe_psql('second', "SELECT taskq.allow('new')");
is(entries(), $before - 2, 'a limit in another database has an entry');
$node->safe_psql('postgres', 'DROP DATABASE second');
is(entries(), $before - 3, 'until that is dropped');

# Reading and counting, registering and dropping at once.
my $hammered = '';
my $readers = start_hammer($node, \$hammered, "SELECT count(*) FROM taskq.rate_limit_stats;\nSELECT FROM taskq.stats_info();\n", '-c', 2, '-t', 200);
my $script = "\\set n random(1, 1000000000)\nSELECT taskq.register_token_bucket('t' || :client_id || ' ' || :n, 5, 0);\nSELECT taskq.allow('t' || :client_id || ' ' || :n);\n"
	. "SELECT taskq.allow('each');\nSELECT taskq.drop_rate_limit('t' || :client_id || ' ' || :n);\n";
my $seen = sql("SELECT allowed FROM taskq.rate_limit_stats WHERE name = 'each'");
($status, $out, $err) = hammer($node, $script, '-c', 6, '-j', 2, '-t', 50);
is($status, 0, 'limits come and go') or diag $err;
ok($readers->finish, 'while others read') or diag $hammered;
is(sql("SELECT allowed FROM taskq.rate_limit_stats WHERE name = 'each'") - $seen, 300, 'and those that stay are counted');
is(entries(), $before - 3, 'and nothing is left of the others');

# Dumps have no statistics. A crash and a restart begin anew.
unlike($node->safe_psql('postgres', "SELECT string_agg(c::regclass::text, ' ') FROM pg_extension, unnest(extconfig) AS c WHERE extname = 'taskq_ratelimit'"), qr/stats/,
	'statistics are not in dumps');
$other->quit;
my $victim = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $victim->query_safe("SELECT pg_backend_pid()");
$victim->query_safe("SELECT taskq.allow('each')");
kill 'KILL', $pid;
ok($node->poll_query_until('postgres', "SELECT coalesce(sum(allowed + denied), 0) = 0 FROM taskq.rate_limit_stats"), 'after the crash of a server process they begin at 0');
eval { $victim->quit };
sql("SELECT taskq.allow('each')");
is(counts('each'), 'allowed 1', 'and count');
$node->restart;
is(counts('each'), '', 'after a restart, too');

# A standby counts for itself, and decides nothing.
sql("SELECT taskq.allow('each')");
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('stats_standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT allowed, denied FROM taskq.rate_limit_stats WHERE name = 'each'; SELECT taskq.reset_stats('each')"), "0|0\n", 'a standby');
$standby->promote;
is($standby->safe_psql('postgres', "SELECT taskq.allow('each'); SELECT allowed, denied FROM taskq.rate_limit_stats WHERE name = 'each'"), "t\n1|0", 'which is promoted');
$standby->stop;

# A small table. What has no room is not known, and says so.
$node->append_conf('postgresql.conf', 'taskq_ratelimit.stats_entries = 2');
$node->restart;
sql("SELECT taskq.allow('each'), taskq.allow('window'), taskq.allow('window')", "SELECT taskq.allow('busy')", "SELECT taskq.allow('busy')");
is(sql('SELECT * FROM taskq.stats_info()'), '2|2|2', 'two entries of two, two decisions without');
is(join(' | ', counts('each'), counts('window')), 'allowed 1 | denied 2, limited 2', 'those that have one are counted');
is(sql("SELECT allowed IS NULL, denied IS NULL FROM taskq.rate_limit_stats WHERE name = 'busy'"), 't|t', 'the others are not known');
sql("SELECT taskq.drop_rate_limit('window')", 'SELECT FROM taskq.sweep()', "SELECT taskq.allow('busy')");
is(counts('busy'), 'allowed 1', 'a sweep makes room, too');
$node->append_conf('postgresql.conf', 'taskq_ratelimit.stats_entries = 0');
$node->restart;
sql("SELECT taskq.allow('each')");
is(sql("SELECT count(*), count(allowed) FROM taskq.rate_limit_stats WHERE name = 'each'"), '1|0', 'switched off: not known');
my (undef, undef, $message) = $node->psql('postgres', 'SELECT taskq.reset_stats()');
like($message, qr/no statistics are kept.*stats_entries is 0.*restart the server/s, 'and nothing to reset');
$node->stop;
done_testing();
