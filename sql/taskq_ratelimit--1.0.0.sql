\echo Use "CREATE EXTENSION taskq_ratelimit" to load this file. \quit

-- Tables

CREATE SEQUENCE taskq.rate_limit_id AS integer;

CREATE TABLE taskq.rate_limits (
    limit_id          integer     NOT NULL DEFAULT pg_catalog.nextval('taskq.rate_limit_id') PRIMARY KEY,
    name              text        COLLATE "C" NOT NULL,
    version           integer     NOT NULL DEFAULT 1,
    kind              text        NOT NULL CHECK (kind IN ('token_bucket', 'leaky_bucket', 'sliding_window', 'fixed_window')),
    style             text        CHECK (style IN ('log', 'gcra', 'counter')),
    capacity          float8,
    refill_per_second float8,
    max_requests      bigint,
    period            interval,
    anchor            timestamptz,
    keyed             boolean     NOT NULL,
    storage           text        NOT NULL CHECK (storage IN ('table')),
    shadow            boolean     NOT NULL,
    ad_hoc            boolean     NOT NULL DEFAULT false,
    paused_until      timestamptz NOT NULL DEFAULT '-infinity',
    scale             smallint    NOT NULL,
    units             bigint      NOT NULL,
    rate_n            bigint      NOT NULL,
    rate_d            bigint      NOT NULL,
    window_us         bigint      NOT NULL,
    tick_us           bigint      NOT NULL,
    changed_at        timestamptz NOT NULL,
    created_at        timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    max_keys          integer     CHECK (max_keys >= 1),
    CONSTRAINT rate_limits_name_key UNIQUE (name)
);
ALTER SEQUENCE taskq.rate_limit_id OWNED BY taskq.rate_limits.limit_id;

CREATE TABLE taskq.rate_limit_versions (
    limit_id   integer     NOT NULL,
    version    integer     NOT NULL,
    kind       text        NOT NULL,
    style      text,
    anchor     timestamptz,
    scale      smallint    NOT NULL,
    units      bigint      NOT NULL,
    rate_n     bigint      NOT NULL,
    rate_d     bigint      NOT NULL,
    window_us  bigint      NOT NULL,
    tick_us    bigint      NOT NULL,
    inherit    text        NOT NULL,
    ended_at   timestamptz NOT NULL,
    PRIMARY KEY (limit_id, version)
);

-- The order of the columns is the layout that src/bucket_row.hpp reads in place.
CREATE TABLE taskq.rate_limit_buckets (
    limit_id     integer     NOT NULL,
    version      integer     NOT NULL,
    bucket_id    bigint      NOT NULL,
    at           timestamptz NOT NULL,
    window_start timestamptz NOT NULL,
    used         bigint      NOT NULL,
    previous     bigint      NOT NULL,
    tail         bigint      NOT NULL,
    newest       timestamptz NOT NULL,
    paused_until timestamptz NOT NULL,
    key          text        COLLATE "C" NOT NULL,
    PRIMARY KEY (limit_id, key)
) WITH (fillfactor = 50, vacuum_truncate = false, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE SEQUENCE taskq.rate_limit_bucket_id AS bigint CACHE 1;

CREATE TABLE taskq.rate_limit_window_entries (
    bucket_id  bigint      NOT NULL,
    upto       bigint      NOT NULL,
    cost       bigint      NOT NULL,
    at         timestamptz NOT NULL,
    request_id uuid        NOT NULL,
    PRIMARY KEY (bucket_id, upto)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE taskq.rate_limit_refunds (
    limit_id    integer     NOT NULL,
    key         text        COLLATE "C" NOT NULL,
    decided_at  timestamptz NOT NULL,
    remaining   float8      NOT NULL,
    useless_at  timestamptz NOT NULL,
    PRIMARY KEY (limit_id, key, decided_at, remaining)
);

CREATE SEQUENCE taskq.reservation_id AS integer;

CREATE TABLE taskq.reservations (
    reservation_id integer     NOT NULL DEFAULT pg_catalog.nextval('taskq.reservation_id') PRIMARY KEY,
    name           text        COLLATE "C" NOT NULL,
    version        integer     NOT NULL DEFAULT 1,
    slots          integer     NOT NULL CHECK (slots >= 1),
    lease          interval    NOT NULL,
    lease_us       bigint      NOT NULL CHECK (lease_us > 0),
    keyed          boolean     NOT NULL,
    changed_at     timestamptz NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    max_keys       integer     CHECK (max_keys >= 1),
    CONSTRAINT reservations_name_key UNIQUE (name)
);
ALTER SEQUENCE taskq.reservation_id OWNED BY taskq.reservations.reservation_id;

-- The order of the columns is the layout that src/slot_row.hpp reads in place.
CREATE TABLE taskq.reservation_slots (
    reservation_id    integer     NOT NULL,
    slot_index        integer     NOT NULL,
    fence             bigint      NOT NULL DEFAULT 0,
    acquired_at       timestamptz NOT NULL DEFAULT '-infinity',
    renewed_at        timestamptz NOT NULL DEFAULT '-infinity',
    lease_expires_at  timestamptz NOT NULL DEFAULT '-infinity',
    job_id            uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    held_by_worker_id uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    surplus           boolean     NOT NULL DEFAULT false,
    key               text        COLLATE "C" NOT NULL,
    PRIMARY KEY (reservation_id, key, slot_index)
) WITH (fillfactor = 10, vacuum_truncate = false, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE SEQUENCE taskq.reservation_fence AS bigint CACHE 1;

-- Numbers the reservations that cap queues, from -1 downwards.
CREATE SEQUENCE taskq.queue_cap_id AS integer;

CREATE TABLE taskq.queues (
    name           text        COLLATE "C" NOT NULL CHECK (pg_catalog.octet_length(name) BETWEEN 1 AND 236) PRIMARY KEY,
    max_concurrent integer     CHECK (max_concurrent BETWEEN 1 AND 1000000),
    lease          interval    NOT NULL DEFAULT '1 minute',
    updated_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);

-- The order of the columns is the one in which src/actors.cpp reads them.
CREATE TABLE taskq.actors (
    actor            text        COLLATE "C" NOT NULL PRIMARY KEY,
    queue            text        COLLATE "C",
    reservations     text[]      NOT NULL,
    reservation_keys jsonpath[]  NOT NULL CHECK (pg_catalog.cardinality(reservation_keys) = pg_catalog.cardinality(reservations)),
    rate_limits      text[]      NOT NULL,
    rate_limit_keys  jsonpath[]  NOT NULL CHECK (pg_catalog.cardinality(rate_limit_keys) = pg_catalog.cardinality(rate_limits)),
    changed_at       timestamptz NOT NULL
);

CREATE TABLE taskq.actor_tickets (
    kind        text        COLLATE "C" NOT NULL,
    resource_id integer     NOT NULL,
    key         text        COLLATE "C" NOT NULL,
    next_at     timestamptz NOT NULL,
    PRIMARY KEY (kind, resource_id, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

SELECT pg_catalog.pg_extension_config_dump('taskq.rate_limit_id', '');
SELECT pg_catalog.pg_extension_config_dump('taskq.rate_limits', '');
SELECT pg_catalog.pg_extension_config_dump('taskq.reservation_id', '');
SELECT pg_catalog.pg_extension_config_dump('taskq.reservation_fence', '');
-- Caps of queues are made by the trigger on taskq.queues, on the way back, too.
SELECT pg_catalog.pg_extension_config_dump('taskq.reservations', 'WHERE reservation_id > 0');
SELECT pg_catalog.pg_extension_config_dump('taskq.queues', '');
SELECT pg_catalog.pg_extension_config_dump('taskq.actors', '');

COMMENT ON TABLE taskq.rate_limits IS 'the limits: one row per definition; written by the register_ functions, pause, resume and drop_rate_limit';
COMMENT ON TABLE taskq.rate_limit_versions IS 'former definitions of limits, for buckets whose state was written under them';
COMMENT ON TABLE taskq.rate_limit_buckets IS 'the state of each limit and key; not dumped';
COMMENT ON TABLE taskq.rate_limit_window_entries IS 'admitted calls of sliding windows of style log; not dumped';
COMMENT ON TABLE taskq.rate_limit_refunds IS 'decisions that were refunded or settled, so that it happens once; not dumped';
COMMENT ON SEQUENCE taskq.rate_limit_id IS 'numbers limits';
COMMENT ON SEQUENCE taskq.rate_limit_bucket_id IS 'numbers the buckets that have window entries';

COMMENT ON COLUMN taskq.rate_limits.limit_id IS 'number of the limit; part of the key of its buckets';
COMMENT ON COLUMN taskq.rate_limits.name IS 'name of the limit, unique';
COMMENT ON COLUMN taskq.rate_limits.version IS 'counts the definitions that this name has had';
COMMENT ON COLUMN taskq.rate_limits.kind IS 'token_bucket, leaky_bucket, sliding_window or fixed_window';
COMMENT ON COLUMN taskq.rate_limits.style IS 'of a sliding window: log, gcra or counter';
COMMENT ON COLUMN taskq.rate_limits.capacity IS 'of a bucket: what it holds';
COMMENT ON COLUMN taskq.rate_limits.refill_per_second IS 'of a bucket: what comes back per second';
COMMENT ON COLUMN taskq.rate_limits.max_requests IS 'of a window: how much it admits';
COMMENT ON COLUMN taskq.rate_limits.period IS 'of a window: its length';
COMMENT ON COLUMN taskq.rate_limits.anchor IS 'an instant at which a window starts; NULL: the creation of the bucket';
COMMENT ON COLUMN taskq.rate_limits.keyed IS 'true: one bucket per key';
COMMENT ON COLUMN taskq.rate_limits.storage IS 'where buckets live';
COMMENT ON COLUMN taskq.rate_limits.shadow IS 'true: decides, but lets everybody through';
COMMENT ON COLUMN taskq.rate_limits.ad_hoc IS 'true: made by an acquire_ function that carries its definition';
COMMENT ON COLUMN taskq.rate_limits.paused_until IS 'all keys are denied until then; -infinity: not paused';
COMMENT ON COLUMN taskq.rate_limits.scale IS 'amounts are counted in units of 10^-scale';
COMMENT ON COLUMN taskq.rate_limits.units IS 'capacity or max_requests in units';
COMMENT ON COLUMN taskq.rate_limits.rate_n IS 'refill: rate_n / rate_d units per microsecond';
COMMENT ON COLUMN taskq.rate_limits.rate_d IS 'see rate_n';
COMMENT ON COLUMN taskq.rate_limits.window_us IS 'length of the window in microseconds; 0 for buckets';
COMMENT ON COLUMN taskq.rate_limits.tick_us IS 'style counter: resolution of elapsed time, microseconds';
COMMENT ON COLUMN taskq.rate_limits.changed_at IS 'when the definition was last changed';
COMMENT ON COLUMN taskq.rate_limits.created_at IS 'when the name was first registered';
COMMENT ON COLUMN taskq.rate_limits.max_keys IS 'how many keys it may have; NULL: as many as taskq_ratelimit.max_keys_per_limit says';
COMMENT ON COLUMN taskq.rate_limit_versions.limit_id IS 'the limit, see rate_limits';
COMMENT ON COLUMN taskq.rate_limit_versions.version IS 'number of this former definition';
COMMENT ON COLUMN taskq.rate_limit_versions.kind IS 'as in rate_limits';
COMMENT ON COLUMN taskq.rate_limit_versions.style IS 'as in rate_limits';
COMMENT ON COLUMN taskq.rate_limit_versions.anchor IS 'as in rate_limits';
COMMENT ON COLUMN taskq.rate_limit_versions.scale IS 'as in rate_limits';
COMMENT ON COLUMN taskq.rate_limit_versions.units IS 'as in rate_limits';
COMMENT ON COLUMN taskq.rate_limit_versions.rate_n IS 'as in rate_limits';
COMMENT ON COLUMN taskq.rate_limit_versions.rate_d IS 'as in rate_limits';
COMMENT ON COLUMN taskq.rate_limit_versions.window_us IS 'as in rate_limits';
COMMENT ON COLUMN taskq.rate_limit_versions.tick_us IS 'as in rate_limits';
COMMENT ON COLUMN taskq.rate_limit_versions.inherit IS 'what becomes of what was used: consumed, as_is, proportional, additive or reset';
COMMENT ON COLUMN taskq.rate_limit_versions.ended_at IS 'when the next definition took its place';
COMMENT ON COLUMN taskq.rate_limit_buckets.limit_id IS 'the limit, see rate_limits';
COMMENT ON COLUMN taskq.rate_limit_buckets.version IS 'definition under which the state was written';
COMMENT ON COLUMN taskq.rate_limit_buckets.bucket_id IS 'names the window entries; 0 if there never were any';
COMMENT ON COLUMN taskq.rate_limit_buckets.at IS 'newest time that the state has seen';
COMMENT ON COLUMN taskq.rate_limit_buckets.window_start IS 'start of the window; style log: time of the oldest entry that counts; buckets and gcra: time of the last refund';
COMMENT ON COLUMN taskq.rate_limit_buckets.used IS 'buckets and gcra: debt in units / rate_d; windows: count; style log: units ever admitted';
COMMENT ON COLUMN taskq.rate_limit_buckets.previous IS 'style counter: count of the last window; style log: units that have left the window';
COMMENT ON COLUMN taskq.rate_limit_buckets.tail IS 'style log: units whose entries were deleted; buckets and gcra: the last instant that was promised, microseconds since 2000-01-01';
COMMENT ON COLUMN taskq.rate_limit_buckets.newest IS 'style log: time of the newest entry; otherwise when the bucket was made or reset';
COMMENT ON COLUMN taskq.rate_limit_buckets.paused_until IS 'denied until then; -infinity: not paused';
COMMENT ON COLUMN taskq.rate_limit_buckets.key IS 'whom the limit applies to; empty if it is not keyed';
COMMENT ON COLUMN taskq.rate_limit_window_entries.bucket_id IS 'the bucket, see rate_limit_buckets';
COMMENT ON COLUMN taskq.rate_limit_window_entries.upto IS 'number of the last unit of this entry';
COMMENT ON COLUMN taskq.rate_limit_window_entries.cost IS 'units';
COMMENT ON COLUMN taskq.rate_limit_window_entries.at IS 'when it was admitted';
COMMENT ON COLUMN taskq.rate_limit_window_entries.request_id IS 'request_id of the decision';
COMMENT ON COLUMN taskq.rate_limit_refunds.limit_id IS 'the limit, see rate_limits';
COMMENT ON COLUMN taskq.rate_limit_refunds.key IS 'key of the decision';
COMMENT ON COLUMN taskq.rate_limit_refunds.decided_at IS 'decided_at of the decision';
COMMENT ON COLUMN taskq.rate_limit_refunds.remaining IS 'remaining of the decision';
COMMENT ON COLUMN taskq.rate_limit_refunds.useless_at IS 'from then on the decision has nothing to give back, and the row may go';

COMMENT ON TABLE taskq.reservations IS 'the reservations: one row per definition; written by register_reservation and drop_reservation';
COMMENT ON TABLE taskq.reservation_slots IS 'the slots and who holds them; a slot without a row was never used; not dumped';
COMMENT ON SEQUENCE taskq.reservation_id IS 'numbers reservations';
COMMENT ON SEQUENCE taskq.reservation_fence IS 'numbers leases, so that each has a higher number than the one before on its slot';
COMMENT ON COLUMN taskq.reservations.reservation_id IS 'number of the reservation; part of the key of its slots';
COMMENT ON COLUMN taskq.reservations.name IS 'name of the reservation, unique among reservations';
COMMENT ON COLUMN taskq.reservations.version IS 'counts the definitions that this name has had';
COMMENT ON COLUMN taskq.reservations.slots IS 'how many may be held at the same time, per key';
COMMENT ON COLUMN taskq.reservations.lease IS 'how long a slot is held, unless it is renewed';
COMMENT ON COLUMN taskq.reservations.lease_us IS 'lease in microseconds';
COMMENT ON COLUMN taskq.reservations.keyed IS 'true: so many slots per key';
COMMENT ON COLUMN taskq.reservations.changed_at IS 'when the definition was last changed';
COMMENT ON COLUMN taskq.reservations.created_at IS 'when the name was first registered';
COMMENT ON COLUMN taskq.reservations.max_keys IS 'how many keys it may have; NULL: as many as taskq_ratelimit.max_keys_per_reservation says';
COMMENT ON COLUMN taskq.reservation_slots.reservation_id IS 'the reservation, see reservations';
COMMENT ON COLUMN taskq.reservation_slots.slot_index IS 'number of the slot, from 0';
COMMENT ON COLUMN taskq.reservation_slots.fence IS 'number of the newest lease; 0 if there never was one';
COMMENT ON COLUMN taskq.reservation_slots.acquired_at IS 'when the newest lease began; -infinity if there never was one';
COMMENT ON COLUMN taskq.reservation_slots.renewed_at IS 'when its lease was last written: begun or renewed; in the future: the clock was set back';
COMMENT ON COLUMN taskq.reservation_slots.lease_expires_at IS 'free from then on; -infinity: released, or never held';
COMMENT ON COLUMN taskq.reservation_slots.job_id IS 'for which job it is, or was until its lease ended; all zeros: none';
COMMENT ON COLUMN taskq.reservation_slots.held_by_worker_id IS 'who holds it, or held it until its lease ended; all zeros: nobody';
COMMENT ON COLUMN taskq.reservation_slots.surplus IS 'above the number of slots: not handed out, deleted when free';
COMMENT ON COLUMN taskq.reservation_slots.key IS 'whom the slot is for; empty if the reservation is not keyed';

COMMENT ON SEQUENCE taskq.queue_cap_id IS 'numbers the reservations that cap queues, from -1 downwards';
COMMENT ON TABLE taskq.queues IS 'how many jobs of a queue may run at the same time; write it with set_queue_max_concurrent or directly, it is in force at once';
COMMENT ON COLUMN taskq.queues.name IS 'name of the queue; its cap is the reservation taskq:global:queue:<name>';
COMMENT ON COLUMN taskq.queues.max_concurrent IS 'how many may run at the same time; NULL: any number';
COMMENT ON COLUMN taskq.queues.lease IS 'how long a job counts, unless its worker renews';
COMMENT ON COLUMN taskq.queues.updated_at IS 'when the row was last changed';
COMMENT ON TABLE taskq.actors IS 'what the jobs of an actor need; written by register_actor and drop_actor';
COMMENT ON COLUMN taskq.actors.actor IS 'name of the actor';
COMMENT ON COLUMN taskq.actors.queue IS 'the queue whose cap counts; NULL: none';
COMMENT ON COLUMN taskq.actors.reservations IS 'names of the reservations, in the order in which they are asked';
COMMENT ON COLUMN taskq.actors.reservation_keys IS 'for each of them: where the payload has the key; NULL: it is not keyed';
COMMENT ON COLUMN taskq.actors.rate_limits IS 'names of the rate limits, in the order in which they are asked';
COMMENT ON COLUMN taskq.actors.rate_limit_keys IS 'for each of them: where the payload has the key; NULL: it is not keyed';
COMMENT ON COLUMN taskq.actors.changed_at IS 'when the definition was last changed';
COMMENT ON TABLE taskq.actor_tickets IS 'the instants that acquire_for_actor has promised; not dumped';
COMMENT ON COLUMN taskq.actor_tickets.kind IS 'rate_limit or reservation';
COMMENT ON COLUMN taskq.actor_tickets.resource_id IS 'its number, see rate_limits and reservations';
COMMENT ON COLUMN taskq.actor_tickets.key IS 'the key, empty if it is not keyed';
COMMENT ON COLUMN taskq.actor_tickets.next_at IS 'the next ticket is for then, or for later if there is nothing to give before';

-- Types

CREATE TYPE taskq.rate_limit_decision AS (
    allowed             boolean,
    remaining           float8,
    retry_after         interval,
    bucket_name         text,
    backend             text,
    request_id          uuid,
    key                 text,
    cost                float8,
    quota               float8,
    reset_after         interval,
    delay               interval,
    reason              text,
    retry_after_seconds float8,
    reset_after_seconds float8,
    decided_at          timestamptz
);
COMMENT ON TYPE taskq.rate_limit_decision IS 'answer of acquire and its relatives';
COMMENT ON COLUMN taskq.rate_limit_decision.allowed IS 'go ahead?';
COMMENT ON COLUMN taskq.rate_limit_decision.remaining IS 'what is left after the call';
COMMENT ON COLUMN taskq.rate_limit_decision.retry_after IS '0 if allowed; else the wait that gets in if nobody else calls; NULL if waiting never helps';
COMMENT ON COLUMN taskq.rate_limit_decision.bucket_name IS 'name of the limit';
COMMENT ON COLUMN taskq.rate_limit_decision.backend IS 'which backend decided: postgres';
COMMENT ON COLUMN taskq.rate_limit_decision.request_id IS 'style log: names the entry';
COMMENT ON COLUMN taskq.rate_limit_decision.key IS 'the key, empty if the limit is not keyed';
COMMENT ON COLUMN taskq.rate_limit_decision.cost IS 'what was asked for';
COMMENT ON COLUMN taskq.rate_limit_decision.quota IS 'the most that can ever be admitted at once';
COMMENT ON COLUMN taskq.rate_limit_decision.reset_after IS 'time until nothing is used; NULL if never';
COMMENT ON COLUMN taskq.rate_limit_decision.delay IS 'reserve: how long to wait before going ahead';
COMMENT ON COLUMN taskq.rate_limit_decision.reason IS 'ok, limited, paused, shadow, too_many_keys or lock_timeout';
COMMENT ON COLUMN taskq.rate_limit_decision.retry_after_seconds IS 'retry_after as a number';
COMMENT ON COLUMN taskq.rate_limit_decision.reset_after_seconds IS 'reset_after as a number';
COMMENT ON COLUMN taskq.rate_limit_decision.decided_at IS 'the instant the decision is for';

CREATE TYPE taskq.rate_limit_state AS (
    bucket_name       text,
    backend           text,
    is_exhausted      boolean,
    tokens_remaining  float8,
    remaining         float8,
    retry_after       interval,
    capacity          float8,
    "limit"           bigint,
    "window"          interval,
    style             text,
    refill_per_second float8,
    key               text,
    paused_until      timestamptz,
    updated_at        timestamptz,
    kind              text,
    reset_after       interval
);
COMMENT ON TYPE taskq.rate_limit_state IS 'snapshot of one bucket, from peek';
COMMENT ON COLUMN taskq.rate_limit_state.bucket_name IS 'name of the limit';
COMMENT ON COLUMN taskq.rate_limit_state.backend IS 'where it lives: postgres';
COMMENT ON COLUMN taskq.rate_limit_state.is_exhausted IS 'a cost of 1 would be denied now';
COMMENT ON COLUMN taskq.rate_limit_state.tokens_remaining IS 'buckets: tokens now; NULL for windows';
COMMENT ON COLUMN taskq.rate_limit_state.remaining IS 'what is left now';
COMMENT ON COLUMN taskq.rate_limit_state.retry_after IS 'if exhausted, the wait for a cost of 1; NULL otherwise, or if never';
COMMENT ON COLUMN taskq.rate_limit_state.capacity IS 'buckets: what it holds';
COMMENT ON COLUMN taskq.rate_limit_state."limit" IS 'windows: how much it admits';
COMMENT ON COLUMN taskq.rate_limit_state."window" IS 'windows: its length';
COMMENT ON COLUMN taskq.rate_limit_state.style IS 'sliding windows: log, gcra or counter';
COMMENT ON COLUMN taskq.rate_limit_state.refill_per_second IS 'buckets: what comes back per second';
COMMENT ON COLUMN taskq.rate_limit_state.key IS 'the key, empty if the limit is not keyed';
COMMENT ON COLUMN taskq.rate_limit_state.paused_until IS 'denied until then; NULL if not paused';
COMMENT ON COLUMN taskq.rate_limit_state.updated_at IS 'when it last took or gave back; NULL if never used';
COMMENT ON COLUMN taskq.rate_limit_state.kind IS 'token_bucket, leaky_bucket, sliding_window or fixed_window';
COMMENT ON COLUMN taskq.rate_limit_state.reset_after IS 'time until nothing is used; NULL if never';

CREATE TYPE taskq.slot_decision AS (
    allowed             boolean,
    slot_index          integer,
    fence               bigint,
    lease_expires_at    timestamptz,
    retry_after         interval,
    retry_after_seconds float8,
    name                text,
    key                 text,
    reason              text
);
COMMENT ON TYPE taskq.slot_decision IS 'answer of acquire_slot';
COMMENT ON COLUMN taskq.slot_decision.allowed IS 'is a slot yours?';
COMMENT ON COLUMN taskq.slot_decision.slot_index IS 'number of the slot, from 0; NULL if denied';
COMMENT ON COLUMN taskq.slot_decision.fence IS 'number of the lease, higher than every one before on this slot; NULL if denied';
COMMENT ON COLUMN taskq.slot_decision.lease_expires_at IS 'the slot is yours until just before then; NULL if denied';
COMMENT ON COLUMN taskq.slot_decision.retry_after IS '0 if allowed; else the wait until leases have ended, if nobody renews or releases';
COMMENT ON COLUMN taskq.slot_decision.retry_after_seconds IS 'retry_after as a number';
COMMENT ON COLUMN taskq.slot_decision.name IS 'name of the reservation';
COMMENT ON COLUMN taskq.slot_decision.key IS 'the key, empty if the reservation is not keyed';
COMMENT ON COLUMN taskq.slot_decision.reason IS 'ok, full, too_many_keys or lock_timeout';

CREATE TYPE taskq.reservation_state AS (
    name             text,
    key              text,
    slots            integer,
    held             integer,
    free             integer,
    lease            interval,
    first_expires_at timestamptz
);
COMMENT ON TYPE taskq.reservation_state IS 'answer of peek_reservation';
COMMENT ON COLUMN taskq.reservation_state.name IS 'name of the reservation';
COMMENT ON COLUMN taskq.reservation_state.key IS 'the key, empty if the reservation is not keyed';
COMMENT ON COLUMN taskq.reservation_state.slots IS 'how many may be held at the same time';
COMMENT ON COLUMN taskq.reservation_state.held IS 'how many leases live now; above slots while a smaller number takes hold';
COMMENT ON COLUMN taskq.reservation_state.free IS 'how many more may be taken now';
COMMENT ON COLUMN taskq.reservation_state.lease IS 'how long a slot is held, unless it is renewed';
COMMENT ON COLUMN taskq.reservation_state.first_expires_at IS 'when the first of these leases ends; NULL if none is held';

CREATE TYPE taskq.acquire_request AS (
    name      text,
    cost      float8,
    key       text,
    job_id    uuid,
    worker_id uuid,
    kind      text
);
COMMENT ON TYPE taskq.acquire_request IS 'one of the things that acquire_all is to take; made by taskq.request';
COMMENT ON COLUMN taskq.acquire_request.name IS 'name of a rate limit or a reservation';
COMMENT ON COLUMN taskq.acquire_request.cost IS 'what a rate limit is to give; 1 for a slot';
COMMENT ON COLUMN taskq.acquire_request.key IS 'the key, empty if it is not keyed';
COMMENT ON COLUMN taskq.acquire_request.job_id IS 'for a slot: for which job; NULL for none';
COMMENT ON COLUMN taskq.acquire_request.worker_id IS 'for a slot: who will hold it; NULL for nobody in particular';
COMMENT ON COLUMN taskq.acquire_request.kind IS 'rate_limit or reservation; NULL: whatever the name is';

CREATE TYPE taskq.request_decision AS (
    kind                text,
    name                text,
    key                 text,
    allowed             boolean,
    reason              text,
    cost                float8,
    remaining           float8,
    retry_after         interval,
    retry_after_seconds float8,
    quota               float8,
    reset_after         interval,
    request_id          uuid,
    decided_at          timestamptz,
    slot_index          integer,
    fence               bigint,
    lease_expires_at    timestamptz
);
COMMENT ON TYPE taskq.request_decision IS 'what became of one request of acquire_all';
COMMENT ON COLUMN taskq.request_decision.kind IS 'rate_limit or reservation';
COMMENT ON COLUMN taskq.request_decision.name IS 'name of the rate limit or reservation';
COMMENT ON COLUMN taskq.request_decision.key IS 'the key, empty if it is not keyed';
COMMENT ON COLUMN taskq.request_decision.allowed IS 'would this one have been admitted? taken only if the whole group was';
COMMENT ON COLUMN taskq.request_decision.reason IS 'as of acquire, or of acquire_slot';
COMMENT ON COLUMN taskq.request_decision.cost IS 'what was asked for';
COMMENT ON COLUMN taskq.request_decision.remaining IS 'of a rate limit: what is left now; NULL for a slot';
COMMENT ON COLUMN taskq.request_decision.retry_after IS '0 if allowed; else the wait after which this one would get in; NULL if waiting never helps';
COMMENT ON COLUMN taskq.request_decision.retry_after_seconds IS 'retry_after as a number';
COMMENT ON COLUMN taskq.request_decision.quota IS 'the most that can be admitted at once; the number of slots';
COMMENT ON COLUMN taskq.request_decision.reset_after IS 'of a rate limit: time until nothing is used; NULL if never';
COMMENT ON COLUMN taskq.request_decision.request_id IS 'style log: names the entry';
COMMENT ON COLUMN taskq.request_decision.decided_at IS 'of a rate limit: the instant the decision is for';
COMMENT ON COLUMN taskq.request_decision.slot_index IS 'of a slot that was taken: its number';
COMMENT ON COLUMN taskq.request_decision.fence IS 'of a slot that was taken: number of the lease';
COMMENT ON COLUMN taskq.request_decision.lease_expires_at IS 'of a slot that was taken: it is yours until just before then';

CREATE TYPE taskq.group_decision AS (
    allowed             boolean,
    refused_by          text,
    retry_after         interval,
    decisions           taskq.request_decision[],
    handle              jsonb,
    retry_after_seconds float8,
    reason              text
);
COMMENT ON TYPE taskq.group_decision IS 'answer of acquire_all';
COMMENT ON COLUMN taskq.group_decision.allowed IS 'was everything taken? if not, nothing was';
COMMENT ON COLUMN taskq.group_decision.refused_by IS 'the first that refused: rate_limit:<name> or reservation:<name>; NULL if allowed';
COMMENT ON COLUMN taskq.group_decision.retry_after IS '0 if allowed; else the longest wait of all that refuse; NULL if waiting never helps';
COMMENT ON COLUMN taskq.group_decision.decisions IS 'one for each request, in their order';
COMMENT ON COLUMN taskq.group_decision.handle IS 'what was taken, for release_all; NULL if denied';
COMMENT ON COLUMN taskq.group_decision.retry_after_seconds IS 'retry_after as a number';
COMMENT ON COLUMN taskq.group_decision.reason IS 'ok, or why the first one refused';

CREATE TYPE taskq.actor_decision AS (
    allowed             boolean,
    refused_by          text,
    retry_after         interval,
    handle              jsonb,
    retry_after_seconds float8,
    reason              text,
    ticket_at           timestamptz,
    decisions           taskq.request_decision[]
);
COMMENT ON TYPE taskq.actor_decision IS 'answer of acquire_for_actor';
COMMENT ON COLUMN taskq.actor_decision.allowed IS 'may the job run? if not, nothing was taken';
COMMENT ON COLUMN taskq.actor_decision.refused_by IS 'the first that refused: reservation:<name> or rate_limit:<name>; NULL if allowed';
COMMENT ON COLUMN taskq.actor_decision.retry_after IS '0 if allowed; else the longest wait of all that refuse, or until ticket_at; never NULL: 5 s where waiting has no end of its own';
COMMENT ON COLUMN taskq.actor_decision.handle IS 'what was taken, for release_for_actor; NULL if denied';
COMMENT ON COLUMN taskq.actor_decision.retry_after_seconds IS 'retry_after as a number';
COMMENT ON COLUMN taskq.actor_decision.reason IS 'ok, or why the first one refused';
COMMENT ON COLUMN taskq.actor_decision.ticket_at IS 'ticket => true: the instant that only this caller was given; NULL if allowed, or none could be had';
COMMENT ON COLUMN taskq.actor_decision.decisions IS 'one for each: the cap of the queue, the reservations, the rate limits';

-- Changes of definitions reach every backend's cache

CREATE FUNCTION taskq.definitions_changed() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME', 'taskq_definitions_changed';
COMMENT ON FUNCTION taskq.definitions_changed() IS 'trigger: makes every session read the definitions again';

CREATE TRIGGER definitions_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON taskq.rate_limits
    FOR EACH STATEMENT EXECUTE FUNCTION taskq.definitions_changed();
-- Whatever session_replication_role says: the caches are there all the same.
ALTER TABLE taskq.rate_limits ENABLE ALWAYS TRIGGER definitions_changed;
COMMENT ON TRIGGER definitions_changed ON taskq.rate_limits IS 'makes every session read the definitions again';

CREATE TRIGGER definitions_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON taskq.reservations
    FOR EACH STATEMENT EXECUTE FUNCTION taskq.definitions_changed();
ALTER TABLE taskq.reservations ENABLE ALWAYS TRIGGER definitions_changed;
COMMENT ON TRIGGER definitions_changed ON taskq.reservations IS 'makes every session read the definitions again';

-- Define

CREATE FUNCTION taskq.register_token_bucket(name text, capacity float8, refill_per_second float8 DEFAULT NULL,
    refill_amount float8 DEFAULT NULL, refill_period interval DEFAULT NULL, keyed boolean DEFAULT false,
    storage text DEFAULT 'table', shadow boolean DEFAULT false, replace boolean DEFAULT false,
    inherit text DEFAULT 'consumed', max_keys integer DEFAULT NULL) RETURNS boolean
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_register_token_bucket';
COMMENT ON FUNCTION taskq.register_token_bucket IS 'defines a token bucket: a burst of capacity, then refill_per_second (or refill_amount every refill_period)';

CREATE FUNCTION taskq.register_leaky_bucket(name text, capacity float8, leak_per_second float8 DEFAULT NULL,
    leak_amount float8 DEFAULT NULL, leak_period interval DEFAULT NULL, keyed boolean DEFAULT false,
    storage text DEFAULT 'table', shadow boolean DEFAULT false, replace boolean DEFAULT false,
    inherit text DEFAULT 'consumed', max_keys integer DEFAULT NULL) RETURNS boolean
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_register_leaky_bucket';
COMMENT ON FUNCTION taskq.register_leaky_bucket IS 'defines a leaky bucket (a meter: it admits what a token bucket admits)';

CREATE FUNCTION taskq.register_sliding_window(name text, max_requests bigint, period interval, style text DEFAULT 'log',
    anchor timestamptz DEFAULT NULL, keyed boolean DEFAULT false, storage text DEFAULT 'table', shadow boolean DEFAULT false,
    replace boolean DEFAULT false, inherit text DEFAULT 'consumed', max_keys integer DEFAULT NULL) RETURNS boolean
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_register_sliding_window';
COMMENT ON FUNCTION taskq.register_sliding_window IS 'defines a sliding window of style log (exact), gcra (even pace) or counter (approximate, small)';

CREATE FUNCTION taskq.register_fixed_window(name text, max_requests bigint, period interval, anchor timestamptz DEFAULT NULL,
    keyed boolean DEFAULT false, storage text DEFAULT 'table', shadow boolean DEFAULT false, replace boolean DEFAULT false,
    inherit text DEFAULT 'consumed', max_keys integer DEFAULT NULL) RETURNS boolean
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_register_fixed_window';
COMMENT ON FUNCTION taskq.register_fixed_window IS 'defines a fixed window: max_requests in each period, counted anew in the next';

CREATE FUNCTION taskq.drop_rate_limit(name text) RETURNS void
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_drop_rate_limit';
COMMENT ON FUNCTION taskq.drop_rate_limit IS 'forgets a limit and all its buckets';

-- Decide

CREATE FUNCTION taskq.acquire(name text, cost float8 DEFAULT 1, key text DEFAULT '') RETURNS taskq.rate_limit_decision
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_acquire';
COMMENT ON FUNCTION taskq.acquire IS 'takes cost if it is there; use SELECT * FROM taskq.acquire(...), as (taskq.acquire(...)).* spends once per column';

CREATE FUNCTION taskq.allow(name text, cost float8 DEFAULT 1, key text DEFAULT '') RETURNS boolean
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_allow';
COMMENT ON FUNCTION taskq.allow IS 'acquire that answers only yes or no';

CREATE FUNCTION taskq.acquire_json(name text, cost float8 DEFAULT 1, key text DEFAULT '') RETURNS jsonb
    LANGUAGE sql PARALLEL UNSAFE COST 100 SET search_path = pg_catalog, pg_temp
    AS 'SELECT pg_catalog.to_jsonb(taskq.acquire($1, $2, $3))';
COMMENT ON FUNCTION taskq.acquire_json IS 'acquire that answers with a JSON object';

CREATE FUNCTION taskq.require(name text, cost float8 DEFAULT 1, key text DEFAULT '') RETURNS taskq.rate_limit_decision
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_require';
COMMENT ON FUNCTION taskq.require IS 'acquire that raises SQLSTATE TQ429 when it is denied';

CREATE FUNCTION taskq.preview(name text, cost float8 DEFAULT 1, key text DEFAULT '') RETURNS taskq.rate_limit_decision
    LANGUAGE c PARALLEL RESTRICTED COST 50 AS 'MODULE_PATHNAME', 'taskq_preview';
COMMENT ON FUNCTION taskq.preview IS 'what acquire would answer; spends nothing';

CREATE FUNCTION taskq.reserve(name text, cost float8 DEFAULT 1, max_wait interval DEFAULT NULL, key text DEFAULT '')
    RETURNS taskq.rate_limit_decision
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_reserve';
COMMENT ON FUNCTION taskq.reserve IS 'buckets and gcra: takes a place in the queue of time; go ahead after delay';

CREATE FUNCTION taskq.charge(name text, cost float8 DEFAULT 1, key text DEFAULT '') RETURNS taskq.rate_limit_decision
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_charge';
COMMENT ON FUNCTION taskq.charge IS 'debits without asking';

CREATE FUNCTION taskq.refund(decision taskq.rate_limit_decision) RETURNS float8
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_refund_decision';
COMMENT ON FUNCTION taskq.refund(taskq.rate_limit_decision) IS 'gives back what a decision took, once; answers how much that was';

CREATE FUNCTION taskq.refund(name text, cost float8, key text DEFAULT '') RETURNS float8
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_refund_amount';
COMMENT ON FUNCTION taskq.refund(text, float8, text) IS 'gives back cost, clamped at full; answers how much that was';

CREATE FUNCTION taskq.settle(decision taskq.rate_limit_decision, actual_cost float8) RETURNS float8
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_settle';
COMMENT ON FUNCTION taskq.settle IS 'replaces the cost of a decision by the true one, once; answers what was given back (negative: debited)';

CREATE PROCEDURE taskq.wait(name text, cost float8 DEFAULT 1, key text DEFAULT '', timeout interval DEFAULT NULL,
    INOUT allowed boolean DEFAULT NULL, INOUT remaining float8 DEFAULT NULL, INOUT waited interval DEFAULT NULL,
    INOUT retry_after interval DEFAULT NULL, INOUT reason text DEFAULT NULL,
    job_id uuid DEFAULT NULL, worker_id uuid DEFAULT NULL, kind text DEFAULT NULL,
    INOUT slot_index integer DEFAULT NULL, INOUT fence bigint DEFAULT NULL, INOUT lease_expires_at timestamptz DEFAULT NULL)
    LANGUAGE c AS 'MODULE_PATHNAME', 'taskq_wait_for_turn';
COMMENT ON PROCEDURE taskq.wait IS 'CALL it outside a transaction block: returns when it is your turn or you have a slot, or denied at the timeout';

-- Several

CREATE FUNCTION taskq.acquire_many(names text[], costs float8[] DEFAULT NULL, keys text[] DEFAULT NULL)
    RETURNS SETOF taskq.rate_limit_decision
    LANGUAGE c PARALLEL UNSAFE COST 1000 ROWS 10 AS 'MODULE_PATHNAME', 'taskq_acquire_many';
COMMENT ON FUNCTION taskq.acquire_many IS 'many decisions, each on its own, in the order of the arguments; arrays of one element apply to all';

CREATE FUNCTION taskq.request(name text, cost float8 DEFAULT 1, key text DEFAULT '', job_id uuid DEFAULT NULL,
    worker_id uuid DEFAULT NULL, kind text DEFAULT NULL) RETURNS taskq.acquire_request
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT ROW($1, $2, $3, $4, $5, $6)::taskq.acquire_request';
COMMENT ON FUNCTION taskq.request IS 'one request for acquire_all: a cost of a rate limit, or a slot of a reservation';

CREATE FUNCTION taskq.acquire_all(requests taskq.acquire_request[]) RETURNS taskq.group_decision
    LANGUAGE c PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'taskq_acquire_all';
COMMENT ON FUNCTION taskq.acquire_all IS 'takes from all these rate limits and slots, or nothing; at most 1000 requests';

CREATE FUNCTION taskq.release_all(handle jsonb, refund boolean DEFAULT false, OUT released integer, OUT lost integer, OUT refunded integer)
    LANGUAGE c PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'taskq_release_all';
COMMENT ON FUNCTION taskq.release_all IS 'gives back the slots of acquire_all and, if asked, what it took of rate limits; answers how many';

CREATE FUNCTION taskq.explain_acquire(requests taskq.acquire_request[], OUT "position" integer, OUT kind text, OUT name text, OUT key text,
    OUT allowed boolean, OUT reason text, OUT retry_after interval, OUT explanation text) RETURNS SETOF record
    LANGUAGE c PARALLEL RESTRICTED COST 1000 ROWS 3 AS 'MODULE_PATHNAME', 'taskq_explain_acquire';
COMMENT ON FUNCTION taskq.explain_acquire IS 'what acquire_all would answer for each request, and why; changes nothing';

-- Without registering

CREATE FUNCTION taskq.acquire_token_bucket(name text, capacity float8, refill_per_second float8, cost float8 DEFAULT 1,
    key text DEFAULT '') RETURNS taskq.rate_limit_decision
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_acquire_token_bucket';
COMMENT ON FUNCTION taskq.acquire_token_bucket IS 'acquire on a token bucket that is defined by the call';

CREATE FUNCTION taskq.acquire_leaky_bucket(name text, capacity float8, leak_per_second float8, cost float8 DEFAULT 1,
    key text DEFAULT '') RETURNS taskq.rate_limit_decision
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_acquire_leaky_bucket';
COMMENT ON FUNCTION taskq.acquire_leaky_bucket IS 'acquire on a leaky bucket that is defined by the call';

CREATE FUNCTION taskq.acquire_sliding_window(name text, max_requests bigint, period interval, style text DEFAULT 'log',
    cost float8 DEFAULT 1, key text DEFAULT '') RETURNS taskq.rate_limit_decision
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_acquire_sliding_window';
COMMENT ON FUNCTION taskq.acquire_sliding_window IS 'acquire on a sliding window that is defined by the call';

CREATE FUNCTION taskq.acquire_fixed_window(name text, max_requests bigint, period interval, cost float8 DEFAULT 1,
    key text DEFAULT '') RETURNS taskq.rate_limit_decision
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_acquire_fixed_window';
COMMENT ON FUNCTION taskq.acquire_fixed_window IS 'acquire on a fixed window that is defined by the call';

-- Look

CREATE FUNCTION taskq.peek(name text, key text DEFAULT '') RETURNS taskq.rate_limit_state
    LANGUAGE c PARALLEL RESTRICTED COST 50 AS 'MODULE_PATHNAME', 'taskq_peek';
COMMENT ON FUNCTION taskq.peek IS 'the state of a bucket now; changes nothing, creates nothing';

CREATE FUNCTION taskq.remaining(name text, key text DEFAULT '') RETURNS float8
    LANGUAGE c PARALLEL RESTRICTED COST 50 AS 'MODULE_PATHNAME', 'taskq_remaining';
COMMENT ON FUNCTION taskq.remaining IS 'what is left now';

CREATE FUNCTION taskq.reset_after(name text, key text DEFAULT '') RETURNS interval
    LANGUAGE c PARALLEL RESTRICTED COST 50 AS 'MODULE_PATHNAME', 'taskq_reset_after';
COMMENT ON FUNCTION taskq.reset_after IS 'time until nothing is used; 0 when full, NULL if never';

CREATE FUNCTION taskq.peek_if_there(name text, key text) RETURNS taskq.rate_limit_state
    LANGUAGE c PARALLEL RESTRICTED COST 50 AS 'MODULE_PATHNAME', 'taskq_peek_if_there';
COMMENT ON FUNCTION taskq.peek_if_there IS 'peek for peek_all: NULL if the limit was dropped meanwhile, or takes no such key any more';

CREATE FUNCTION taskq.peek_all() RETURNS SETOF taskq.rate_limit_state
    LANGUAGE sql PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    -- SECURITY DEFINER: callers may not read the tables.
    AS $$ SELECT s.* FROM taskq.rate_limits AS l
          LEFT JOIN taskq.rate_limit_buckets AS b ON b.limit_id = l.limit_id AND (l.keyed = (b.key <> '') OR l.ad_hoc)
          CROSS JOIN LATERAL taskq.peek_if_there(l.name, coalesce(b.key, '')) AS s
          WHERE (b.limit_id IS NOT NULL OR NOT l.keyed) AND s.bucket_name IS NOT NULL
          ORDER BY l.name, b.key $$;
COMMENT ON FUNCTION taskq.peek_all() IS 'the state of every bucket now';

CREATE FUNCTION taskq.version() RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'taskq_version';
COMMENT ON FUNCTION taskq.version() IS 'version of the library';

CREATE VIEW taskq.rate_limit_status AS SELECT * FROM taskq.peek_all();
COMMENT ON VIEW taskq.rate_limit_status IS 'the state of every bucket now, see peek';
COMMENT ON COLUMN taskq.rate_limit_status.bucket_name IS 'name of the limit';
COMMENT ON COLUMN taskq.rate_limit_status.backend IS 'where it lives: postgres';
COMMENT ON COLUMN taskq.rate_limit_status.is_exhausted IS 'a cost of 1 would be denied now';
COMMENT ON COLUMN taskq.rate_limit_status.tokens_remaining IS 'buckets: tokens now; NULL for windows';
COMMENT ON COLUMN taskq.rate_limit_status.remaining IS 'what is left now';
COMMENT ON COLUMN taskq.rate_limit_status.retry_after IS 'if exhausted, the wait for a cost of 1; NULL otherwise, or if never';
COMMENT ON COLUMN taskq.rate_limit_status.capacity IS 'buckets: what it holds';
COMMENT ON COLUMN taskq.rate_limit_status."limit" IS 'windows: how much it admits';
COMMENT ON COLUMN taskq.rate_limit_status."window" IS 'windows: its length';
COMMENT ON COLUMN taskq.rate_limit_status.style IS 'sliding windows: log, gcra or counter';
COMMENT ON COLUMN taskq.rate_limit_status.refill_per_second IS 'buckets: what comes back per second';
COMMENT ON COLUMN taskq.rate_limit_status.key IS 'the key, empty if the limit is not keyed';
COMMENT ON COLUMN taskq.rate_limit_status.paused_until IS 'denied until then; NULL if not paused';
COMMENT ON COLUMN taskq.rate_limit_status.updated_at IS 'when it last took or gave back; NULL if never used';
COMMENT ON COLUMN taskq.rate_limit_status.kind IS 'token_bucket, leaky_bucket, sliding_window or fixed_window';
COMMENT ON COLUMN taskq.rate_limit_status.reset_after IS 'time until nothing is used; NULL if never';

-- Reset

CREATE FUNCTION taskq.reset(name text, key text DEFAULT '') RETURNS boolean
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_reset';
COMMENT ON FUNCTION taskq.reset IS 'makes a bucket as good as new; answers whether there was one';

CREATE FUNCTION taskq.pause(name text, key text, until timestamptz) RETURNS void
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_pause';
COMMENT ON FUNCTION taskq.pause(text, text, timestamptz) IS 'denies everything on one key until then, with reason paused';

CREATE FUNCTION taskq.pause(name text, until timestamptz) RETURNS void
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_pause_limit';
COMMENT ON FUNCTION taskq.pause(text, timestamptz) IS 'denies everything on a limit, with all its keys, until then, with reason paused';

CREATE FUNCTION taskq.resume(name text, key text) RETURNS void
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_resume';
COMMENT ON FUNCTION taskq.resume(text, text) IS 'ends a pause of one key';

CREATE FUNCTION taskq.resume(name text) RETURNS void
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_resume_limit';
COMMENT ON FUNCTION taskq.resume(text) IS 'ends a pause of a limit; pauses of single keys stay';

-- Upkeep

CREATE FUNCTION taskq.sweep(OUT buckets bigint, OUT entries bigint, OUT refunds bigint, OUT versions bigint, OUT slots bigint,
    OUT tickets bigint)
    LANGUAGE c PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME', 'taskq_sweep';
COMMENT ON FUNCTION taskq.sweep() IS 'deletes what no decision needs any more; answers how many rows';

CREATE FUNCTION taskq.evict_idle(idle_for interval) RETURNS bigint
    LANGUAGE c PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME', 'taskq_evict_idle';
COMMENT ON FUNCTION taskq.evict_idle IS 'deletes buckets of keyed limits that are full and were not used for so long';

-- Web

CREATE FUNCTION taskq.http_headers(decision taskq.rate_limit_decision) RETURNS jsonb
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 50 AS 'MODULE_PATHNAME', 'taskq_http_headers';
COMMENT ON FUNCTION taskq.http_headers IS 'the HTTP fields that tell a client about a decision';

-- Reservations

CREATE FUNCTION taskq.register_reservation(name text, slots integer, lease interval, keyed boolean DEFAULT false,
    replace boolean DEFAULT false, max_keys integer DEFAULT NULL) RETURNS boolean
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_register_reservation';
COMMENT ON FUNCTION taskq.register_reservation IS 'defines how many may hold a slot at the same time, and for how long without renewing';

CREATE FUNCTION taskq.drop_reservation(name text) RETURNS void
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_drop_reservation';
COMMENT ON FUNCTION taskq.drop_reservation IS 'forgets a reservation and all its slots, held or not';

CREATE FUNCTION taskq.sync_slots(names text[] DEFAULT NULL, OUT inserted bigint, OUT deleted bigint, OUT skipped_held bigint)
    LANGUAGE c PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME', 'taskq_sync_slots';
COMMENT ON FUNCTION taskq.sync_slots IS 'brings the rows of slots in line with the definitions; answers how many';

CREATE FUNCTION taskq.acquire_slot(name text, job_id uuid, worker_id uuid, key text DEFAULT '') RETURNS taskq.slot_decision
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_acquire_slot';
COMMENT ON FUNCTION taskq.acquire_slot IS 'takes a free slot, if there is one, for the length of a lease';

CREATE FUNCTION taskq.release_slot(name text, slot_index integer, worker_id uuid DEFAULT NULL, key text DEFAULT '',
    fence bigint DEFAULT NULL) RETURNS boolean
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_release_slot';
COMMENT ON FUNCTION taskq.release_slot IS 'ends a lease; false, and nothing changed, if it is not held by this worker and with this fence';

CREATE FUNCTION taskq.renew_slot(name text, slot_index integer, worker_id uuid DEFAULT NULL, key text DEFAULT '',
    fence bigint DEFAULT NULL) RETURNS timestamptz
    LANGUAGE c PARALLEL UNSAFE COST 100 AS 'MODULE_PATHNAME', 'taskq_renew_slot';
COMMENT ON FUNCTION taskq.renew_slot IS 'lets a lease begin anew; answers its new end, or NULL if it is lost';

CREATE FUNCTION taskq.renew_slots(worker_id uuid, OUT name text, OUT key text, OUT slot_index integer, OUT fence bigint,
    OUT renewed boolean, OUT lease_expires_at timestamptz) RETURNS SETOF record
    LANGUAGE c PARALLEL UNSAFE COST 1000 ROWS 10 AS 'MODULE_PATHNAME', 'taskq_renew_slots';
COMMENT ON FUNCTION taskq.renew_slots IS 'renews all leases of a worker, each for its own length, and reports the lost ones';

CREATE FUNCTION taskq.peek_reservation(name text, key text DEFAULT '') RETURNS taskq.reservation_state
    LANGUAGE c PARALLEL RESTRICTED COST 50 AS 'MODULE_PATHNAME', 'taskq_peek_reservation';
COMMENT ON FUNCTION taskq.peek_reservation IS 'how many slots are held and free now; changes nothing';

CREATE FUNCTION taskq.peek_reservation_if_there(name text, key text) RETURNS taskq.reservation_state
    LANGUAGE c PARALLEL RESTRICTED COST 50 AS 'MODULE_PATHNAME', 'taskq_peek_reservation_if_there';
COMMENT ON FUNCTION taskq.peek_reservation_if_there IS
    'peek_reservation for peek_reservations: NULL if it was dropped meanwhile, or takes no such key any more and holds nothing under it';

CREATE FUNCTION taskq.peek_reservations() RETURNS SETOF taskq.reservation_state
    LANGUAGE sql PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    -- SECURITY DEFINER: callers may not read the tables.
    AS $$ SELECT s.* FROM taskq.reservations AS r
          CROSS JOIN LATERAL (SELECT '' AS key WHERE NOT r.keyed
                              UNION SELECT key FROM taskq.reservation_slots AS s WHERE s.reservation_id = r.reservation_id) AS k
          CROSS JOIN LATERAL taskq.peek_reservation_if_there(r.name, k.key) AS s
          WHERE s.name IS NOT NULL
          ORDER BY r.name, k.key $$;
COMMENT ON FUNCTION taskq.peek_reservations() IS 'peek_reservation for every reservation and every key that was used';

CREATE VIEW taskq.reservation_status AS SELECT * FROM taskq.peek_reservations();
COMMENT ON VIEW taskq.reservation_status IS 'how many slots are held and free now, see peek_reservation';
COMMENT ON COLUMN taskq.reservation_status.name IS 'name of the reservation';
COMMENT ON COLUMN taskq.reservation_status.key IS 'the key, empty if the reservation is not keyed';
COMMENT ON COLUMN taskq.reservation_status.slots IS 'how many may be held at the same time';
COMMENT ON COLUMN taskq.reservation_status.held IS 'how many leases live now';
COMMENT ON COLUMN taskq.reservation_status.free IS 'how many more may be taken now';
COMMENT ON COLUMN taskq.reservation_status.lease IS 'how long a slot is held, unless it is renewed';
COMMENT ON COLUMN taskq.reservation_status.first_expires_at IS 'when the first of these leases ends; NULL if none is held';

-- Statistics

CREATE FUNCTION taskq.decision_counts(OUT kind text, OUT id integer, OUT allowed bigint, OUT limited bigint, OUT paused bigint,
    OUT "full" bigint, OUT too_many_keys bigint, OUT lock_timeout bigint, OUT shadow bigint, OUT last_denied_at timestamptz,
    OUT stats_reset timestamptz) RETURNS SETOF record
    LANGUAGE c PARALLEL RESTRICTED COST 100 ROWS 100 AS 'MODULE_PATHNAME', 'taskq_decision_counts';
COMMENT ON FUNCTION taskq.decision_counts() IS 'for peek_stats: the counts of all limits and reservations of this database that were used';

CREATE FUNCTION taskq.stats_info(OUT entries integer, OUT max_entries integer, OUT uncounted bigint)
    LANGUAGE c PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'taskq_stats_info';
COMMENT ON FUNCTION taskq.stats_info() IS 'how much of the room for statistics is in use, and how many decisions were not counted for want of room; NULLs if no statistics are kept';

CREATE FUNCTION taskq.peek_stats() RETURNS TABLE (kind text, name text, allowed bigint, denied bigint, limited bigint, paused bigint,
    "full" bigint, too_many_keys bigint, lock_timeout bigint, shadow bigint, last_denied_at timestamptz, stats_reset timestamptz)
    LANGUAGE sql PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    -- SECURITY DEFINER: callers may not read the tables. Where decisions were not counted, no entry does not mean none.
    AS $$ SELECT r.kind, r.name, coalesce(c.allowed, z.none),
                 coalesce(c.limited + c.paused + c."full" + c.too_many_keys + c.lock_timeout, z.none),
                 coalesce(c.limited, z.none), coalesce(c.paused, z.none), coalesce(c."full", z.none), coalesce(c.too_many_keys, z.none),
                 coalesce(c.lock_timeout, z.none), coalesce(c.shadow, z.none), c.last_denied_at, c.stats_reset
          FROM (SELECT 'rate_limit' AS kind, name, limit_id AS id FROM taskq.rate_limits
                UNION ALL SELECT 'reservation', name, reservation_id FROM taskq.reservations) AS r
          CROSS JOIN (SELECT CASE WHEN uncounted = 0 THEN 0::bigint END AS none FROM taskq.stats_info()) AS z
          LEFT JOIN taskq.decision_counts() AS c ON c.kind = r.kind AND c.id = r.id
          ORDER BY r.kind, r.name $$;
COMMENT ON FUNCTION taskq.peek_stats() IS 'how many decisions each rate limit and reservation has made since the server started; NULLs if they are not counted';

CREATE VIEW taskq.rate_limit_stats AS SELECT * FROM taskq.peek_stats();
COMMENT ON VIEW taskq.rate_limit_stats IS 'how many decisions each rate limit and reservation has made, see peek_stats';
COMMENT ON COLUMN taskq.rate_limit_stats.kind IS 'rate_limit or reservation';
COMMENT ON COLUMN taskq.rate_limit_stats.name IS 'name of the rate limit or reservation';
COMMENT ON COLUMN taskq.rate_limit_stats.allowed IS 'decisions that let the caller go ahead';
COMMENT ON COLUMN taskq.rate_limit_stats.denied IS 'decisions that did not, for one of the next five reasons';
COMMENT ON COLUMN taskq.rate_limit_stats.limited IS 'denied: the rate limit had not enough left';
COMMENT ON COLUMN taskq.rate_limit_stats.paused IS 'denied: the rate limit was paused';
COMMENT ON COLUMN taskq.rate_limit_stats."full" IS 'denied: all slots of the reservation were held';
COMMENT ON COLUMN taskq.rate_limit_stats.too_many_keys IS 'denied: there was no room for another key';
COMMENT ON COLUMN taskq.rate_limit_stats.lock_timeout IS 'denied: others had it in hand for too long';
COMMENT ON COLUMN taskq.rate_limit_stats.shadow IS 'of those allowed: would have been denied, but the limit is in shadow';
COMMENT ON COLUMN taskq.rate_limit_stats.last_denied_at IS 'when the newest denial was; NULL: none is known';
COMMENT ON COLUMN taskq.rate_limit_stats.stats_reset IS 'when reset_stats last set these counts to 0; NULL: not since the server started';

CREATE FUNCTION taskq.reset_stats(name text DEFAULT NULL, kind text DEFAULT NULL) RETURNS void
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_reset_stats';
COMMENT ON FUNCTION taskq.reset_stats IS 'sets the counts of one name, of one kind or of everything in this database to 0, at once and for good';

-- Queues and actors

CREATE FUNCTION taskq.set_queue_max_concurrent(queue text, max_concurrent integer, lease interval DEFAULT NULL) RETURNS boolean
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_set_queue_max_concurrent';
COMMENT ON FUNCTION taskq.set_queue_max_concurrent IS 'caps how many jobs of a queue run at the same time, from now on; NULL lifts the cap; answers whether anything changed';

CREATE FUNCTION taskq.queues_changed() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME', 'taskq_queues_changed';
COMMENT ON FUNCTION taskq.queues_changed() IS 'trigger: keeps the reservation that caps a queue in line with its row';

-- ALWAYS: a row that arrives by replication is in force, too.
CREATE TRIGGER queues_changed AFTER INSERT OR UPDATE OR DELETE ON taskq.queues
    FOR EACH ROW EXECUTE FUNCTION taskq.queues_changed();
ALTER TABLE taskq.queues ENABLE ALWAYS TRIGGER queues_changed;
COMMENT ON TRIGGER queues_changed ON taskq.queues IS 'keeps the reservation that caps a queue in line with its row';
CREATE TRIGGER queues_truncated AFTER TRUNCATE ON taskq.queues
    FOR EACH STATEMENT EXECUTE FUNCTION taskq.queues_changed();
ALTER TABLE taskq.queues ENABLE ALWAYS TRIGGER queues_truncated;
COMMENT ON TRIGGER queues_truncated ON taskq.queues IS 'lifts all caps';

CREATE FUNCTION taskq.keyed(name text, path jsonpath) RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'taskq_keyed';
COMMENT ON FUNCTION taskq.keyed IS 'for register_actor: this limit or reservation, under the key that the path finds in the payload';

CREATE FUNCTION taskq.register_actor(actor text, queue text DEFAULT 'default', rate_limits text[] DEFAULT '{}',
    reservations text[] DEFAULT '{}', replace boolean DEFAULT false) RETURNS boolean
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_register_actor';
COMMENT ON FUNCTION taskq.register_actor IS 'says what the jobs of an actor need: the cap of a queue, rate limits and slots, given by name or with taskq.keyed';

CREATE FUNCTION taskq.drop_actor(actor text) RETURNS void
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_drop_actor';
COMMENT ON FUNCTION taskq.drop_actor IS 'forgets an actor; its limits and reservations stay';

CREATE FUNCTION taskq.acquire_for_actor(actor text, job_id uuid, worker_id uuid, payload jsonb DEFAULT NULL,
    ticket boolean DEFAULT false) RETURNS taskq.actor_decision
    LANGUAGE c PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'taskq_acquire_for_actor';
COMMENT ON FUNCTION taskq.acquire_for_actor IS 'takes all that a job of this actor needs, or nothing; use SELECT * FROM, as (f()).* takes once per column';

CREATE FUNCTION taskq.release_for_actor(handle jsonb, OUT released integer, OUT lost integer)
    LANGUAGE c PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'taskq_release_for_actor';
COMMENT ON FUNCTION taskq.release_for_actor IS 'after the job: gives the slots back and keeps what was spent; answers how many were still held';

-- Rights: nobody has any; grant_usage gives one of three bundles

CREATE FUNCTION taskq.grant_usage(role regrole, bundle text) RETURNS void
    LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'taskq_grant_usage';
COMMENT ON FUNCTION taskq.grant_usage IS 'grants a role the bundle client, operator or monitor';

REVOKE ALL ON SCHEMA taskq FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA taskq FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA taskq FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA taskq FROM PUBLIC;
REVOKE ALL ON TYPE taskq.rate_limit_decision, taskq.rate_limit_state, taskq.slot_decision, taskq.reservation_state FROM PUBLIC;
REVOKE ALL ON TYPE taskq.acquire_request, taskq.request_decision, taskq.group_decision, taskq.actor_decision FROM PUBLIC;
