-- name: parked
-- Jobs that nobody handles: how many, of which types, and when the first of these types' first jobs was due. One probe of
-- an index for each type, however many jobs it has.
WITH RECURSIVE heads AS (
    (
        SELECT j.type, j.run_after, 1 AS place
        FROM wakebell.jobs AS j
        WHERE j.held AND j.status = 'pending'
        ORDER BY j.type, j.id
        LIMIT 1
    )
    UNION ALL
    SELECT following.type, following.run_after, h.place + 1
    FROM heads AS h
    CROSS JOIN LATERAL (
        SELECT j.type, j.run_after
        FROM wakebell.jobs AS j
        WHERE j.held AND j.status = 'pending' AND j.type > h.type
        ORDER BY j.type, j.id
        LIMIT 1
    ) AS following
    WHERE h.place < :most_types
)
SELECT
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM wakebell.jobs AS j
            WHERE j.held AND j.status = 'pending'
            ORDER BY j.type, j.id
            LIMIT :most
        ) AS counted
    ) AS count,
    ARRAY(SELECT h.type FROM heads AS h ORDER BY h.place) AS types,
    (SELECT wakebell.readable(min(h.run_after)) FROM heads AS h) AS since;
