-- name: list
-- Queues that have jobs which wait or run, and those that are limited or paused; in the order of their names, the
-- latter first in their claim to a place among the `most`. What is due is counted to `count_to`.
WITH RECURSIVE waiting AS (     -- one index probe for each queue
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
        WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held AND j.queue > w.queue
        ORDER BY j.queue
        LIMIT 1
    )
    FROM waiting AS w
    WHERE w.queue IS NOT NULL
), running AS (
    (
        SELECT j.queue
        FROM wakebell.jobs AS j
        WHERE j.status = 'running'
        ORDER BY j.queue
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT j.queue
        FROM wakebell.jobs AS j
        WHERE j.status = 'running' AND j.queue > r.queue
        ORDER BY j.queue
        LIMIT 1
    )
    FROM running AS r
    WHERE r.queue IS NOT NULL
), known AS (
    SELECT waiting.queue AS name FROM waiting
    UNION
    SELECT running.queue FROM running
    UNION
    SELECT q.name
    FROM wakebell.queues AS q
    WHERE q.max_running IS NOT NULL OR q.max_starts IS NOT NULL OR q.paused_until > now()
    UNION
    SELECT CAST(:name AS text)
), shown AS (
    SELECT k.name, q.max_running, q.max_starts, q.period_seconds,
           CASE WHEN q.paused_until > now() THEN q.paused_until END AS paused_until,
           CASE WHEN q.paused_until > now() THEN q.pause_reason END AS pause_reason
    FROM known AS k
    LEFT JOIN wakebell.queues AS q ON q.name = k.name
    WHERE k.name IS NOT NULL
      AND (CAST(:own AS boolean) OR NOT starts_with(k.name, 'wakebell.'))
      AND (CAST(:name AS text) IS NULL OR k.name = CAST(:name AS text))
    ORDER BY q.name IS NULL, k.name COLLATE "C"
    LIMIT CAST(:most AS integer)
)
SELECT s.name, s.max_running, s.max_starts, s.period_seconds, s.pause_reason,
       coalesce(s.paused_until = 'infinity', false) AS forever,
       CASE WHEN s.paused_until < 'infinity' THEN s.paused_until END AS paused_until,
       (
           SELECT count(*)
           FROM (
               SELECT
               FROM wakebell.jobs AS j
               WHERE j.status = 'pending' AND NOT j.waiting AND NOT j.held
                 AND j.queue = s.name AND j.rank <= now() AND j.run_after <= now()
               ORDER BY j.rank, j.id
               LIMIT CAST(:count_to AS integer)
           ) AS due
       ) AS due,
       (
           SELECT count(*)
           FROM wakebell.jobs AS j
           WHERE j.status = 'running' AND j.queue = s.name AND j.lease_until > now()
       ) AS running
FROM shown AS s
ORDER BY s.name COLLATE "C";

-- name: pause
-- True where it is paused now; false where that instant has passed. Two at once: the last one counts.
WITH asked AS (
    SELECT CASE
        WHEN CAST(:forever AS boolean) THEN 'infinity'
        ELSE coalesce(
            CAST(:until AS timestamptz), now() + make_interval(secs => CAST(:seconds AS double precision))
        )
    END AS paused_until
), paused AS (
    INSERT INTO wakebell.queues (name, paused_until, pause_reason)
    SELECT CAST(:name AS text), asked.paused_until, CAST(:reason AS text)
    FROM asked
    WHERE asked.paused_until > now()
    ON CONFLICT (name) DO UPDATE SET paused_until = excluded.paused_until, pause_reason = excluded.pause_reason
    RETURNING name
)
SELECT EXISTS (SELECT FROM paused) AS paused;

-- name: resume
-- Whatever it was, it is not paused now.
UPDATE wakebell.queues SET paused_until = NULL, pause_reason = NULL
WHERE name = CAST(:name AS text) AND paused_until IS NOT NULL;

-- name: limit_running
-- NULL: no limit.
INSERT INTO wakebell.queues (name, max_running)
VALUES (CAST(:name AS text), CAST(:max_running AS integer))
ON CONFLICT (name) DO UPDATE SET max_running = excluded.max_running;

-- name: limit_starts
-- NULL, both: no limit. The starts that are known go on counting, as long as there is one.
INSERT INTO wakebell.queues AS q (name, max_starts, period_seconds)
VALUES (
    CAST(:name AS text), CAST(:max_starts AS integer), CAST(:period_seconds AS double precision)
)
ON CONFLICT (name) DO UPDATE SET
    max_starts = excluded.max_starts,
    period_seconds = excluded.period_seconds,
    recent_starts = CASE WHEN excluded.max_starts IS NULL THEN '{}' ELSE q.recent_starts END;
