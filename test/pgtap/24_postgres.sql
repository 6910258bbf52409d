-- Cases from the field: what Postgres does around a limit. Those that need several sessions are in test/specs and test/t.
BEGIN;
\ir helpers.psql
SELECT plan(50);
SELECT clock_starts(1700000000) \g /dev/null

-- What is rolled back is given back.
SELECT taskq.register_token_bucket('b062', 1, 0), taskq.register_sliding_window('b062 swl', 1, '1 min'),
       taskq.register_token_bucket('b062 keyed', 1, 0, keyed => true) \g /dev/null
SAVEPOINT before;
SELECT is(a('b062') || '; ' || a('b062 swl') || '; ' || a('b062 keyed', key => 'new'), 'ok 0; ok 0; ok 0', 'B062 taken');
SELECT is(a('b062') || '; ' || a('b062 swl') || '; ' || a('b062 keyed', key => 'new'), 'deny 0, never; deny 0, 60; deny 0, never', 'B062 and gone');
ROLLBACK TO before;
SELECT is(a('b062') || '; ' || a('b062 swl') || '; ' || a('b062 keyed', key => 'new'), 'ok 0; ok 0; ok 0', 'B062 after ROLLBACK TO they are there again');
SAVEPOINT before;
SELECT taskq.register_token_bucket('b062', 5, 0, replace => true) \g /dev/null
SELECT is(a('b062'), 'ok 3', 'B062 a definition changed');
ROLLBACK TO before;
SELECT is(a('b062'), 'deny 0, never', 'B062 and changed back, with its bucket');
SAVEPOINT before;
SELECT taskq.drop_rate_limit('b062') \g /dev/null
SELECT throws_ok($$SELECT taskq.acquire('b062')$$, '42704', 'rate limit "b062" does not exist', 'B062 a limit dropped');
ROLLBACK TO before;
SELECT is(a('b062'), 'deny 0, never', 'B062 and there again');
SAVEPOINT before;
SELECT taskq.register_token_bucket('b062 new', 5, 0) \g /dev/null
SELECT is(a('b062 new'), 'ok 4', 'B062 a limit registered');
ROLLBACK TO before;
SELECT throws_ok($$SELECT taskq.acquire('b062 new')$$, '42704', 'rate limit "b062 new" does not exist', 'B062 and never there');

-- A read-only transaction looks and does not take. The name of the function is in the message.
SELECT taskq.register_token_bucket('b063', 5, 1), taskq.register_token_bucket('b063 keyed', 5, 1, keyed => true) \g /dev/null
CREATE TABLE helpers.b063 AS SELECT taskq.acquire('b063') AS d;
SAVEPOINT before;
SET LOCAL transaction_read_only = on;
SELECT is(look('b063') || '; ' || p('b063', 4) || '; ' || taskq.remaining('b063') || '; ' || taskq.reset_after('b063'), 'free 4; ok 0; 4; 00:00:01',
          'B063 looking works');
SELECT is(look('b063 keyed', 'never seen') || '; ' || p('b063 keyed', 5, 'never seen'), 'free 5; ok 0', 'B063 also on keys never seen');
SELECT throws_ok(format('SELECT taskq.%s', call), '25006', format('cannot execute taskq.%s() in a read-only transaction', split_part(call, '(', 1)),
                 'B063 ' || split_part(call, '(', 1) || ' is refused')
FROM unnest(ARRAY['acquire(''b063'')', 'allow(''b063'')', 'require(''b063'')', 'reserve(''b063'')', 'charge(''b063'')', 'refund(''b063'', 1)',
                  'refund(d) FROM b063', 'settle(d, 1) FROM b063', 'acquire_many(''{b063}'')', 'acquire_token_bucket(''x'', 1, 1)', 'acquire_leaky_bucket(''x'', 1, 1)',
                  'acquire_sliding_window(''x'', 1, ''1 s'')', 'acquire_fixed_window(''x'', 1, ''1 s'')', 'register_token_bucket(''x'', 1, 1)',
                  'register_leaky_bucket(''x'', 1, 1)', 'register_sliding_window(''x'', 1, ''1 s'')', 'register_fixed_window(''x'', 1, ''1 s'')',
                  'drop_rate_limit(''b063'')', 'reset(''b063'')', 'pause(''b063'', ''infinity'')', 'pause(''b063'', '''', ''infinity'')', 'resume(''b063'')',
                  'resume(''b063'', '''')', 'sweep()', 'evict_idle(''0'')']) AS call;
SELECT throws_ok($$SELECT taskq.acquire_json('b063')$$, '25006', 'cannot execute taskq.acquire() in a read-only transaction', 'B063 acquire_json is refused');
ROLLBACK TO before;
SELECT is(look('b063'), 'free 4', 'B063 nothing has changed');

-- Absurd arguments are SQL errors, and the session goes on in the same backend.
CREATE TABLE helpers.b067 AS SELECT pg_backend_pid() AS pid;
SELECT is(state_of(statement), state, 'B067 ' || left(statement, 60)) FROM (VALUES
    (format('SELECT taskq.acquire(%L)', repeat('n', 1000000)), '22023'),
    (format('SELECT taskq.peek(%L, %L)', 'b063 keyed', repeat('k', 1000000)), '22023'),
    ('SELECT taskq.acquire_many(array_fill(''b063''::text, ARRAY[100000]), array_fill(1e300::float8, ARRAY[100000]))', '22023'),
    ('SELECT taskq.acquire_many(array_fill(NULL::text, ARRAY[2]))', '22004'),
    ('SELECT taskq.refund(NULL::taskq.rate_limit_decision)', '22004'),
    ('SELECT taskq.http_headers(ROW(NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL)::taskq.rate_limit_decision)', '22004'),
    ('SELECT taskq.register_fixed_window(''x'', 9223372036854775807, ''178000000 years'')', '22023'),
    ('SELECT taskq.register_fixed_window(''x'', 1, interval ''2147483647 days'')', '22023'),
    ('SELECT taskq.register_token_bucket(''x'', 1.7976931348623157e308, 1.7976931348623157e308)', '22023'),
    ('SELECT taskq.register_token_bucket(''x'', 5e-324, 5e-324)', '22023'),
    ('SELECT taskq.charge(''b063'', 1.7976931348623157e308)', 'none')) AS v (statement, state);
SELECT is((SELECT pid FROM b067), pg_backend_pid(), 'B067 the same backend');

SELECT finish();
ROLLBACK;
