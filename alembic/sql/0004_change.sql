-- What people do with jobs that are there. Each answers with the job's status now, NULL when there is no such job, and
-- runs with its owner's rights, as `enqueue` does. The service's own jobs (queues named `wakebell.…`) are refused: what they
-- stand for lies in other tables. One that failed may be tried again: each of them can bear to run twice.


-- A serial job that comes back: whether it is the head of its line. As in `add_job`, the lock is never waited for.
CREATE FUNCTION wakebell.may_lead(serial_key text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(1464549964, hashtext(may_lead.serial_key)) THEN
        RETURN false;
    END IF;
    RETURN NOT EXISTS (     -- in a statement of its own: it sees what was committed before the lock was taken
        SELECT FROM wakebell.jobs AS j
        WHERE j.serial_key = may_lead.serial_key AND NOT j.waiting AND j.status IN ('pending', 'running')
    );
END
$$;


CREATE FUNCTION wakebell.refuse_own(queue text, what text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF starts_with(queue, 'wakebell.') THEN
        RAISE EXCEPTION '%: jobs in queues named "wakebell.…" are the service''s own', what
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;


-- Take out a job that has not started, or waits for its next try. 'cancelled': it is. 'running', 'done', 'failed': too late.
CREATE FUNCTION wakebell.cancel_job(id bigint)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
DECLARE
    found_job record;
BEGIN
    SELECT j.status, j.queue, j.waiting, j.serial_key INTO found_job
    FROM wakebell.jobs AS j
    WHERE j.id = cancel_job.id
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM wakebell.refuse_own(found_job.queue, 'wakebell.cancel_job');
    IF found_job.status <> 'pending' THEN
        RETURN found_job.status;
    END IF;

    UPDATE wakebell.jobs AS j SET
        status = 'cancelled', finished_at = clock_timestamp(), waiting = false, held = false
    WHERE j.id = cancel_job.id;
    IF found_job.serial_key IS NOT NULL AND NOT found_job.waiting THEN
        PERFORM wakebell.promote_job(found_job.serial_key);
    END IF;
    RETURN 'cancelled';
END
$$;


-- Run a job again, now: one that failed or was cancelled with all its tries; one that is pending without waiting for its
-- time. 'pending': it will. 'running', 'done': it was left as it is. 'taken': so was it, since another job has its unique
-- key. Its place in the line of its serial key is that of its id.
CREATE FUNCTION wakebell.retry_job(id bigint)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
DECLARE
    found_job record;
BEGIN
    SELECT j.status, j.queue, j.serial_key INTO found_job
    FROM wakebell.jobs AS j
    WHERE j.id = retry_job.id
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF found_job.status <> 'failed' THEN
        PERFORM wakebell.refuse_own(found_job.queue, 'wakebell.retry_job');
    END IF;

    IF found_job.status = 'pending' THEN
        UPDATE wakebell.jobs AS j SET run_after = least(j.run_after, now()) WHERE j.id = retry_job.id;
    ELSIF found_job.status IN ('failed', 'cancelled') THEN
        BEGIN
            UPDATE wakebell.jobs AS j SET
                status = 'pending',
                run_after = now(),
                attempts = 0,
                crashes = 0,
                started_at = NULL,
                finished_at = NULL,
                waiting = found_job.serial_key IS NOT NULL AND NOT wakebell.may_lead(found_job.serial_key)
            WHERE j.id = retry_job.id;
        EXCEPTION WHEN unique_violation THEN
            RETURN 'taken';
        END;
    ELSE
        RETURN found_job.status;
    END IF;
    RETURN 'pending';
END
$$;


-- `retry_job` for the failed ones of a type, oldest first, at most `max_count`; those whose unique key another job has
-- are passed by. Returns how many will run. In the order in which `add_jobs` takes keys, so that the two never deadlock.
CREATE FUNCTION wakebell.retry_jobs(type text, max_count integer)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
DECLARE
    failed bigint;
    retried integer := 0;
BEGIN
    FOR failed IN
        SELECT chosen.id
        FROM (
            SELECT j.id, j.unique_key
            FROM wakebell.jobs AS j
            WHERE j.type = retry_jobs.type
              AND j.status = 'failed'
              AND (
                  SELECT true
                  FROM wakebell.jobs AS twin
                  WHERE twin.type = j.type AND twin.unique_key = j.unique_key AND twin.status IN ('pending', 'running')
                  LIMIT 1
              ) IS NULL
            ORDER BY j.id
            LIMIT max_count
            FOR UPDATE OF j SKIP LOCKED
        ) AS chosen
        ORDER BY chosen.unique_key COLLATE "C", chosen.id
    LOOP
        IF wakebell.retry_job(failed) = 'pending' THEN
            retried := retried + 1;
        END IF;
    END LOOP;
    RETURN retried;
END
$$;


-- Another time for a job that is pending. 'pending': it has it. Anything else: too late.
CREATE FUNCTION wakebell.reschedule_job(id bigint, run_after timestamptz)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
DECLARE
    found_job record;
BEGIN
    IF run_after IS NULL THEN
        RAISE EXCEPTION 'wakebell.reschedule_job: run_after must be a time' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT j.status, j.queue INTO found_job
    FROM wakebell.jobs AS j
    WHERE j.id = reschedule_job.id
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM wakebell.refuse_own(found_job.queue, 'wakebell.reschedule_job');
    IF found_job.status = 'pending' THEN
        UPDATE wakebell.jobs AS j SET run_after = reschedule_job.run_after WHERE j.id = reschedule_job.id;
    END IF;
    RETURN found_job.status;
END
$$;
