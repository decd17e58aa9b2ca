-- Put in what follows on jobs that are being done. Called twice with the same jobs: before their `done` is written
-- (`ended` false) for all that has another key, after it for what has the unique key of one of them, which is free only
-- then. In that order it waits for nobody once it holds a key that others wait for.
CREATE FUNCTION wakebell.add_following(ids bigint[], ended boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    following jsonb;
BEGIN
    SELECT jsonb_agg(f.job ORDER BY j.id, f.at) INTO following
    FROM wakebell.jobs AS j
    CROSS JOIN LATERAL jsonb_array_elements(j.then_jobs) WITH ORDINALITY AS f (job, at)
    WHERE j.id = ANY (ids)
      AND wakebell.jobs_fault(j.then_jobs, 100, 'then', 1) IS NULL
      AND ended = EXISTS (
          SELECT FROM wakebell.jobs AS freed
          WHERE freed.id = ANY (ids)
            AND freed.type = f.job ->> 'type'
            AND freed.unique_key = f.job ->> 'unique_key'
      );
    IF following IS NOT NULL THEN
        PERFORM FROM wakebell.add_jobs(following);
    END IF;

    IF ended THEN       -- a list that was not put in by `enqueue_many` must not keep its job from ending
        UPDATE wakebell.jobs AS j SET
            last_error = 'what should follow was not put in: ' || wakebell.jobs_fault(j.then_jobs, 100, 'then', 1)
        WHERE j.id = ANY (ids)
          AND j.then_jobs IS NOT NULL
          AND wakebell.jobs_fault(j.then_jobs, 100, 'then', 1) IS NOT NULL;
    END IF;
END
$$;


-- `finish_job`, with the traceback of what failed. `retry`, `failed` and a process that is given up are kept in
-- `failures`.
CREATE FUNCTION wakebell.end_job(
    id bigint,
    token bigint,
    outcome text,
    delay_seconds double precision DEFAULT NULL,
    error text DEFAULT NULL,
    result jsonb DEFAULT NULL,
    traceback text DEFAULT NULL
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
    following boolean := false;
    finished record;
BEGIN
    IF outcome NOT IN ('done', 'cancelled', 'failed', 'retry', 'snooze', 'release', 'interrupted') THEN
        RAISE EXCEPTION 'wakebell.finish_job: the outcome "%" is not known', outcome
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    IF outcome = 'done' THEN
        PERFORM
        FROM wakebell.jobs AS j
        WHERE j.id = end_job.id AND j.status = 'running' AND j.lease_token = end_job.token
          AND j.then_jobs IS NOT NULL
        FOR UPDATE;
        following := FOUND;
        IF following THEN
            PERFORM wakebell.add_following(ARRAY[end_job.id], false);
        END IF;
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
        failures = CASE
            WHEN outcome IN ('retry', 'failed') OR (outcome = 'interrupted' AND j.crashes + crashed >= 20)
            THEN wakebell.failures_with(j.failures, j.attempts, error, traceback)
            ELSE j.failures
        END,
        result = coalesce(end_job.result, j.result),
        lease_until = NULL,
        lease_token = NULL
    WHERE j.id = end_job.id AND j.status = 'running' AND j.lease_token = end_job.token
    RETURNING j.status, j.serial_key INTO finished;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    IF finished.serial_key IS NOT NULL AND finished.status <> 'pending' THEN
        PERFORM wakebell.promote_job(finished.serial_key);
    END IF;
    IF following THEN       -- last: what follows must find the head of its line
        PERFORM wakebell.add_following(ARRAY[end_job.id], true);
    END IF;
    RETURN finished.status;
END
$$;


-- For releases that know nothing of tracebacks.
CREATE OR REPLACE FUNCTION wakebell.finish_job(
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
AS $$
BEGIN
    RETURN wakebell.end_job(id, token, outcome, delay_seconds, error, result, NULL);
END
$$;


-- Many that are `done`, each with the token of its claim at the same place in `tokens`; arrays as text, `{1,2}`. `results`
-- is {"id": result} for those that have one. Returns the ids that were finished: the others lost their lease, and nothing
-- was written for them.
CREATE FUNCTION wakebell.finish_jobs(ids text, tokens text, results jsonb DEFAULT NULL)
RETURNS TABLE (id bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    given bigint[] := ids::bigint[];
    fences bigint[] := tokens::bigint[];
    following bigint[];
    claim record;
    ended bigint[];
    lines text[];
    finished bigint[] := '{}';
    keys text[] := '{}';
BEGIN
    IF EXISTS (
        SELECT FROM wakebell.jobs AS j
        WHERE j.id = ANY (given) AND j.status = 'running' AND j.then_jobs IS NOT NULL
    ) THEN
        following := ARRAY(
            SELECT j.id
            FROM wakebell.jobs AS j
            WHERE j.id = ANY (given) AND j.status = 'running' AND j.lease_token = fences[array_position(given, j.id)]
            ORDER BY j.id
            FOR UPDATE
        );
        PERFORM wakebell.add_following(following, false);
    END IF;

    -- One statement for each token: joined with a list of tokens, the plan changed after five calls and took eight times
    -- as long.
    FOR claim IN
        SELECT c.token, array_agg(c.id) AS ids
        FROM unnest(given, fences) AS c (id, token)
        GROUP BY c.token
    LOOP
        WITH ended AS (
            UPDATE wakebell.jobs AS j SET
                status = 'done',
                finished_at = clock_timestamp(),
                result = coalesce(results -> j.id::text, j.result),
                lease_until = NULL,
                lease_token = NULL
            WHERE j.id = ANY (claim.ids) AND j.status = 'running' AND j.lease_token = claim.token
            RETURNING j.id, j.serial_key
        )
        SELECT array_agg(e.id), array_agg(e.serial_key) FILTER (WHERE e.serial_key IS NOT NULL) INTO ended, lines
        FROM ended AS e;
        finished := finished || ended;
        keys := keys || lines;
    END LOOP;

    IF cardinality(keys) > 0 THEN       -- `promote_job` for each, in one statement and one order
        UPDATE wakebell.jobs SET waiting = false
        WHERE id = ANY (ARRAY(
            SELECT next.id
            FROM (SELECT DISTINCT k.key FROM unnest(keys) AS k (key) ORDER BY k.key) AS k
            CROSS JOIN LATERAL (
                SELECT j.id
                FROM wakebell.jobs AS j
                WHERE j.serial_key = k.key AND j.waiting AND j.status = 'pending'
                ORDER BY j.id
                LIMIT 1
                FOR UPDATE
            ) AS next
        ));
    END IF;
    IF following IS NOT NULL THEN       -- last: what follows must find the head of its line
        PERFORM wakebell.add_following(following, true);
    END IF;
    RETURN QUERY SELECT unnest(finished);
END
$$;


-- What a drain does between two batches, in one call and one commit: `finish_jobs`, then `claim_jobs`, which finds what
-- the first has set free. Rows are `what` = 'finished', with the id alone, or 'claimed'. Nothing to finish: `{}` and `{}`;
-- nothing to claim: `max_count` 0.
CREATE FUNCTION wakebell.turn_jobs(
    done_ids text,
    done_tokens text,
    results jsonb,
    own boolean,
    max_count integer,
    leases jsonb,
    token bigint
)
RETURNS TABLE (
    what text,
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
AS $$
#variable_conflict use_column
BEGIN
    IF done_ids <> '{}' THEN
        RETURN QUERY
        SELECT 'finished', f.id, NULL::text, NULL::jsonb, NULL::text, NULL::integer, NULL::integer, NULL::integer,
            NULL::timestamptz
        FROM wakebell.finish_jobs(done_ids, done_tokens, results) AS f;
    END IF;
    IF max_count > 0 THEN
        RETURN QUERY
        SELECT 'claimed', c.id, c.type, c.payload, c.queue, c.attempts, c.crashes, c.max_attempts, c.lease_until
        FROM wakebell.claim_jobs(own, max_count, leases, token) AS c;
    END IF;
END
$$;


-- Bring back what would otherwise stay for ever: jobs whose lease ran out (`pending` again at once, `failed` after 20
-- crashes), and serial keys with jobs in line and no head (`promoted`): two transactions missed each other, or a head
-- was rolled back or deleted. Needs nothing but the jobs' own rows. At most `max_count` of either; two at once share.
CREATE OR REPLACE FUNCTION wakebell.rescue_jobs(max_count integer)
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
            failures = wakebell.failures_with(
                j.failures, j.attempts, 'its process died or outlived the lease while it ran', NULL
            ),
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
