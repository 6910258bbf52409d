-- CALL wait() on a reservation: returns when a slot is the caller's, or denied at the time-out.
SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres';
\set SHOW_CONTEXT never
\set A '\'aaaaaaaa-0000-4000-8000-000000000000\''
\set job '\'01010101-0000-4000-8000-000000000000\''
SELECT taskq.register_reservation('one', 1, '1 hour'), taskq.register_reservation('brief', 1, '300 ms'), taskq.register_reservation('keyed', 1, '1 hour', keyed => true),
       taskq.register_reservation('both', 1, '1 hour'), taskq.register_token_bucket('both', 5, 0), taskq.register_token_bucket('limit', 5, 0);

-- A free slot is had at once, with all that acquire_slot answers and notes.
CALL taskq.wait('one', job_id => :job, worker_id => :A) \gset
SELECT :'allowed' AS allowed, :slot_index AS slot_index, :'retry_after' AS retry_after, :'reason' AS reason, :{?remaining} AS remaining;
SELECT fence = :fence AS fence, lease_expires_at = :'lease_expires_at' AS "end", job_id, held_by_worker_id
FROM taskq.reservation_slots JOIN taskq.reservations USING (reservation_id) WHERE name = 'one' AND slot_index = 0;

-- Denied at the time-out, after which nothing is held; zero is a single try.
CALL taskq.wait('one', timeout => '60 ms') \gset
SELECT :'allowed' AS allowed, :'reason' AS reason, :'waited'::interval >= '60 ms' AS waited_long_enough, :'retry_after'::interval BETWEEN '59 min' AND '1 hour' AS honest,
       :{?slot_index} AS slot_index, :{?fence} AS fence, :{?lease_expires_at} AS lease_expires_at;
CALL taskq.wait('one', timeout => '0') \gset
SELECT :'allowed' AS allowed, :'reason' AS reason;
SELECT held FROM taskq.peek_reservation('one');

-- The end of a lease frees the slot.
CALL taskq.wait('brief') \g /dev/null
CALL taskq.wait('brief', timeout => '1 min') \gset
SELECT :'allowed' AS allowed, :'waited'::interval BETWEEN '1 ms' AND '50 s' AS waited;

-- Under a key; from a DO block.
DO $$
DECLARE allowed boolean; remaining float8; waited interval; retry interval; reason text; slot integer; fence bigint; lease_end timestamptz;
BEGIN
    CALL taskq.wait('keyed', 1, 'k', NULL, allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%, slot %, remaining %', reason, slot, remaining;
    CALL taskq.wait('keyed', 1, 'k', '30 ms', allowed, remaining, waited, retry, reason, NULL, NULL, NULL, slot, fence, lease_end);
    RAISE NOTICE '%, slot %', reason, slot;
END $$;
SELECT key, held FROM taskq.peek_reservation('keyed', 'k');

-- What the name means: whoever names a holder means the reservation; else the kind must be said if there are two.
CALL taskq.wait('both');
\echo :LAST_ERROR_SQLSTATE
CALL taskq.wait('both', kind => 'rate_limit') \gset
SELECT :'reason' AS reason, :remaining AS remaining, :{?slot_index} AS slot_index;
CALL taskq.wait('both', worker_id => :A) \gset
SELECT :'reason' AS reason, :{?remaining} AS remaining, :slot_index AS slot_index;
CALL taskq.wait('both', timeout => '0', kind => 'reservation') \gset
SELECT :'reason' AS reason;
CALL taskq.wait('limit', job_id => :job) \gset
SELECT :'reason' AS reason, :remaining AS remaining;

-- Cancelled while it waits: it holds nothing.
SET statement_timeout = '100 ms';
CALL taskq.wait('one');
\echo :LAST_ERROR_SQLSTATE
RESET statement_timeout;
SELECT held FROM taskq.peek_reservation('one');

-- Errors.
CALL taskq.wait('one', 2);
\echo :LAST_ERROR_SQLSTATE
CALL taskq.wait('one', NULL);
\echo :LAST_ERROR_SQLSTATE
CALL taskq.wait('one', key => 'k');
\echo :LAST_ERROR_SQLSTATE
CALL taskq.wait('keyed');
\echo :LAST_ERROR_SQLSTATE
CALL taskq.wait('one', kind => 'lease');
\echo :LAST_ERROR_SQLSTATE
CALL taskq.wait('limit', kind => 'reservation');
\echo :LAST_ERROR_SQLSTATE
BEGIN;
CALL taskq.wait('one');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
SET taskq_ratelimit.test_clock = '1700000000';
CALL taskq.wait('one');
\echo :LAST_ERROR_SQLSTATE
RESET taskq_ratelimit.test_clock;

SELECT count(taskq.drop_reservation(name)::text) FROM taskq.reservations;
SELECT count(taskq.drop_rate_limit(name)::text) FROM taskq.rate_limits;
