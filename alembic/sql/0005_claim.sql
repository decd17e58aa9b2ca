-- Lease due jobs. `leases` is {"type": seconds}: only these types are taken. Queues take turns, also when there is room
-- for one job only: who has fewest running goes first, chance decides between equals. Claimers at once never share a
-- job and never wait for each other. `only_queue`: from this one alone; NULL: from all.
CREATE FUNCTION wakebell.claim_jobs(
    own boolean,
    max_count integer,
    leases jsonb,
    token bigint,
    only_queue text
)
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
          AND (only_queue IS NULL OR q.name = only_queue)
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
    WITH RECURSIVE names AS (       -- one index probe for each queue that has something pending; one for one queue
        (
            SELECT j.queue, j.rank, j.id
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
              AND j.queue >= coalesce(only_queue, CASE WHEN own THEN 'wakebell.' ELSE '' END)
            ORDER BY j.queue, j.rank, j.id
            LIMIT 1
        )
        UNION ALL
        SELECT first.queue, first.rank, first.id
        FROM names AS n
        CROSS JOIN LATERAL (
            SELECT j.queue, j.rank, j.id
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue > n.queue
            ORDER BY j.queue, j.rank, j.id
            LIMIT 1
        ) AS first
        WHERE only_queue IS NULL AND (NOT own OR starts_with(n.queue, 'wakebell.'))
    ), busy AS (
        -- Its first one goes with each queue. While somebody holds an old snapshot, all that have left the queue stand
        -- in the index before it: those are walked over once, and not by every step below.
        SELECT n.queue, n.rank AS first_rank, n.id AS first_id, (
            SELECT count(*)::integer
            FROM wakebell.jobs AS j
            WHERE j.status = 'running' AND j.queue = n.queue AND j.lease_until > now()
        ) AS running
        FROM names AS n
        WHERE starts_with(n.queue, 'wakebell.') = own
          AND (only_queue IS NULL OR n.queue = only_queue)  -- the probe finds the next one when that has nothing
    ), room AS MATERIALIZED (
        SELECT b.queue, b.first_rank, b.first_id, b.running, CASE
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
        SELECT picked.queue, picked.first_rank, picked.first_id, count(*)::integer AS size
        FROM (
            SELECT r.queue, r.first_rank, r.first_id
            FROM room AS r
            CROSS JOIN LATERAL (
                SELECT row_number() OVER () AS turn
                FROM (
                    SELECT
                    FROM wakebell.jobs AS j
                    WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                      AND j.queue = r.queue AND (j.rank, j.id) >= (r.first_rank, r.first_id)
                      AND j.rank <= now() AND j.run_after <= now()
                      AND j.type = ANY (types)
                    ORDER BY j.rank, j.id
                    LIMIT r.free
                ) AS due
            ) AS due
            ORDER BY r.running + due.turn, random()
            LIMIT max_count
        ) AS picked
        GROUP BY picked.queue, picked.first_rank, picked.first_id
    ), picked AS MATERIALIZED (
        SELECT due.id, due.rank
        FROM share AS s
        CROSS JOIN LATERAL (
            SELECT j.id, j.rank
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
              AND j.queue = s.queue AND (j.rank, j.id) >= (s.first_rank, s.first_id)
              AND j.rank <= now() AND j.run_after <= now()
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
    token bigint,
    only_queue text
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
        FROM wakebell.claim_jobs(own, max_count, leases, token, only_queue) AS c;
    END IF;
END
$$;


-- How many jobs of these types, up to `max_count`, a claim could take now: due, first of their serial key, in a queue
-- neither paused nor full. `only_queue`: of this one alone; NULL: of all.
CREATE FUNCTION wakebell.count_startable(types jsonb, max_count integer, only_queue text)
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
                  AND j.queue >= coalesce(only_queue, '')
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
            WHERE n.queue IS NOT NULL AND only_queue IS NULL
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
            WHERE n.queue IS NOT NULL AND (only_queue IS NULL OR n.queue = only_queue)
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


-- For releases that know nothing of draining one queue. Replaced and not dropped: those go on during a rollout.
CREATE OR REPLACE FUNCTION wakebell.claim_jobs(own boolean, max_count integer, leases jsonb, token bigint)
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
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT c.id, c.type, c.payload, c.queue, c.attempts, c.crashes, c.max_attempts, c.lease_until
    FROM wakebell.claim_jobs(own, max_count, leases, token, NULL) AS c;
END
$$;


CREATE OR REPLACE FUNCTION wakebell.turn_jobs(
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
    RETURN QUERY
    SELECT t.what, t.id, t.type, t.payload, t.queue, t.attempts, t.crashes, t.max_attempts, t.lease_until
    FROM wakebell.turn_jobs(done_ids, done_tokens, results, own, max_count, leases, token, NULL) AS t;
END
$$;


CREATE OR REPLACE FUNCTION wakebell.count_startable(types jsonb, max_count integer)
RETURNS integer
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN wakebell.count_startable(types, max_count, NULL);
END
$$;
