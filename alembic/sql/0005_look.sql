-- What the queue has for a tick, each answer by a few probes of an index. `types` are all that this process knows, `users`
-- those of them that are users'.
--   rescuable    something may be for `rescue_jobs`
--   strange      something is for `park_jobs`: among the first due of a queue is a type that nobody here knows, or a
--                parked job is of one that somebody knows by now
--   startable    what `count_startable` says, to `max_count`
--   next_due_at  when the next job may start; in the past when one is due, not before the end of its queue's pause. Reads
--                the first 100 of each queue by rank: a priority lets a job rank up to 100 minutes before it is due.
CREATE FUNCTION wakebell.look_at_jobs(types jsonb, users jsonb, max_count integer)
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
        coalesce(bool_or(
            s.rank <= now() AND s.run_after <= now()
            AND NOT starts_with(s.queue, 'wakebell.') AND NOT s.type = ANY (known)
        ), false)
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

    startable := CASE WHEN next_due_at <= now() THEN wakebell.count_startable(types, max_count, NULL) ELSE 0 END;
    RETURN NEXT;
END
$$;
