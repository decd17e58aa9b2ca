-- name: read
-- What is told of a service in numbers. Each part reads an index, no further than to its cap, however much is kept.
WITH RECURSIVE queues AS (     -- one index probe for each queue with work
    (
        SELECT j.queue, 1 AS place
        FROM wakebell.jobs AS j
        WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
        ORDER BY j.queue
        LIMIT 1
    )
    UNION ALL
    SELECT following.queue, q.place + 1
    FROM queues AS q
    CROSS JOIN LATERAL (
        SELECT j.queue
        FROM wakebell.jobs AS j
        WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue > q.queue
        ORDER BY j.queue
        LIMIT 1
    ) AS following
    WHERE q.place < :most_queues
), running AS (
    SELECT counted.queue, count(*) AS count
    FROM (SELECT j.queue FROM wakebell.jobs AS j WHERE j.status = 'running' ORDER BY j.queue LIMIT :most) AS counted
    GROUP BY counted.queue
), failed AS (
    SELECT counted.queue, count(*) AS count
    FROM (SELECT j.queue FROM wakebell.jobs AS j WHERE j.status = 'failed' ORDER BY j.id LIMIT :most) AS counted
    GROUP BY counted.queue
), jobs AS (
    SELECT q.queue, 'due' AS state, (
        SELECT count(*)
        FROM (
            SELECT
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue = q.queue
              AND j.rank <= now() AND j.run_after <= now()
            ORDER BY j.rank, j.id
            LIMIT :most
        ) AS counted
    ) AS count
    FROM queues AS q
    UNION ALL
    SELECT q.queue, 'later', (
        SELECT count(*)
        FROM (
            SELECT
            FROM wakebell.jobs AS j
            WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue = q.queue AND j.rank > now()
            ORDER BY j.rank, j.id
            LIMIT :most
        ) AS counted
    )
    FROM queues AS q
    UNION ALL
    (SELECT r.queue, 'running', r.count FROM running AS r ORDER BY r.queue LIMIT :most_queues)
    UNION ALL
    (SELECT f.queue, 'failed', f.count FROM failed AS f ORDER BY f.queue LIMIT :most_queues)
    UNION ALL
    SELECT NULL, 'in_line', (
        SELECT count(*)
        FROM (
            SELECT FROM wakebell.jobs AS j
            WHERE j.waiting AND j.status = 'pending' ORDER BY j.serial_key, j.id LIMIT :most
        ) AS counted
    )
    UNION ALL
    SELECT NULL, 'unknown_type', (
        SELECT count(*)
        FROM (SELECT FROM wakebell.jobs AS j WHERE j.held ORDER BY j.type, j.id LIMIT :most) AS counted
    )
), heads AS (
    SELECT q.queue, (
        SELECT j.run_after
        FROM wakebell.jobs AS j
        WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue = q.queue
          AND j.rank <= now() AND j.run_after <= now()
        ORDER BY j.rank, j.id
        LIMIT 1
    ) AS due_at
    FROM queues AS q
), ended AS (
    SELECT counted.status, count(*) AS count
    FROM (
        SELECT j.status
        FROM wakebell.jobs AS j
        WHERE j.finished_at > now() - interval '1 hour'
        ORDER BY j.finished_at DESC
        LIMIT :most
    ) AS counted
    GROUP BY counted.status
), messages AS (
    SELECT counted.channel, counted.status, count(*) AS count
    FROM (
        (
            SELECT m.channel, m.status
            FROM wakebell.messages AS m
            WHERE m.status IN ('queued', 'sending', 'retrying')
            ORDER BY m.id
            LIMIT :most
        )
        UNION ALL
        (
            SELECT m.channel, m.status
            FROM wakebell.messages AS m
            WHERE m.finished_at > now() - interval '1 day'
            ORDER BY m.finished_at DESC
            LIMIT :most
        )
    ) AS counted
    GROUP BY counted.channel, counted.status
    ORDER BY counted.channel, counted.status
    LIMIT 300
), ticks AS (
    SELECT t.started_at, t.finished_at, t.status, t.summary
    FROM wakebell.ticks AS t
    ORDER BY t.started_at DESC
    LIMIT :most_ticks
), ended_tick AS (
    SELECT t.started_at, t.status, t.summary FROM ticks AS t WHERE t.status IS NOT NULL
    ORDER BY t.started_at DESC LIMIT 1
)
SELECT
    extract(epoch FROM now()) AS now,
    CAST((SELECT jsonb_agg(jsonb_build_array(coalesce(j.queue, ''), j.state, j.count)) FROM jobs AS j) AS text) AS jobs,
    CAST((SELECT jsonb_agg(jsonb_build_array(h.queue, extract(epoch FROM now() - wakebell.readable(h.due_at))))
          FROM heads AS h WHERE h.due_at IS NOT NULL) AS text) AS oldest_due,
    CAST((SELECT jsonb_agg(jsonb_build_array(e.status, e.count)) FROM ended AS e) AS text) AS ended,
    CAST((SELECT jsonb_agg(jsonb_build_array(m.channel, m.status, m.count)) FROM messages AS m) AS text) AS messages,
    CAST((SELECT jsonb_agg(jsonb_build_array(s.status, s.count)) FROM (
        SELECT coalesce(t.status, 'running') AS status, count(*) AS count FROM ticks AS t GROUP BY 1) AS s) AS text) AS ticks,
    (SELECT extract(epoch FROM max(t.started_at)) FROM ticks AS t) AS last_tick,
    (SELECT extract(epoch FROM max(t.finished_at)) FROM ticks AS t WHERE t.status IN ('ok', 'partial')) AS last_success,
    (SELECT status FROM ended_tick) AS last_status,
    CAST((SELECT summary FROM ended_tick) AS text) AS last_summary,
    CAST((SELECT jsonb_agg(jsonb_build_array(a.kind, a.count)) FROM (
        SELECT kind, count(*) AS count FROM wakebell.alerts WHERE resolved_at IS NULL GROUP BY kind) AS a) AS text)
        AS alerts,
    CAST((SELECT jsonb_agg(jsonb_build_array(c.name, c.quota_used, c.quota_limit, c.parked_until > now()) ORDER BY c.name)
          FROM wakebell.channels AS c WHERE c.name = ANY (CAST(CAST(:channels AS text) AS text[]))) AS text) AS channels,
    CAST((SELECT jsonb_agg(jsonb_build_array(
              s.name,
              CASE
                  WHEN s.gone_at IS NOT NULL THEN 'gone'
                  WHEN s.failures > 0 THEN 'failing'
                  WHEN s.primed_at IS NULL THEN 'new'
                  ELSE s.state
              END,
              s.failures,
              extract(epoch FROM s.last_success_at),
              extract(epoch FROM s.last_news_at),
              (
                  SELECT count(*)
                  FROM (SELECT FROM wakebell.items AS i WHERE i.source = s.name ORDER BY i.seen_at LIMIT :most) AS counted
              )) ORDER BY s.name)
          FROM wakebell.sources AS s WHERE s.name = ANY (CAST(CAST(:sources AS text) AS text[]))) AS text) AS sources,
    CAST((SELECT jsonb_agg(jsonb_build_array(c.relname, greatest(c.reltuples, 0)) ORDER BY c.relname)
          FROM pg_catalog.pg_class AS c
          WHERE c.relnamespace = CAST('wakebell' AS regnamespace) AND c.relkind = 'r'
            AND c.relname IN ('jobs', 'items', 'owed', 'messages', 'ticks', 'bookings', 'events')) AS text) AS estimates;
