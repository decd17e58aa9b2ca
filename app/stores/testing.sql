-- For tests of users' handlers (`app/testing.py`); the service runs none of these.

-- name: look
-- The instant by the database, and how many jobs there are, the service's own too, and settings of queues.
SELECT clock_timestamp() AS at,
       (SELECT count(*) FROM wakebell.jobs) + (SELECT count(*) FROM wakebell.queues) AS found;

-- name: begin_job
-- A job that is running already, in no claim's way.
INSERT INTO wakebell.jobs (
    type, payload, queue, status, attempts, max_attempts, started_at, lease_until, lease_token
)
VALUES (
    CAST(:type AS text), CAST(CAST(:payload AS text) AS jsonb), CAST(:queue AS text), 'running',
    CAST(:attempt AS integer), CAST(:max_attempts AS integer), now(), now() + interval '1 hour',
    CAST(:token AS bigint)
)
RETURNING id, type, CAST(payload AS text) AS payload, queue, attempts, crashes, max_attempts, lease_until;

-- name: remove_job
-- As if it had never been.
DELETE FROM wakebell.jobs
WHERE id = CAST(:id AS bigint);

-- name: jobs
-- Users' jobs in the order in which they were put in.
SELECT j.id, j.type, CAST(j.payload AS text) AS payload, j.queue, j.priority, j.status, j.run_after, j.waiting, j.held,
       j.attempts, j.crashes, j.max_attempts, j.unique_key, j.serial_key, j.last_error, CAST(j.result AS text) AS result,
       j.created_at, j.started_at, j.finished_at, CAST(j.failures AS text) AS failures,
       CAST(j.then_jobs AS text) AS then_jobs
FROM wakebell.jobs AS j
WHERE NOT starts_with(j.queue, 'wakebell.')
  AND (CAST(:type AS text) IS NULL OR j.type = CAST(:type AS text))
  AND (CAST(:status AS text) IS NULL OR j.status = CAST(:status AS text))
  AND (CAST(:queue AS text) IS NULL OR j.queue = CAST(:queue AS text))
  AND (CAST(:started_since AS timestamptz) IS NULL OR j.started_at >= CAST(:started_since AS timestamptz))
ORDER BY j.id;

-- name: advance
-- Later, as far as users' jobs that wait and queues that are paused or limited can tell.
WITH moved AS (
    UPDATE wakebell.jobs SET
        run_after = run_after - make_interval(secs => CAST(:seconds AS double precision)),
        created_at = created_at - make_interval(secs => CAST(:seconds AS double precision))
    WHERE status = 'pending' AND NOT starts_with(queue, 'wakebell.')
)
UPDATE wakebell.queues SET
    paused_until = paused_until - make_interval(secs => CAST(:seconds AS double precision)),
    recent_starts = ARRAY(
        SELECT start_at - make_interval(secs => CAST(:seconds AS double precision))
        FROM unnest(recent_starts) WITH ORDINALITY AS started (start_at, place)
        ORDER BY place
    );

-- name: clear
-- Jobs and queues as in a new database.
WITH gone AS (DELETE FROM wakebell.jobs)
DELETE FROM wakebell.queues;
