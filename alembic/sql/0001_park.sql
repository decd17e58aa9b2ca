-- Take due jobs of users' queues whose type is not in the list ["a", "b"] out of the claims' way, and put back those
-- whose type is. Looks at the first 1,000 of each queue, again until it finds none there or has parked 10,000: what
-- lies further back is in nobody's way yet. Returns how many it parked.
CREATE FUNCTION wakebell.park_jobs(types jsonb)
RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    known text[] := ARRAY(SELECT jsonb_array_elements_text(types));
    parked integer;
    total integer := 0;
BEGIN
    IF EXISTS (SELECT FROM wakebell.jobs AS j WHERE j.held) THEN
        UPDATE wakebell.jobs SET held = false
        WHERE id = ANY (ARRAY(
            SELECT j.id
            FROM wakebell.jobs AS j
            WHERE j.held AND j.type = ANY (known)
            LIMIT 10000
            FOR UPDATE SKIP LOCKED
        ));
    END IF;

    LOOP
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
        ), strange AS MATERIALIZED (
            SELECT due.id
            FROM names AS n
            CROSS JOIN LATERAL (
                SELECT j.id, j.type
                FROM wakebell.jobs AS j
                WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                  AND j.queue = n.queue AND j.rank <= now() AND j.run_after <= now()
                ORDER BY j.rank, j.id
                LIMIT 1000
            ) AS due
            WHERE NOT starts_with(n.queue, 'wakebell.') AND NOT due.type = ANY (known)
        )
        UPDATE wakebell.jobs SET held = true
        WHERE id = ANY (ARRAY(
            SELECT j.id
            FROM wakebell.jobs AS j
            WHERE j.id = ANY (ARRAY(SELECT s.id FROM strange AS s)) AND j.status = 'pending' AND NOT j.held
            FOR UPDATE SKIP LOCKED
        ));
        GET DIAGNOSTICS parked = ROW_COUNT;
        total := total + parked;
        EXIT WHEN parked = 0 OR total >= 10000;
    END LOOP;
    RETURN total;
END
$$;


-- How many jobs of these types, up to `max_count`, a claim could take now: due, first of their serial key, in a queue
-- neither paused nor full.
CREATE FUNCTION wakebell.count_startable(types jsonb, max_count integer)
RETURNS integer
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    known text[] := ARRAY(SELECT jsonb_array_elements_text(types));
BEGIN
    RETURN (
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
        ), room AS (
            SELECT n.queue, CASE
                WHEN q.name IS NULL THEN max_count
                WHEN q.paused_until > now() THEN 0
                ELSE greatest(0, least(
                    max_count,
                    q.max_running - (
                        SELECT count(*)::integer
                        FROM wakebell.jobs AS j
                        WHERE j.status = 'running' AND j.queue = n.queue AND j.lease_until > now()
                    ),
                    q.max_starts - (
                        SELECT count(*)::integer
                        FROM unnest(q.recent_starts) AS start_at
                        WHERE start_at > now() - make_interval(secs => q.period_seconds)
                    )
                ))
            END AS free
            FROM names AS n
            LEFT JOIN wakebell.queues AS q ON q.name = n.queue
            WHERE n.queue IS NOT NULL
        )
        SELECT count(*)::integer
        FROM (
            SELECT
            FROM room AS r
            CROSS JOIN LATERAL (
                SELECT
                FROM wakebell.jobs AS j
                WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                  AND j.queue = r.queue AND j.rank <= now() AND j.run_after <= now()
                  AND j.type = ANY (known)
                ORDER BY j.rank, j.id
                LIMIT r.free
            ) AS due
            LIMIT max_count
        ) AS startable
    );
END
$$;
