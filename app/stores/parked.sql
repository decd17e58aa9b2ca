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
    ARRAY(
        SELECT h.type
        FROM heads AS h
        WHERE h.run_after < now() - make_interval(secs => :old_seconds)
        ORDER BY h.place
    ) AS old_types,
    (SELECT wakebell.readable(min(h.run_after)) FROM heads AS h) AS since;

-- name: late
-- Queues whose first job has been due for so long, though ticks have come all that time: what waited while nobody rang is
-- not late by a fault of its own. One probe of an index for each queue with work. What is paused waits on purpose.
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
)
SELECT n.queue, head.id, head.type, wakebell.readable(head.run_after) AS run_after
FROM names AS n
CROSS JOIN LATERAL (
    SELECT j.id, j.type, j.run_after
    FROM wakebell.jobs AS j
    WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue = n.queue
      AND j.rank <= now() AND j.run_after <= now()
    ORDER BY j.rank, j.id
    LIMIT 1
) AS head
WHERE head.run_after < now() - make_interval(secs => :overdue_seconds)
  AND NOT EXISTS (SELECT FROM wakebell.queues AS q WHERE q.name = n.queue AND q.paused_until > now())
  AND (SELECT min(ticks.started_at) FROM wakebell.ticks) < now() - make_interval(secs => :overdue_seconds)
  AND NOT EXISTS (
      SELECT FROM wakebell.alerts
      WHERE alerts.key = 'tick_overdue:tick' AND alerts.failed_at > now() - make_interval(secs => :overdue_seconds))
ORDER BY n.queue
LIMIT 100;
