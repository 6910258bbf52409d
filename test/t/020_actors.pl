# Caps on queues and actors under load: the cap holds while it is changed (B056), nobody is told "full" who could go (B057), interrupted
# calls count fully or not at all (B066), a dead session takes nothing with it (B055), dumps bring caps back in force (B071), and
# tickets are one instant each.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use RateLimitTest;
use Test::More;

my $node = new_server('actors');
sub sql { return $node->safe_psql($_[1] // 'postgres', $_[0]); }

# A worker: takes, does the job, notes from when to when it ran for certain, gives back; each in its own transaction.
sql(q{
	CREATE TABLE jobs (part text, cap_id integer, taken_at timestamptz, done_at timestamptz);
	CREATE TABLE refusals (part text);
	CREATE TABLE caps (position serial, most integer, from_at timestamptz, sure_at timestamptz);
	CREATE PROCEDURE work(part text, actor text, jobs integer, longest float8) LANGUAGE plpgsql AS $$
	DECLARE
		a taskq.actor_decision; cap_id integer; taken_at timestamptz; done integer := 0; tried integer := 0;
	BEGIN
		WHILE done < jobs AND tried < 100 * jobs LOOP
			a := taskq.acquire_for_actor(actor, gen_random_uuid(), gen_random_uuid());
			tried := tried + 1;
			SELECT reservation_id, acquired_at INTO cap_id, taken_at FROM taskq.reservation_slots WHERE fence = (a.handle -> 'slots' -> 0 ->> 'fence')::bigint;
			COMMIT;
			IF NOT a.allowed THEN
				INSERT INTO refusals VALUES (part);
				PERFORM pg_sleep(0.002);
				CONTINUE;
			END IF;
			PERFORM pg_sleep(random() * longest);
			INSERT INTO jobs VALUES (part, cap_id, taken_at, clock_timestamp());
			COMMIT;
			PERFORM taskq.release_for_actor(a.handle);
			COMMIT;
			done := done + 1;
		END LOOP;
	END $$;
	CREATE PROCEDURE change_cap(times integer) LANGUAGE plpgsql AS $$
	DECLARE
		from_at timestamptz; most integer;
	BEGIN
		FOR i IN 1 .. times LOOP
			most := (ARRAY[5, 1, 8, 2, 6, 3, NULL, 4])[1 + i % 8];
			from_at := clock_timestamp();
			PERFORM taskq.set_queue_max_concurrent('changing', most);
			COMMIT;
			INSERT INTO caps (most, from_at, sure_at) VALUES (most, from_at, clock_timestamp());
			COMMIT;
			PERFORM pg_sleep(0.02);
		END LOOP;
	END $$;
	SELECT taskq.register_actor('changing', 'changing'), taskq.set_queue_max_concurrent('changing', 5);
	INSERT INTO caps (most, from_at, sure_at) VALUES (5, '-infinity', '-infinity')});

# The cap is made smaller and larger, lifted and set again, while twelve work. A job may only have begun if, with those that certainly ran
# under the same cap, it was within the largest number that can have been in force.
{
	my $changes = '';
	my $changer = start_hammer($node, \$changes, "CALL change_cap(120);\n", '-M', 'simple', '-c', 1, '-t', 1);
	my ($status, $out, $err) = hammer($node, "CALL work('cap', 'changing', 60, 0.01);\n", '-M', 'simple', '-c', 12, '-j', 2, '-t', 1);
	is($status, 0, 'B056 no worker met an error while the cap changed') or diag($err);
	ok($changer->finish, 'B056 nor did who changed it') or diag($changes);
}
my $broken = q{
	WITH spans AS (SELECT most, from_at, lead(sure_at) OVER (ORDER BY position) AS until_at FROM caps)
	SELECT count(*) FROM jobs AS j WHERE cap_id IS NOT NULL
	AND (SELECT count(*) FROM jobs AS h WHERE h.cap_id = j.cap_id AND h.taken_at <= j.taken_at AND h.done_at > j.taken_at)
	  > (SELECT max(most) %s FROM spans WHERE from_at <= j.taken_at AND (until_at IS NULL OR until_at >= j.taken_at))};
cmp_ok(sql("SELECT count(*) FROM jobs WHERE cap_id IS NOT NULL"), '>', 200, 'B056 many jobs ran under a cap');
is(sql(sprintf $broken, ''), 0, 'B056 never more than the cap, whatever it was');
cmp_ok(sql(sprintf $broken, '- 1'), '>', 0, 'B056 the caps were reached');
is(sql("SELECT coalesce(sum(held), 0) FROM taskq.peek_reservations()"), 0, 'B056 all slots are free');

# As many workers as slots: nobody is refused.
sql("SELECT taskq.register_actor('enough', 'enough'), taskq.set_queue_max_concurrent('enough', 8)");
{
	my ($status, $out, $err) = hammer($node, "CALL work('enough', 'enough', 300, 0);\n", '-M', 'simple', '-c', 8, '-j', 2, '-t', 1);
	is($status, 0, 'B057 no worker met an error') or diag($err);
	is(sql("SELECT count(*) FROM jobs WHERE part = 'enough'"), 2400, 'B057 all jobs ran');
	is(sql("SELECT count(*) FROM refusals WHERE part = 'enough'"), 0, 'B057 nobody was told "full" who could go');
}

# Interrupted at any instant.
sql("SELECT taskq.register_token_bucket('tokens', 1000000, 0), taskq.register_reservation('slots', 1000000, '1 hour'),
	taskq.set_queue_max_concurrent('cut', 1000000, '1 hour'), taskq.register_actor('cut', 'cut', '{tokens}', '{slots}')");
{
	my $script = '';
	foreach my $i (1 .. 200)
	{
		my $timeout = 1 + $i % 5;
		$script .= "SET statement_timeout = '${timeout}ms';\n"
		  . "SELECT count(*) FROM generate_series(1, 40) AS i CROSS JOIN LATERAL taskq.acquire_for_actor(left('cut' || i, 3), NULL, NULL);\n";
	}
	my @clients = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 3;
	$_->query($script) foreach @clients;
	$_->quit           foreach @clients;
	my $counted = sql("SELECT held FROM taskq.peek_reservation('taskq:global:queue:cut')");
	is(sql("SELECT held FROM taskq.peek_reservation('slots')"), $counted, "B066 $counted calls counted fully");
	is(sql("SELECT 1000000 - remaining FROM taskq.peek('tokens')"), $counted, 'B066 in the rate limit, too');
}

# A session that dies in the middle of its transaction has taken nothing; one that died later holds its slot until the lease ends.
sql("SELECT taskq.register_actor('dies', 'dies', '{tokens}'), taskq.set_queue_max_concurrent('dies', 1, '2 seconds')");
{
	my $tokens = sql("SELECT remaining FROM taskq.peek('tokens')");
	my $victim = $node->background_psql('postgres', on_error_stop => 0);
	my $pid    = $victim->query("BEGIN; SELECT pg_backend_pid() FROM taskq.acquire_for_actor('dies', NULL, NULL) WHERE allowed");
	sql("SELECT pg_terminate_backend($pid)");
	poll($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
	is(sql("SELECT held FROM taskq.peek_reservation('taskq:global:queue:dies')"), 0, 'B055 died in its transaction: no slot is held');
	is(sql("SELECT remaining FROM taskq.peek('tokens')"), $tokens, 'B055 and nothing was spent');
	eval { $victim->quit };
	is(sql("SELECT allowed FROM taskq.acquire_for_actor('dies', NULL, NULL)"), 't', 'B055 a session takes the slot and ends');
	is(sql("SELECT allowed, retry_after <= '2 seconds' FROM taskq.acquire_for_actor('dies', NULL, NULL)"), 'f|t', 'B055 others are told when its lease ends');
	ok(poll($node, "SELECT allowed FROM taskq.acquire_for_actor('dies', NULL, NULL)"), 'B055 and get in then, with no clean-up');
}

# Tickets: many are refused at once, at every isolation level, and each gets an instant of its own, exactly one pace after another.
sql("CREATE TABLE tickets (part text, ticket_at timestamptz)");
foreach my $level ('read committed', 'repeatable read', 'serializable')
{
	sql("SELECT taskq.register_token_bucket('$level', 1, 0.001), taskq.register_actor('$level', NULL, '{$level}'), taskq.allow('$level')");
	local $ENV{PGOPTIONS} = '-c default_transaction_isolation=' . $level =~ s/ /\\ /r;
	my ($status, $out, $err) = hammer($node, "WITH t AS MATERIALIZED (SELECT ticket_at FROM taskq.acquire_for_actor('$level', NULL, NULL, ticket => true))"
		  . " INSERT INTO tickets SELECT '$level', ticket_at FROM t;\n", '-M', 'simple', '-c', 10, '-j', 2, '-t', 30);
	is($status, 0, "tickets at $level: no error") or diag($err);
	is( sql("SELECT count(*), count(DISTINCT ticket_at), max(ticket_at) - min(ticket_at) = 299 * interval '1000 seconds' FROM tickets WHERE part = '$level'"),
		'300|300|t', "tickets at $level: one instant each, one pace apart");
}

# Dump and restore: actors and caps travel; a cap is in force where it arrives, whatever was registered before and after it.
sql(q{
	CREATE DATABASE source;
	CREATE DATABASE target});
sql(q{
	CREATE EXTENSION taskq_ratelimit;
	SELECT taskq.set_queue_max_concurrent('first', 2);
	SELECT taskq.register_reservation('slots', 3, '1 minute'), taskq.register_reservation('sessions', 1, '5 minutes', keyed => true);
	SELECT taskq.set_queue_max_concurrent('second', 7, '90 seconds'), taskq.set_queue_max_concurrent('free', NULL);
	SELECT taskq.register_token_bucket('tenants', 5, 1, keyed => true);
	SELECT taskq.register_actor('act', 'first', ARRAY[taskq.keyed('tenants', '$.tenant.id ? (@ != "x")')], ARRAY['slots', taskq.keyed('sessions', '$.s')]);
	SELECT taskq.acquire_for_actor('act', NULL, NULL, '{"tenant": {"id": "t"}, "s": 1}')}, 'source');
my $file = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $file, $node->connstr('source') ], 'B071 dump');
my ($stdout, $stderr) = run_command([ 'pg_restore', '-j', 2, '-d', $node->connstr('target'), $file ]);
is($stderr, '', 'B071 restore says nothing');
foreach my $query ('SELECT * FROM taskq.queues ORDER BY name', 'SELECT * FROM taskq.actors', 'SELECT name, slots, lease, keyed FROM taskq.reservations ORDER BY name',
	'SELECT reservation_id, name FROM taskq.reservations WHERE reservation_id > 0 ORDER BY name')
{
	is(sql($query, 'target'), sql($query, 'source'), "B071 the same: $query");
}
is( sql(q{SELECT string_agg(allowed::text || coalesce(' ' || refused_by, ''), ', ' ORDER BY i) FROM generate_series(1, 3) AS i
	CROSS JOIN LATERAL taskq.acquire_for_actor('act', NULL, NULL, jsonb_build_object('tenant', jsonb_build_object('id', 't'), 's', i))}, 'target'),
	'true, true, false reservation:taskq:global:queue:first', 'B071 the cap is in force, all slots are free');
is( sql("SELECT taskq.register_reservation('new', 1, '1 minute'), taskq.set_queue_max_concurrent('third', 1), taskq.set_queue_max_concurrent('second', 7)", 'target'),
	't|t|f', 'B071 new ones get numbers of their own');
my @scripts = map { my $script = $node->basedir . "/$_.sql"; $node->command_ok([ 'pg_dump', '-f', $script, $node->connstr($_) ], "B071 dump of $_"); slurp_file($script) } qw(source target);
like($scripts[0], qr/\tfirst|first\t2/, 'B071 the cap is in the dump');
unlike($_, qr/taskq:global:queue/, 'B071 as a queue, not as a reservation') foreach @scripts;

$node->stop;
done_testing();
