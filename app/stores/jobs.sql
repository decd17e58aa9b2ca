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

-- name: replace
-- The id of the pending job of that key, which has this payload now, and this time where one is given; else NULL.
SELECT wakebell.replace_job(
    type => CAST(:type AS text),
    unique_key => CAST(:unique_key AS text),
    payload => CAST(CAST(:payload AS text) AS jsonb),
    run_after => CAST(:run_after AS timestamptz)
) AS id;

-- name: enqueue_many
-- All or none of them; two at once wait for each other where their unique keys meet, and never deadlock. One row for all,
-- since ten thousand cost a tenth of the whole: ids in order, below zero where a twin was there already.
SELECT CAST(json_agg(CASE WHEN added.created THEN added.id ELSE -added.id END ORDER BY added.position) AS text) AS ids
FROM wakebell.check_and_add_jobs(CAST(CAST(:jobs AS text) AS jsonb), CAST(:most AS integer)) AS added;

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
    token => CAST(:token AS bigint),
    only_queue => CAST(:queue AS text)
) AS claimed;

-- name: turn
-- Done jobs finished, then due jobs leased. Who lost a lease is missing among the finished. One row for all, the next to
-- be started first: a thousand rows cost the client as much as running them. A payload nested so deeply that one reader
-- would stumble over all of them is left out.
SELECT CAST(json_build_object(
    'finished', json_agg(turned.id) FILTER (WHERE turned.what = 'finished'),
    'claimed', json_agg(json_build_array(
        turned.id, turned.type,
        CASE WHEN NOT jsonb_path_exists(turned.payload, '$.**{200}') THEN turned.payload END, turned.queue, turned.attempts, turned.crashes, turned.max_attempts,
        turned.lease_until
    )) FILTER (WHERE turned.what = 'claimed')
) AS text) AS turned
FROM wakebell.turn_jobs(
    done_ids => CAST(:ids AS text),
    done_tokens => CAST(:tokens AS text),
    results => CAST(CAST(:results AS text) AS jsonb),
    own => CAST(:own AS boolean),
    max_count => CAST(:most AS integer),
    leases => CAST(CAST(:leases AS text) AS jsonb),
    token => CAST(:token AS bigint),
    only_queue => CAST(:queue AS text)
) AS turned;

-- name: release
-- How many were given back. Who lost a lease is let be.
SELECT wakebell.release_jobs(CAST(:ids AS text), CAST(:tokens AS text)) AS released;

-- name: lock
-- Whether the lease still holds; nobody can take the job before this transaction ends.
SELECT wakebell.lock_job(CAST(:id AS bigint), CAST(:token AS bigint)) AS locked;

-- name: finish
-- The job's status after its run; NULL when another tick has it, and nothing was written.
SELECT wakebell.end_job(
    id => CAST(:id AS bigint),
    token => CAST(:token AS bigint),
    outcome => CAST(:outcome AS text),
    delay_seconds => CAST(:delay_seconds AS double precision),
    error => CAST(:error AS text),
    result => CAST(CAST(:result AS text) AS jsonb),
    traceback => CAST(:traceback AS text)
) AS status;

-- name: cancel
-- The job's status now; NULL when there is none. Waits for a claim that has the job in hand.
SELECT wakebell.cancel_job(CAST(:id AS bigint)) AS status;

-- name: retry
-- The job's status now, or 'taken'; NULL when there is none.
SELECT wakebell.retry_job(CAST(:id AS bigint)) AS status;

-- name: retry_all
-- How many failed jobs of the type will run again. Two at once share them.
SELECT wakebell.retry_jobs(CAST(:type AS text), CAST(:most AS integer)) AS retried;

-- name: reschedule
-- The job's status now; NULL when there is none. Waits for a claim that has the job in hand.
SELECT wakebell.reschedule_job(CAST(:id AS bigint), CAST(:run_after AS timestamptz)) AS status;

-- name: rescue
-- What became of jobs that nobody would have touched again. Two at once share them.
SELECT rescued.id, rescued.type, rescued.status
FROM wakebell.rescue_jobs(CAST(:most AS integer)) AS rescued;

-- name: park
-- How many due jobs were of none of these types. Two at once share them.
SELECT wakebell.park_jobs(CAST(CAST(:types AS text) AS jsonb)) AS parked;

-- name: count_startable
-- What a further claim could take now.
SELECT wakebell.count_startable(
    types => CAST(CAST(:types AS text) AS jsonb),
    max_count => CAST(:most AS integer),
    only_queue => CAST(:queue AS text)
) AS startable;

-- name: look
-- What there is for a tick, and when the next job may start.
SELECT found.rescuable, found.strange, found.startable, found.next_due_at AS next_job_at
FROM wakebell.look_at_jobs(
    types => CAST(CAST(:types AS text) AS jsonb),
    users => CAST(CAST(:users AS text) AS jsonb),
    max_count => CAST(:most AS integer)
) AS found;

-- name: prune
-- Jobs that ended long ago, oldest first. Two at once share them.
SELECT wakebell.prune_jobs(CAST(:keep_seconds AS double precision), CAST(:most AS integer)) AS pruned;

-- name: get
-- One job as it stands.
SELECT j.id, j.type, CAST(j.payload AS text) AS payload, j.queue, j.priority, j.status,
       wakebell.readable(j.run_after) AS run_after, j.waiting, j.held,
       j.attempts, j.crashes, j.max_attempts, j.unique_key, j.serial_key, j.last_error, CAST(j.result AS text) AS result,
       j.created_at, j.started_at, j.finished_at, CAST(j.failures AS text) AS failures,
       CAST(j.then_jobs AS text) AS then_jobs
FROM wakebell.jobs AS j
WHERE j.id = CAST(:id AS bigint);
