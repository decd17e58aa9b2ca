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
          AND (                     -- not NOT EXISTS: that may be planned as a join that walks over the whole index
              SELECT true
              FROM wakebell.jobs AS j
              WHERE j.serial_key = k.serial_key AND NOT j.waiting AND j.status IN ('pending', 'running')
              LIMIT 1
          ) IS NULL
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
