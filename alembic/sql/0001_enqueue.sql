-- Every statement of the queue that takes a lock is a function of the database.
--
-- Functions, because they are planned once a session and carry `jit = off`: with jit on, a claim that finds nothing
-- took 700 ms on PostgreSQL 15 instead of 2. `enable_seqscan = off`, because each statement here has its index, and a
-- plan made while the table was small must not be kept when it has grown. They rely on READ COMMITTED: each statement
-- of a function sees what was committed before it began.


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
