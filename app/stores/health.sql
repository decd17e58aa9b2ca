-- name: read
-- Everything that health is judged by, in one round trip; each part is a probe of an index, of each queue with work one.
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
SELECT
    now() AS now,
    (SELECT min(started_at) FROM wakebell.ticks) AS first_tick_at,
    (SELECT max(started_at) FROM wakebell.ticks) AS last_tick_at,
    (SELECT status FROM wakebell.ticks WHERE status IS NOT NULL ORDER BY started_at DESC LIMIT 1) AS last_tick_status,
    (SELECT finished_at FROM wakebell.ticks WHERE status IN ('ok', 'partial') ORDER BY started_at DESC LIMIT 1)
        AS last_success_at,
    (
        SELECT wakebell.readable(min(head.run_after))
        FROM names AS n
        CROSS JOIN LATERAL (
            SELECT j.run_after
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue = n.queue
              AND j.rank <= now() AND j.run_after <= now()
            ORDER BY j.rank, j.id
            LIMIT 1
        ) AS head
        -- What waits on purpose is not late.
        WHERE NOT EXISTS (SELECT FROM wakebell.queues AS q WHERE q.name = n.queue AND q.paused_until > now())
    ) AS oldest_due_at,
    ARRAY(SELECT key FROM wakebell.alerts WHERE resolved_at IS NULL ORDER BY id LIMIT 20) AS open_alerts,
    ARRAY(
        SELECT name
        FROM wakebell.sources
        WHERE (failures > 0 OR state <> 'ok') AND name = ANY (CAST(CAST(:sources AS text) AS text[]))
        ORDER BY name
        LIMIT 20
    ) AS failing_sources,
    (SELECT j.type FROM wakebell.jobs AS j WHERE j.held ORDER BY j.type, j.id LIMIT 1) IS NOT NULL AS parked;
