-- The queue's two tables.

CREATE TABLE wakebell.jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    type text NOT NULL,
    payload jsonb NOT NULL DEFAULT '{}',
    queue text COLLATE "C" NOT NULL DEFAULT 'default',      -- "C": all of `wakebell.*` lie side by side
    priority integer NOT NULL DEFAULT 0,
    status text NOT NULL DEFAULT 'pending',
    run_after timestamptz NOT NULL DEFAULT now(),
    waiting boolean NOT NULL DEFAULT false,     -- behind another job of its serial key
    held boolean NOT NULL DEFAULT false,        -- parked: due, of a type that nobody here knows
    attempts integer NOT NULL DEFAULT 0,        -- runs, +1 at each claim; a snooze gives its run back
    crashes integer NOT NULL DEFAULT 0,         -- those of them that their process did not live to finish
    max_attempts integer NOT NULL DEFAULT 4,    -- given up when attempts - crashes gets there
    lease_until timestamptz,
    lease_token bigint,
    unique_key text,
    serial_key text,
    last_error text,
    result jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,                     -- of the last run
    finished_at timestamptz,

    -- What orders claims: each step of priority is a minute, so that waiting raises everybody and none can starve.
    -- Once a job has run it ranks at its `run_after`: boosted retries in the near future would stand in the way of
    -- every claim. By way of UTC, because arithmetic on timestamptz depends on the session's time zone.
    rank timestamptz NOT NULL GENERATED ALWAYS AS (
        ((run_after AT TIME ZONE 'UTC') - make_interval(mins => CASE WHEN started_at IS NULL THEN priority ELSE 0 END))
        AT TIME ZONE 'UTC'
    ) STORED,

    CONSTRAINT jobs_type_check CHECK (type <> ''),
    CONSTRAINT jobs_payload_check CHECK (jsonb_typeof(payload) = 'object'),
    CONSTRAINT jobs_queue_check CHECK (queue <> ''),
    CONSTRAINT jobs_priority_check CHECK (priority BETWEEN 0 AND 100),
    CONSTRAINT jobs_status_check CHECK (status IN ('pending', 'running', 'done', 'failed', 'cancelled')),
    CONSTRAINT jobs_attempts_check CHECK (attempts >= 0 AND crashes >= 0 AND max_attempts >= 1),
    CONSTRAINT jobs_waiting_serial_key_check CHECK (serial_key IS NOT NULL OR NOT waiting),
    CONSTRAINT jobs_lease_check CHECK (status <> 'running' OR (lease_until IS NOT NULL AND lease_token IS NOT NULL))
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);

-- What a claim walks: of every queue only what may start, of every serial key only its head.
CREATE INDEX jobs_due_idx ON wakebell.jobs (queue, rank, id) WHERE status = 'pending' AND NOT waiting AND NOT held;

-- What counts towards a queue's limit, and whose lease has run out.
CREATE INDEX jobs_running_idx ON wakebell.jobs (queue, lease_until) WHERE status = 'running';

-- What is parked, by type, so that a release that knows the type finds it.
CREATE INDEX jobs_held_idx ON wakebell.jobs (type, id) WHERE held;

-- What pruning takes first.
CREATE INDEX jobs_old_idx ON wakebell.jobs (finished_at) WHERE finished_at IS NOT NULL;

-- One such job at a time. Over pending and running alike: a retry or a rescue cannot meet a twin.
CREATE UNIQUE INDEX jobs_type_unique_key_key ON wakebell.jobs (type, unique_key)
    WHERE unique_key IS NOT NULL AND status IN ('pending', 'running');

-- One head for each serial key, which the others wait behind.
CREATE UNIQUE INDEX jobs_head_key ON wakebell.jobs (serial_key)
    WHERE serial_key IS NOT NULL AND NOT waiting AND status IN ('pending', 'running');

-- Who waits behind it, in order.
CREATE INDEX jobs_line_idx ON wakebell.jobs (serial_key, id) WHERE waiting AND status = 'pending';

-- What waits for a person.
CREATE INDEX jobs_failed_idx ON wakebell.jobs (id) WHERE status = 'failed';


-- Limits and pauses. A queue without a row has none.
CREATE TABLE wakebell.queues (
    name text COLLATE "C" PRIMARY KEY,
    max_running integer,                        -- at once, over all replicas
    max_starts integer,                         -- within any period of that length
    period_seconds double precision,
    recent_starts timestamptz[] NOT NULL DEFAULT '{}',      -- the last max_starts of them, newest first
    paused_until timestamptz,                   -- 'infinity': until somebody ends it
    pause_reason text,

    CONSTRAINT queues_name_check CHECK (name <> ''),
    CONSTRAINT queues_max_running_check CHECK (max_running >= 0),
    CONSTRAINT queues_max_starts_check CHECK (max_starts BETWEEN 0 AND 10000),
    CONSTRAINT queues_period_check CHECK ((max_starts IS NULL) = (period_seconds IS NULL) AND period_seconds > 0)
);
