-- What is wrong with a list of jobs to put in, in one sentence that begins with its place, `jobs[3]: …`; else NULL.
-- The same rules as those of `enqueue`. `depth` is how many jobs these follow.
CREATE FUNCTION wakebell.jobs_fault(jobs jsonb, max_count integer, place text, depth integer)
RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    told text;
BEGIN
    told := CASE
        WHEN jobs IS NULL OR jsonb_typeof(jobs) <> 'array' THEN place || ' must be a JSON array'
        WHEN jsonb_array_length(jobs) > max_count THEN place || ' must be at most ' || max_count || ' at once'
        WHEN depth > 10 THEN place || ' must not follow more than 10 others'
        WHEN depth > 0 AND octet_length(jobs::text) > 262144 THEN place || ' must be at most 256 KiB in all'
    END;
    IF told IS NOT NULL THEN
        RETURN told;
    END IF;

    SELECT place || '[' || wrong.at - 1 || ']: ' || wrong.told INTO told
    FROM (
        SELECT given.at, CASE
            WHEN jsonb_typeof(given.job) <> 'object' THEN 'must be a JSON object'
            WHEN given.job - '{type,payload,queue,priority,run_after,delay_seconds,unique_key,serial_key,max_attempts,then}'::text[] <> '{}'
            THEN 'must not have the key ' || (
                SELECT to_json(min(strange.key))
                FROM jsonb_object_keys(given.job) AS strange (key)
                WHERE NOT strange.key = ANY ('{type,payload,queue,priority,run_after,delay_seconds,unique_key,serial_key,max_attempts,then}')
            )
        END AS told
        FROM jsonb_array_elements(jobs) WITH ORDINALITY AS given (job, at)
    ) AS wrong
    WHERE wrong.told IS NOT NULL
    ORDER BY wrong.at
    LIMIT 1;
    IF told IS NOT NULL THEN
        RETURN told;
    END IF;

    SELECT CASE WHEN starts_with(wrong.told, place || '[')
        THEN wrong.told
        ELSE place || '[' || wrong.at - 1 || ']: ' || wrong.told
    END INTO told
    FROM (
        SELECT given.at, CASE
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
            WHEN run_after IS NOT NULL AND delay_seconds IS NOT NULL THEN 'run_after and delay_seconds exclude each other'
            WHEN delay_seconds NOT BETWEEN 0 AND 315360000 THEN 'delay_seconds must be from 0 to 315360000, ten years'
            WHEN "then" IS NOT NULL
            THEN wakebell.jobs_fault("then", 100, place || '[' || given.at - 1 || '].then', depth + 1)
        END AS told
        FROM ROWS FROM (jsonb_to_recordset(jobs) AS (
            type text, payload jsonb, queue text, priority integer, run_after timestamptz,
            delay_seconds double precision, unique_key text, serial_key text, max_attempts integer, "then" jsonb
        )) WITH ORDINALITY AS given (
            type, payload, queue, priority, run_after, delay_seconds, unique_key, serial_key, max_attempts, "then", at
        )
    ) AS wrong
    WHERE wrong.told IS NOT NULL
    ORDER BY wrong.at
    LIMIT 1;
    RETURN told;
EXCEPTION WHEN data_exception THEN      -- a text that is no time, a number that is none: look for its place
    IF jsonb_array_length(jobs) = 1 THEN
        RETURN place || '[0]: ' || SQLERRM;
    END IF;
    FOR index IN 0 .. jsonb_array_length(jobs) - 1 LOOP
        told := wakebell.jobs_fault(jsonb_build_array(jobs -> index), 1, place, depth);
        IF told IS NOT NULL THEN
            RETURN place || '[' || index || ']' || substr(told, length(place || '[0]') + 1);
        END IF;
    END LOOP;
    RETURN place || ': ' || SQLERRM;
END
$$;


-- The way in for many: all or none, in as few statements as can be. Its jobs are right already (`jobs_fault`).
--
-- Two at once never deadlock: keys are put in in one order, and who must begin again gives back what it had. Ids are
-- dealt out in the order of the list, which is the order of serial keys. A serial job is put in at the end of its line
-- and made its head afterwards, by the rules of `add_job`: the lock is never waited for, the rescue finds who was left.
CREATE FUNCTION wakebell.add_jobs(jobs jsonb)
RETURNS TABLE ("position" integer, id bigint, created boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    ids bigint[];           -- by position
    added bigint[];
    twins bigint[];         -- by position; NULL where the job was added
    keys text[];
    key text;
BEGIN
    LOOP
        BEGIN
            WITH given AS MATERIALIZED (
                SELECT nextval('wakebell.jobs_id_seq') AS id, listed.*
                FROM ROWS FROM (jsonb_to_recordset(jobs) AS (
                    type text, payload jsonb, queue text, priority integer, run_after timestamptz,
                    delay_seconds double precision, unique_key text, serial_key text, max_attempts integer,
                    "then" jsonb
                )) WITH ORDINALITY AS listed (
                    type, payload, queue, priority, run_after, delay_seconds, unique_key, serial_key, max_attempts,
                    "then", at
                )
            ), added AS (
                INSERT INTO wakebell.jobs AS j (
                    id, type, payload, queue, priority, run_after, unique_key, serial_key, max_attempts, then_jobs,
                    waiting
                )
                OVERRIDING SYSTEM VALUE
                SELECT
                    g.id, g.type, coalesce(g.payload, '{}'), coalesce(g.queue, 'default'), coalesce(g.priority, 0),
                    coalesce(g.run_after, now() + make_interval(secs => g.delay_seconds), now()),
                    g.unique_key, g.serial_key, coalesce(g.max_attempts, 4), nullif(g."then", '[]'),
                    g.serial_key IS NOT NULL
                FROM given AS g
                ORDER BY g.type COLLATE "C", g.unique_key COLLATE "C", g.id
                ON CONFLICT (type, unique_key) WHERE unique_key IS NOT NULL AND status IN ('pending', 'running') DO NOTHING
                RETURNING j.id, j.serial_key
            )
            SELECT
                (SELECT array_agg(g.id ORDER BY g.at) FROM given AS g),
                (SELECT array_agg(a.id) FROM added AS a),
                (SELECT array_agg(DISTINCT a.serial_key) FROM added AS a WHERE a.serial_key IS NOT NULL)
            INTO ids, added, keys;

            twins := NULL;
            IF cardinality(added) IS DISTINCT FROM cardinality(ids) THEN
                -- In a statement of its own: it sees what was committed while the one above waited.
                SELECT array_agg(CASE WHEN a.id IS NULL THEN (
                    SELECT j.id
                    FROM wakebell.jobs AS j
                    WHERE j.type = jobs -> (listed.at - 1)::integer ->> 'type'
                      AND j.unique_key = jobs -> (listed.at - 1)::integer ->> 'unique_key'
                      AND j.status IN ('pending', 'running')
                ) END ORDER BY listed.at) INTO twins
                FROM unnest(ids) WITH ORDINALITY AS listed (id, at)
                LEFT JOIN unnest(added) AS a (id) ON a.id = listed.id;

                IF (SELECT count(*) FROM unnest(twins) AS twin (id) WHERE twin.id IS NULL)
                   > coalesce(cardinality(added), 0) THEN
                    RAISE EXCEPTION USING ERRCODE = 'WB001';    -- a twin has ended in between: its key is free again
                END IF;
            END IF;
            EXIT;
        EXCEPTION WHEN SQLSTATE 'WB001' THEN
        END;
    END LOOP;

    FOR key IN      -- not all of a long list: each lock takes a place in the server's one table of locks
        SELECT k.key FROM unnest(keys) AS k (key) ORDER BY k.key COLLATE "C" LIMIT 1000
    LOOP
        CONTINUE WHEN NOT pg_try_advisory_xact_lock(1464549964, hashtext(key));
        CONTINUE WHEN EXISTS (
            SELECT FROM wakebell.jobs AS j
            WHERE j.serial_key = key AND NOT j.waiting AND j.status IN ('pending', 'running')
        );
        PERFORM wakebell.promote_job(key);
    END LOOP;

    RETURN QUERY
    SELECT (listed.at - 1)::integer, coalesce(listed.twin, listed.id), listed.twin IS NULL
    FROM unnest(ids, twins) WITH ORDINALITY AS listed (id, twin, at);
END
$$;


-- `add_jobs` of what somebody else wrote, at most `max_count`.
CREATE FUNCTION wakebell.check_and_add_jobs(jobs jsonb, max_count integer)
RETURNS TABLE ("position" integer, id bigint, created boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    wrong text := wakebell.jobs_fault(jobs, max_count, 'jobs', 0);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'wakebell.enqueue_many: %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY SELECT a."position", a.id, a.created FROM wakebell.add_jobs(jobs) AS a;
END
$$;


-- For programs in any language: up to 1,000 jobs in the caller's transaction, all or none. Each is an object with the
-- names of `enqueue`'s parameters; `delay_seconds` in place of `run_after`, and `then`, a list of such objects that are
-- put in when it is done, have no parameter there. Positions count from 0. Rights as for `enqueue`.
CREATE FUNCTION wakebell.enqueue_many(jobs jsonb)
RETURNS TABLE ("position" integer, id bigint, created boolean)
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT a."position", a.id, a.created FROM wakebell.check_and_add_jobs(jobs, 1000) AS a
$$;


-- Another payload, another time, or both (NULL: as it was) for the pending job of that key. Never touches a running one.
-- Returns its id, NULL when there is none. For the one who put it in: rights as for `enqueue`.
CREATE FUNCTION wakebell.replace_job(
    type text,
    unique_key text,
    payload jsonb DEFAULT NULL,
    run_after timestamptz DEFAULT NULL
)
RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
DECLARE
    wrong text;
    replaced record;
BEGIN
    wrong := CASE
        WHEN jsonb_typeof(payload) <> 'object' THEN 'payload must be a JSON object'
        WHEN octet_length(payload::text) > 262144 THEN 'payload must be at most 256 KiB; keep the rest elsewhere and pass its id'
    END;
    IF wrong IS NULL THEN
        UPDATE wakebell.jobs AS j SET
            payload = coalesce(replace_job.payload, j.payload),
            run_after = coalesce(replace_job.run_after, j.run_after)
        WHERE j.type = replace_job.type AND j.unique_key = replace_job.unique_key AND j.status = 'pending'
        RETURNING j.id, j.queue INTO replaced;
        IF starts_with(replaced.queue, 'wakebell.') THEN
            wrong := 'jobs in queues named "wakebell.…" are the service''s own';
        END IF;
    END IF;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'wakebell.replace_job: %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN replaced.id;
END
$$;
