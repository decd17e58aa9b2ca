-- The queue: two tables, and every statement of it that takes a lock as a function.
--
-- Functions, because they are planned once a session and carry `jit = off`: with jit on, a claim that finds nothing
-- took 700 ms on PostgreSQL 15 instead of 2. `enable_seqscan = off`, because each statement here has its index, and a
-- plan made while the table was small must not be kept when it has grown. They rely on READ COMMITTED: each statement
-- of a function sees what was committed before it began.

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


-- The one way in. Waits for nobody but another transaction that puts in the same unique key.
CREATE FUNCTION wakebell.add_job(
    type text,
    payload jsonb,
    queue text,
    priority integer,
    run_after timestamptz,
    unique_key text,
    serial_key text,
    max_attempts integer
)
RETURNS TABLE (id bigint, created boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    LOOP
        -- At the front: there is no serial key, or this transaction alone puts in one and nobody of it is alive.
        -- The lock is never waited for. Who does not get it stands in line, and the rescue finds whoever was left
        -- without a head.
        INSERT INTO wakebell.jobs AS j (type, payload, queue, priority, run_after, unique_key, serial_key, max_attempts)
        SELECT
            add_job.type, add_job.payload, add_job.queue, add_job.priority,
            coalesce(add_job.run_after, now()), add_job.unique_key, add_job.serial_key, add_job.max_attempts
        WHERE add_job.serial_key IS NULL
           OR (
                pg_try_advisory_xact_lock(1464549964, hashtext(add_job.serial_key))
                AND NOT EXISTS (
                    SELECT FROM wakebell.jobs AS head
                    WHERE head.serial_key = add_job.serial_key
                      AND NOT head.waiting
                      AND head.status IN ('pending', 'running')
                )
           )
        ON CONFLICT DO NOTHING
        RETURNING j.id INTO add_job.id;
        IF FOUND THEN
            add_job.created := true;
            RETURN NEXT;
            RETURN;
        END IF;

        IF add_job.serial_key IS NOT NULL THEN
            INSERT INTO wakebell.jobs AS j
                (type, payload, queue, priority, run_after, unique_key, serial_key, max_attempts, waiting)
            VALUES (
                add_job.type, add_job.payload, add_job.queue, add_job.priority,
                coalesce(add_job.run_after, now()), add_job.unique_key, add_job.serial_key, add_job.max_attempts, true
            )
            ON CONFLICT DO NOTHING
            RETURNING j.id INTO add_job.id;
            IF FOUND THEN
                add_job.created := true;
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;

        SELECT j.id INTO add_job.id
        FROM wakebell.jobs AS j
        WHERE j.type = add_job.type
          AND j.unique_key = add_job.unique_key
          AND j.status IN ('pending', 'running');
        IF FOUND THEN
            add_job.created := false;
            RETURN NEXT;
            RETURN;
        END IF;
        -- The twin has ended in between: its key is free again.
    END LOOP;
END
$$;


-- For programs in any language, in their own transaction: the job exists if and only if they commit.
-- Runs with its owner's rights, so that EXECUTE on it is all that another role needs to be given.
CREATE FUNCTION wakebell.enqueue(
    type text,
    payload jsonb DEFAULT '{}',
    queue text DEFAULT 'default',
    priority integer DEFAULT 0,
    run_after timestamptz DEFAULT NULL,
    unique_key text DEFAULT NULL,
    serial_key text DEFAULT NULL,
    max_attempts integer DEFAULT 4
)
RETURNS TABLE (id bigint, created boolean)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    wrong text;
BEGIN
    payload := coalesce(payload, '{}');
    queue := coalesce(queue, 'default');
    priority := coalesce(priority, 0);
    max_attempts := coalesce(max_attempts, 4);
    wrong := CASE
        WHEN coalesce(type, '') = '' THEN 'type must not be empty'
        WHEN octet_length(type) > 200 THEN 'type must be at most 200 bytes'
        WHEN queue = '' THEN 'queue must not be empty'
        WHEN octet_length(queue) > 200 THEN 'queue must be at most 200 bytes'
        WHEN starts_with(queue, 'wakebell.') THEN 'queues named "wakebell.…" are the service''s own; choose another name'
        WHEN jsonb_typeof(payload) <> 'object' THEN 'payload must be a JSON object'
        WHEN octet_length(payload::text) > 262144 THEN 'payload must be at most 256 KiB; keep the rest elsewhere and pass its id'
        WHEN priority NOT BETWEEN 0 AND 100 THEN 'priority must be from 0 to 100'
        WHEN max_attempts < 1 THEN 'max_attempts must be at least 1'
        WHEN unique_key = '' OR octet_length(unique_key) > 1000 THEN 'unique_key must be from 1 to 1000 bytes'
        WHEN serial_key = '' OR octet_length(serial_key) > 1000 THEN 'serial_key must be from 1 to 1000 bytes'
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'wakebell.enqueue: %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY SELECT added.id, added.created FROM wakebell.add_job(
        type, payload, queue, priority, run_after, unique_key, serial_key, max_attempts
    ) AS added;
END
$$;


-- The next in line of a serial key becomes its head. The caller's transaction ended the head before, or holds the
-- key's lock and saw that there is none.
CREATE FUNCTION wakebell.promote_job(serial_key text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    UPDATE wakebell.jobs SET waiting = false
    WHERE id = (
        SELECT j.id
        FROM wakebell.jobs AS j
        WHERE j.serial_key = promote_job.serial_key AND j.waiting AND j.status = 'pending'
        ORDER BY j.id
        LIMIT 1
        FOR UPDATE
    );
    RETURN FOUND;
END
$$;


-- Lease due jobs. `leases` is {"type": seconds}: only these types are taken. Queues take turns, also when there is room
-- for one job only: who has fewest running goes first, chance decides between equals. Claimers at once never share a
-- job and never wait for each other.
CREATE FUNCTION wakebell.claim_jobs(own boolean, max_count integer, leases jsonb, token bigint)
RETURNS TABLE (
    id bigint,
    type text,
    payload jsonb,
    queue text,
    attempts integer,
    crashes integer,
    max_attempts integer,
    lease_until timestamptz
)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    types text[] := ARRAY(SELECT jsonb_object_keys(leases));
    locked text[];
BEGIN
    -- A limited queue belongs to one claimer at a time; the others pass it by. In a statement of its own: the next one
    -- sees what the claimer before has committed, and so counts right.
    locked := ARRAY(
        SELECT q.name
        FROM wakebell.queues AS q
        WHERE (q.max_running IS NOT NULL OR q.max_starts IS NOT NULL)
          AND starts_with(q.name, 'wakebell.') = own
          AND EXISTS (
              SELECT FROM wakebell.jobs AS j
              WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                AND j.queue = q.name AND j.rank <= now() AND j.run_after <= now()
                AND j.type = ANY (types)
          )
        ORDER BY q.name
        FOR UPDATE OF q SKIP LOCKED
    );

    RETURN QUERY
    WITH RECURSIVE names AS (       -- one index probe for each queue that has something pending
        (
            SELECT j.queue
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
              AND j.queue >= CASE WHEN own THEN 'wakebell.' ELSE '' END
            ORDER BY j.queue
            LIMIT 1
        )
        UNION ALL
        SELECT (
            SELECT j.queue
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue > n.queue
            ORDER BY j.queue
            LIMIT 1
        )
        FROM names AS n
        WHERE n.queue IS NOT NULL AND (NOT own OR starts_with(n.queue, 'wakebell.'))
    ), busy AS (
        SELECT n.queue, (
            SELECT count(*)::integer
            FROM wakebell.jobs AS j
            WHERE j.status = 'running' AND j.queue = n.queue AND j.lease_until > now()
        ) AS running
        FROM names AS n
        WHERE starts_with(n.queue, 'wakebell.') = own
    ), room AS MATERIALIZED (
        SELECT b.queue, b.running, CASE
            WHEN q.name IS NULL THEN max_count
            WHEN q.paused_until > now() THEN 0
            WHEN q.max_running IS NULL AND q.max_starts IS NULL THEN max_count
            WHEN NOT q.name = ANY (locked) THEN 0
            ELSE greatest(0, least(max_count, q.max_running - b.running, q.max_starts - (
                SELECT count(*)::integer
                FROM unnest(q.recent_starts) AS start_at
                WHERE start_at > now() - make_interval(secs => q.period_seconds)
            )))
        END AS free
        FROM busy AS b
        LEFT JOIN wakebell.queues AS q ON q.name = b.queue
    ), share AS MATERIALIZED (      -- how many each queue gives
        SELECT picked.queue, count(*)::integer AS size
        FROM (
            SELECT r.queue
            FROM room AS r
            CROSS JOIN LATERAL (
                SELECT row_number() OVER () AS turn
                FROM (
                    SELECT
                    FROM wakebell.jobs AS j
                    WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                      AND j.queue = r.queue AND j.rank <= now() AND j.run_after <= now()
                      AND j.type = ANY (types)
                    ORDER BY j.rank, j.id
                    LIMIT r.free
                ) AS due
            ) AS due
            ORDER BY r.running + due.turn, random()
            LIMIT max_count
        ) AS picked
        GROUP BY picked.queue
    ), picked AS MATERIALIZED (
        SELECT due.id, due.rank
        FROM share AS s
        CROSS JOIN LATERAL (
            SELECT j.id, j.rank
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
              AND j.queue = s.queue AND j.rank <= now() AND j.run_after <= now()
              AND j.type = ANY (types)
            ORDER BY j.rank, j.id
            LIMIT s.size
            FOR UPDATE SKIP LOCKED
        ) AS due
    ), claimed AS (
        UPDATE wakebell.jobs AS j SET
            status = 'running',
            attempts = j.attempts + 1,
            started_at = clock_timestamp(),    -- now() is older than what this statement sees
            lease_token = token,
            lease_until = now() + make_interval(secs => (leases ->> j.type)::double precision)
        WHERE j.id = ANY (ARRAY(SELECT p.id FROM picked AS p))
        RETURNING j.id, j.type, j.payload, j.queue, j.attempts, j.crashes, j.max_attempts, j.lease_until
    ), started AS (                 -- what the limit on starts counts
        UPDATE wakebell.queues AS q SET
            recent_starts = (array_fill(now(), ARRAY[c.size]) || q.recent_starts)[1:q.max_starts]
        FROM (SELECT claimed.queue, count(*)::integer AS size FROM claimed GROUP BY claimed.queue) AS c
        WHERE q.name = c.queue AND q.max_starts IS NOT NULL
    )
    SELECT
        c.id, c.type, c.payload, c.queue::text, c.attempts, c.crashes, c.max_attempts, c.lease_until
    FROM claimed AS c
    JOIN picked AS p ON p.id = c.id
    ORDER BY p.rank, c.id;
END
$$;


-- Whether the job is still this claim's; if so nobody else can take it before the caller's transaction ends.
CREATE FUNCTION wakebell.lock_job(id bigint, token bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    PERFORM
    FROM wakebell.jobs AS j
    WHERE j.id = lock_job.id AND j.status = 'running' AND j.lease_token = lock_job.token
    FOR UPDATE;
    RETURN FOUND;
END
$$;


-- Write down how a run ended; the answer is the job's status now, NULL when its lease was lost and nothing was written.
--   done, cancelled, failed    the job has ended
--   retry                      the run failed: again after the delay
--   snooze                     again after the delay, and the run does not count
--   release                    it was never started: due as before, and the run does not count
--   interrupted                the process was told to stop: due as before, counted as a crash
CREATE FUNCTION wakebell.finish_job(
    id bigint,
    token bigint,
    outcome text,
    delay_seconds double precision DEFAULT NULL,
    error text DEFAULT NULL,
    result jsonb DEFAULT NULL
)
RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    uncounted integer := CASE WHEN outcome IN ('snooze', 'release') THEN 1 ELSE 0 END;
    crashed integer := CASE WHEN outcome = 'interrupted' THEN 1 ELSE 0 END;
    finished record;
BEGIN
    IF outcome NOT IN ('done', 'cancelled', 'failed', 'retry', 'snooze', 'release', 'interrupted') THEN
        RAISE EXCEPTION 'wakebell.finish_job: the outcome "%" is not known', outcome
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    UPDATE wakebell.jobs AS j SET
        status = CASE
            WHEN outcome IN ('done', 'cancelled', 'failed') THEN outcome
            WHEN j.crashes + crashed >= 20 THEN 'failed'
            ELSE 'pending'
        END,
        finished_at = CASE
            WHEN outcome IN ('done', 'cancelled', 'failed') OR j.crashes + crashed >= 20 THEN clock_timestamp()
        END,
        attempts = j.attempts - uncounted,
        crashes = j.crashes + crashed,
        started_at = CASE WHEN outcome = 'release' AND j.attempts = 1 THEN NULL ELSE j.started_at END,
        run_after = CASE
            WHEN outcome IN ('retry', 'snooze') THEN now() + make_interval(secs => coalesce(delay_seconds, 0))
            ELSE j.run_after
        END,
        last_error = coalesce(error, j.last_error),
        result = coalesce(finish_job.result, j.result),
        lease_until = NULL,
        lease_token = NULL
    WHERE j.id = finish_job.id AND j.status = 'running' AND j.lease_token = finish_job.token
    RETURNING j.status, j.serial_key INTO finished;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    IF finished.serial_key IS NOT NULL AND finished.status <> 'pending' THEN
        PERFORM wakebell.promote_job(finished.serial_key);
    END IF;
    RETURN finished.status;
END
$$;


-- Bring back what would otherwise stay for ever: jobs whose lease ran out (`pending` again at once, `failed` after 20
-- crashes), and serial keys with jobs in line and no head (`promoted`): two transactions missed each other, or a head
-- was rolled back or deleted. Needs nothing but the jobs' own rows. At most `max_count` of either; two at once share.
CREATE FUNCTION wakebell.rescue_jobs(max_count integer)
RETURNS TABLE (id bigint, type text, status text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    expired record;
    head record;
    key text;
BEGIN
    FOR expired IN
        UPDATE wakebell.jobs AS j SET
            status = CASE WHEN j.crashes + 1 >= 20 THEN 'failed' ELSE 'pending' END,
            crashes = j.crashes + 1,
            finished_at = CASE WHEN j.crashes + 1 >= 20 THEN now() END,
            last_error = CASE
                WHEN j.crashes + 1 >= 20
                THEN 'given up: its process died or outlived the lease ' || (j.crashes + 1) || ' times while it ran'
                ELSE 'its process died or outlived the lease while it ran'
            END,
            lease_until = NULL,
            lease_token = NULL
        WHERE j.id = ANY (ARRAY(
            SELECT r.id
            FROM wakebell.jobs AS r
            WHERE r.status = 'running' AND r.lease_until < now()
            ORDER BY r.lease_until
            LIMIT max_count
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING j.id, j.type, j.status, j.serial_key
    LOOP
        IF expired.status = 'failed' AND expired.serial_key IS NOT NULL THEN
            PERFORM wakebell.promote_job(expired.serial_key);
        END IF;
        id := expired.id;
        type := expired.type;
        status := expired.status;
        RETURN NEXT;
    END LOOP;

    FOR key IN
        WITH RECURSIVE keys AS (    -- one index probe for each serial key with jobs in line
            (
                SELECT j.serial_key
                FROM wakebell.jobs AS j
                WHERE j.waiting AND j.status = 'pending'
                ORDER BY j.serial_key
                LIMIT 1
            )
            UNION ALL
            SELECT (
                SELECT j.serial_key
                FROM wakebell.jobs AS j
                WHERE j.waiting AND j.status = 'pending' AND j.serial_key > k.serial_key
                ORDER BY j.serial_key
                LIMIT 1
            )
            FROM keys AS k
            WHERE k.serial_key IS NOT NULL
        )
        SELECT k.serial_key
        FROM keys AS k
        WHERE k.serial_key IS NOT NULL
          AND NOT EXISTS (
              SELECT FROM wakebell.jobs AS j
              WHERE j.serial_key = k.serial_key AND NOT j.waiting AND j.status IN ('pending', 'running')
          )
        LIMIT max_count
    LOOP
        -- Lock first and look again in the next statement: the one above may be older than the lock.
        CONTINUE WHEN NOT pg_try_advisory_xact_lock(1464549964, hashtext(key));
        CONTINUE WHEN EXISTS (
            SELECT FROM wakebell.jobs AS j
            WHERE j.serial_key = key AND NOT j.waiting AND j.status IN ('pending', 'running')
        );
        CONTINUE WHEN NOT wakebell.promote_job(key);
        SELECT j.id, j.type INTO head
        FROM wakebell.jobs AS j
        WHERE j.serial_key = key AND NOT j.waiting AND j.status IN ('pending', 'running');
        id := head.id;
        type := head.type;
        status := 'promoted';
        RETURN NEXT;
    END LOOP;
END
$$;


-- Take due jobs of users' queues whose type is not in the list ["a", "b"] out of the claims' way, and put back those
-- whose type is. Looks at the first 1,000 of each queue, again until it finds none there or has parked 10,000: what
-- lies further back is in nobody's way yet. Returns how many it parked.
CREATE FUNCTION wakebell.park_jobs(types jsonb)
RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    known text[] := ARRAY(SELECT jsonb_array_elements_text(types));
    parked integer;
    total integer := 0;
BEGIN
    IF EXISTS (SELECT FROM wakebell.jobs AS j WHERE j.held) THEN
        UPDATE wakebell.jobs SET held = false
        WHERE id = ANY (ARRAY(
            SELECT j.id
            FROM wakebell.jobs AS j
            WHERE j.held AND j.type = ANY (known)
            LIMIT 10000
            FOR UPDATE SKIP LOCKED
        ));
    END IF;

    LOOP
        WITH RECURSIVE names AS (
            (
                SELECT j.queue
                FROM wakebell.jobs AS j
                WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                ORDER BY j.queue
                LIMIT 1
            )
            UNION ALL
            SELECT (
                SELECT j.queue
                FROM wakebell.jobs AS j
                WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue > n.queue
                ORDER BY j.queue
                LIMIT 1
            )
            FROM names AS n
            WHERE n.queue IS NOT NULL
        ), strange AS MATERIALIZED (
            SELECT due.id
            FROM names AS n
            CROSS JOIN LATERAL (
                SELECT j.id, j.type
                FROM wakebell.jobs AS j
                WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                  AND j.queue = n.queue AND j.rank <= now() AND j.run_after <= now()
                ORDER BY j.rank, j.id
                LIMIT 1000
            ) AS due
            WHERE NOT starts_with(n.queue, 'wakebell.') AND NOT due.type = ANY (known)
        )
        UPDATE wakebell.jobs SET held = true
        WHERE id = ANY (ARRAY(
            SELECT j.id
            FROM wakebell.jobs AS j
            WHERE j.id = ANY (ARRAY(SELECT s.id FROM strange AS s)) AND j.status = 'pending' AND NOT j.held
            FOR UPDATE SKIP LOCKED
        ));
        GET DIAGNOSTICS parked = ROW_COUNT;
        total := total + parked;
        EXIT WHEN parked = 0 OR total >= 10000;
    END LOOP;
    RETURN total;
END
$$;


-- How many jobs of these types, up to `max_count`, a claim could take now: due, first of their serial key, in a queue
-- neither paused nor full.
CREATE FUNCTION wakebell.count_startable(types jsonb, max_count integer)
RETURNS integer
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    known text[] := ARRAY(SELECT jsonb_array_elements_text(types));
BEGIN
    RETURN (
        WITH RECURSIVE names AS (
            (
                SELECT j.queue
                FROM wakebell.jobs AS j
                WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                ORDER BY j.queue
                LIMIT 1
            )
            UNION ALL
            SELECT (
                SELECT j.queue
                FROM wakebell.jobs AS j
                WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue > n.queue
                ORDER BY j.queue
                LIMIT 1
            )
            FROM names AS n
            WHERE n.queue IS NOT NULL
        ), room AS (
            SELECT n.queue, CASE
                WHEN q.name IS NULL THEN max_count
                WHEN q.paused_until > now() THEN 0
                ELSE greatest(0, least(
                    max_count,
                    q.max_running - (
                        SELECT count(*)::integer
                        FROM wakebell.jobs AS j
                        WHERE j.status = 'running' AND j.queue = n.queue AND j.lease_until > now()
                    ),
                    q.max_starts - (
                        SELECT count(*)::integer
                        FROM unnest(q.recent_starts) AS start_at
                        WHERE start_at > now() - make_interval(secs => q.period_seconds)
                    )
                ))
            END AS free
            FROM names AS n
            LEFT JOIN wakebell.queues AS q ON q.name = n.queue
            WHERE n.queue IS NOT NULL
        )
        SELECT count(*)::integer
        FROM (
            SELECT
            FROM room AS r
            CROSS JOIN LATERAL (
                SELECT
                FROM wakebell.jobs AS j
                WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                  AND j.queue = r.queue AND j.rank <= now() AND j.run_after <= now()
                  AND j.type = ANY (known)
                ORDER BY j.rank, j.id
                LIMIT r.free
            ) AS due
            LIMIT max_count
        ) AS startable
    );
END
$$;


-- Forget jobs that ended longer ago than that, oldest first, at most `max_count`: a backlog goes over several calls.
CREATE FUNCTION wakebell.prune_jobs(keep_seconds double precision, max_count integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
DECLARE
    pruned integer;
BEGIN
    DELETE FROM wakebell.jobs
    WHERE id = ANY (ARRAY(
        SELECT j.id
        FROM wakebell.jobs AS j
        WHERE j.finished_at < now() - make_interval(secs => keep_seconds)
        ORDER BY j.finished_at
        LIMIT max_count
        FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END
$$;
