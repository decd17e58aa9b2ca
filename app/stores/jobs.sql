-- The statements with locks are functions of the database (`alembic/sql`); here they are only called.

-- name: enqueue
-- One job, or the one that has its unique key. Two at once: one creates it, the other waits for that commit.
SELECT added.id, added.created
FROM wakebell.enqueue(
    type => CAST(:type AS text),
    payload => CAST(CAST(:payload AS text) AS jsonb),
    queue => CAST(:queue AS text),
    priority => CAST(:priority AS integer),
    run_after => CAST(:run_after AS timestamptz),
    unique_key => CAST(:unique_key AS text),
    serial_key => CAST(:serial_key AS text),
    max_attempts => CAST(:max_attempts AS integer)
) AS added;

-- name: enqueue_own
-- The same for the service's own queues, which `enqueue` refuses.
SELECT added.id, added.created
FROM wakebell.add_job(
    type => CAST(:type AS text),
    payload => CAST(CAST(:payload AS text) AS jsonb),
    queue => CAST(:queue AS text),
    priority => 0,
    run_after => now() + make_interval(secs => CAST(:delay_seconds AS double precision)),
    unique_key => CAST(:unique_key AS text),
    serial_key => NULL,
    max_attempts => CAST(:max_attempts AS integer)
) AS added;

-- name: claim
-- Due jobs, leased. Claimers at once never share one and never wait for each other.
SELECT claimed.id, claimed.type, CAST(claimed.payload AS text) AS payload, claimed.queue, claimed.attempts,
       claimed.crashes, claimed.max_attempts, claimed.lease_until
FROM wakebell.claim_jobs(
    own => CAST(:own AS boolean),
    max_count => CAST(:most AS integer),
    leases => CAST(CAST(:leases AS text) AS jsonb),
    token => CAST(:token AS bigint)
) AS claimed;

-- name: lock
-- Whether the lease still holds; nobody can take the job before this transaction ends.
SELECT wakebell.lock_job(CAST(:id AS bigint), CAST(:token AS bigint)) AS locked;

-- name: finish
-- The job's status after its run; NULL when another tick has it, and nothing was written.
SELECT wakebell.finish_job(
    id => CAST(:id AS bigint),
    token => CAST(:token AS bigint),
    outcome => CAST(:outcome AS text),
    delay_seconds => CAST(:delay_seconds AS double precision),
    error => CAST(:error AS text),
    result => CAST(CAST(:result AS text) AS jsonb)
) AS status;

-- name: rescue
-- What became of jobs that nobody would have touched again. Two at once share them.
SELECT rescued.id, rescued.type, rescued.status
FROM wakebell.rescue_jobs(CAST(:most AS integer)) AS rescued;

-- name: park
-- How many due jobs were of none of these types. Two at once share them.
SELECT wakebell.park_jobs(CAST(CAST(:types AS text) AS jsonb)) AS parked;

-- name: count_startable
-- What a further claim could take now.
SELECT wakebell.count_startable(CAST(CAST(:types AS text) AS jsonb), CAST(:most AS integer)) AS startable;

-- name: next_due_at
-- When the next job may start. Reads the first 100 of each queue by rank: a priority lets a job rank up to 100 minutes
-- before it is due.
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
)
SELECT min(soon.run_after) AS next_due_at
FROM names AS n
CROSS JOIN LATERAL (
    SELECT j.run_after
    FROM wakebell.jobs AS j
    WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue = n.queue
    ORDER BY j.rank, j.id
    LIMIT 100
) AS soon;

-- name: prune
-- Jobs that ended long ago, oldest first. Two at once share them.
SELECT wakebell.prune_jobs(CAST(:keep_seconds AS double precision), CAST(:most AS integer)) AS pruned;

-- name: get
-- One job as it stands.
SELECT j.id, j.type, CAST(j.payload AS text) AS payload, j.queue, j.priority, j.status, j.run_after, j.waiting, j.held,
       j.attempts, j.crashes, j.max_attempts, j.unique_key, j.serial_key, j.last_error, CAST(j.result AS text) AS result,
       j.created_at, j.started_at, j.finished_at
FROM wakebell.jobs AS j
WHERE j.id = CAST(:id AS bigint);
