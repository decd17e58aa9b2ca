-- An instant that every driver can read, whoever wrote it: one beyond these years made an answer of the database unreadable,
-- and no tick got past it. NULL stays NULL.
CREATE FUNCTION wakebell.readable(at timestamptz)
RETURNS timestamptz
LANGUAGE sql
IMMUTABLE
AS $$
    SELECT CASE WHEN at IS NOT NULL THEN least(greatest(at, '1970-01-01 00:00+00'), '9998-12-31 00:00+00') END
$$;


-- `look_at_jobs` as before, but for what a backlog of boosted jobs hides: those rank before now long before they are due, and
-- the first hundred of a queue may all be such. So `startable` is counted whenever anything is pending, and `strange` reads
-- the first hundred that are due.
CREATE OR REPLACE FUNCTION wakebell.look_at_jobs(types jsonb, users jsonb, max_count integer)
RETURNS TABLE (rescuable boolean, strange boolean, startable integer, next_due_at timestamptz)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    known text[] := ARRAY(SELECT jsonb_array_elements_text(users));
BEGIN
    rescuable := (
        SELECT true
        FROM wakebell.jobs AS j
        WHERE j.status = 'running' AND j.lease_until < now()
        LIMIT 1
    ) IS NOT NULL OR (
        SELECT true
        FROM wakebell.jobs AS j
        WHERE j.waiting AND j.status = 'pending'
        ORDER BY j.serial_key, j.id
        LIMIT 1
    ) IS NOT NULL;

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
    ), soon AS MATERIALIZED (
        SELECT n.queue, first.type, first.run_after, first.rank
        FROM names AS n
        CROSS JOIN LATERAL (
            SELECT j.type, j.run_after, j.rank
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue = n.queue
            ORDER BY j.rank, j.id
            LIMIT 100
        ) AS first
    )
    SELECT
        min(greatest(s.run_after, q.paused_until)) FILTER (WHERE q.paused_until IS DISTINCT FROM 'infinity'),
        (
            SELECT true
            FROM names AS n
            CROSS JOIN LATERAL (
                SELECT j.type
                FROM wakebell.jobs AS j
                WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                  AND j.queue = n.queue AND j.rank <= now() AND j.run_after <= now()
                ORDER BY j.rank, j.id
                LIMIT 100
            ) AS due
            WHERE NOT starts_with(n.queue, 'wakebell.') AND NOT due.type = ANY (known)
            LIMIT 1
        ) IS NOT NULL
    INTO next_due_at, strange
    FROM soon AS s
    LEFT JOIN wakebell.queues AS q ON q.name = s.queue AND q.paused_until > now();

    strange := strange OR (
        SELECT true
        FROM wakebell.jobs AS j
        WHERE j.held AND j.type = ANY (known)
        ORDER BY j.type, j.id
        LIMIT 1
    ) IS NOT NULL;

    startable := CASE WHEN next_due_at IS NULL THEN 0 ELSE wakebell.count_startable(types, max_count, NULL) END;
    IF startable > 0 THEN
        next_due_at := least(next_due_at, now());
    END IF;
    next_due_at := wakebell.readable(next_due_at);
    RETURN NEXT;
END
$$;
