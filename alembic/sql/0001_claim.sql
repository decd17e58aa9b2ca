-- Lease due jobs. `leases` is {"type": seconds}: only these types are taken. Queues take turns, also when there is room
-- for one job only: who has fewest running goes first, chance decides between equals. Claimers at once never share a
-- job and never wait for each other.
CREATE FUNCTION wakebell.claim_jobs(own boolean, max_count integer, leases jsonb, token bigint)
RETURNS TABLE (
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
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    types text[] := ARRAY(SELECT jsonb_object_keys(leases));
    locked text[];
BEGIN
    -- A limited queue belongs to one claimer at a time; the others pass it by. In a statement of its own: the next one
    -- sees what the claimer before has committed, and so counts right.
    locked := ARRAY(
        SELECT q.name
        FROM wakebell.queues AS q
        WHERE (q.max_running IS NOT NULL OR q.max_starts IS NOT NULL)
          AND starts_with(q.name, 'wakebell.') = own
          AND (                     -- not EXISTS: that may be planned as a join that walks over the whole index
              SELECT true
              FROM wakebell.jobs AS j
              WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                AND j.queue = q.name AND j.rank <= now() AND j.run_after <= now()
                AND j.type = ANY (types)
              LIMIT 1
          )
        ORDER BY q.name
        FOR UPDATE OF q SKIP LOCKED
    );

    RETURN QUERY
    WITH RECURSIVE names AS (       -- one index probe for each queue that has something pending
        (
            SELECT j.queue
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
              AND j.queue >= CASE WHEN own THEN 'wakebell.' ELSE '' END
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
        WHERE n.queue IS NOT NULL AND (NOT own OR starts_with(n.queue, 'wakebell.'))
    ), busy AS (
        SELECT n.queue, (
            SELECT count(*)::integer
            FROM wakebell.jobs AS j
            WHERE j.status = 'running' AND j.queue = n.queue AND j.lease_until > now()
        ) AS running
        FROM names AS n
        WHERE starts_with(n.queue, 'wakebell.') = own
    ), room AS MATERIALIZED (
        SELECT b.queue, b.running, CASE
            WHEN q.name IS NULL THEN max_count
            WHEN q.paused_until > now() THEN 0
            WHEN q.max_running IS NULL AND q.max_starts IS NULL THEN max_count
            WHEN NOT q.name = ANY (locked) THEN 0
            ELSE greatest(0, least(max_count, q.max_running - b.running, q.max_starts - (
                SELECT count(*)::integer
                FROM unnest(q.recent_starts) AS start_at
                WHERE start_at > now() - make_interval(secs => q.period_seconds)
            )))
        END AS free
        FROM busy AS b
        LEFT JOIN wakebell.queues AS q ON q.name = b.queue
    ), share AS MATERIALIZED (      -- how many each queue gives
        SELECT picked.queue, count(*)::integer AS size
        FROM (
            SELECT r.queue
            FROM room AS r
            CROSS JOIN LATERAL (
                SELECT row_number() OVER () AS turn
                FROM (
                    SELECT
                    FROM wakebell.jobs AS j
                    WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                      AND j.queue = r.queue AND j.rank <= now() AND j.run_after <= now()
                      AND j.type = ANY (types)
                    ORDER BY j.rank, j.id
                    LIMIT r.free
                ) AS due
            ) AS due
            ORDER BY r.running + due.turn, random()
            LIMIT max_count
        ) AS picked
        GROUP BY picked.queue
    ), picked AS MATERIALIZED (
        SELECT due.id, due.rank
        FROM share AS s
        CROSS JOIN LATERAL (
            SELECT j.id, j.rank
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
              AND j.queue = s.queue AND j.rank <= now() AND j.run_after <= now()
              AND j.type = ANY (types)
            ORDER BY j.rank, j.id
            LIMIT s.size
            FOR UPDATE SKIP LOCKED
        ) AS due
    ), claimed AS (
        UPDATE wakebell.jobs AS j SET
            status = 'running',
            attempts = j.attempts + 1,
            started_at = clock_timestamp(),    -- now() is older than what this statement sees
            lease_token = token,
            lease_until = now() + make_interval(secs => (leases ->> j.type)::double precision)
        WHERE j.id = ANY (ARRAY(SELECT p.id FROM picked AS p))
        RETURNING j.id, j.type, j.payload, j.queue, j.attempts, j.crashes, j.max_attempts, j.lease_until
    ), started AS (                 -- what the limit on starts counts
        UPDATE wakebell.queues AS q SET
            recent_starts = (array_fill(now(), ARRAY[c.size]) || q.recent_starts)[1:q.max_starts]
        FROM (SELECT claimed.queue, count(*)::integer AS size FROM claimed GROUP BY claimed.queue) AS c
        WHERE q.name = c.queue AND q.max_starts IS NOT NULL
    )
    SELECT
        c.id, c.type, c.payload, c.queue::text, c.attempts, c.crashes, c.max_attempts, c.lease_until
    FROM claimed AS c
    JOIN picked AS p ON p.id = c.id
    ORDER BY p.rank, c.id;
END
$$;
