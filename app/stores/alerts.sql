-- name: look
-- Whether there is anything to judge: four probes of partial indexes, and how many alerts are open.
SELECT
    EXISTS (SELECT FROM wakebell.jobs WHERE status = 'failed' AND NOT judged)
    OR EXISTS (SELECT FROM wakebell.messages WHERE status IN ('failed', 'uncertain') AND NOT judged)
    OR EXISTS (SELECT FROM wakebell.sources WHERE failures >= :source_failures)
    OR EXISTS (SELECT FROM wakebell.alerts WHERE resolved_at IS NULL) AS work;

-- name: open
-- Open an alert for each thing that has failed and has none, and add to the open ones.
-- Two ticks at once: the marks are taken by one of them, and of two inserts with one key the second meets the first's.
-- Only rows that were inserted here come back as opened, so that each is told once.
WITH failed_jobs AS (
    UPDATE wakebell.jobs SET judged = true
    WHERE id = ANY (ARRAY(
        SELECT id FROM wakebell.jobs
        WHERE status = 'failed' AND NOT judged
        ORDER BY id
        LIMIT 1000
        FOR UPDATE SKIP LOCKED))
    RETURNING id, type, last_error
), failed_messages AS (
    UPDATE wakebell.messages SET judged = true
    WHERE id = ANY (ARRAY(
        SELECT id FROM wakebell.messages
        WHERE status IN ('failed', 'uncertain') AND NOT judged
        ORDER BY id
        LIMIT 1000
        FOR UPDATE SKIP LOCKED))
    RETURNING id, recipient, kind, last_error
), found (kind, subject, reason, failures) AS (
    SELECT 'job_failed', type, (array_agg(last_error ORDER BY id DESC))[1], count(*)
    FROM failed_jobs
    WHERE type <> 'send_message'  -- its message has failed, and that is told
    GROUP BY type
    UNION ALL
    SELECT 'message_failed', recipient, (array_agg(last_error ORDER BY id DESC))[1], count(*)
    FROM failed_messages
    WHERE kind <> 'alert'  -- an alert that cannot be told must not open another one
    GROUP BY recipient
    UNION ALL
    SELECT 'source_failing', name, last_error, failures
    FROM wakebell.sources
    WHERE failures >= :source_failures
      AND name = ANY (CAST(CAST(:sources AS text) AS text[]))
      AND NOT EXISTS (
          SELECT FROM wakebell.alerts
          WHERE alerts.key = 'source_failing:' || sources.name AND alerts.resolved_at IS NULL)
), opened AS (
    INSERT INTO wakebell.alerts AS alert (key, kind, subject, reason, failures)
    SELECT kind || ':' || subject, kind, subject, reason, failures
    FROM found
    ORDER BY kind, subject
    ON CONFLICT (key) WHERE resolved_at IS NULL DO UPDATE SET
        reason = excluded.reason,
        failures = alert.failures + excluded.failures,
        changed_at = now()
    RETURNING kind, subject, reason, failures, opened_at, xmax = 0 AS new
)
SELECT kind, subject, reason, failures, opened_at FROM opened WHERE new ORDER BY kind, subject;

-- name: resolve
-- Close what has healed. Of two ticks at once the second waits for the row and then finds it closed.
UPDATE wakebell.alerts SET resolved_at = now()
WHERE id = ANY (ARRAY(
    SELECT alerts.id
    FROM wakebell.alerts
    WHERE alerts.resolved_at IS NULL
      AND CASE alerts.kind
          WHEN 'job_failed' THEN
              -- A later one went well, or no failed one is left: run again, cancelled, or pruned.
              EXISTS (
                  SELECT FROM wakebell.jobs
                  WHERE jobs.finished_at > alerts.changed_at AND jobs.type = alerts.subject AND jobs.status = 'done')
              OR NOT EXISTS (
                  SELECT FROM wakebell.jobs
                  WHERE jobs.type = alerts.subject AND jobs.status IN ('pending', 'running', 'failed'))
          WHEN 'message_failed' THEN
              EXISTS (
                  SELECT FROM wakebell.messages
                  WHERE messages.recipient = alerts.subject AND messages.kind <> 'alert'
                    AND messages.sent_at > alerts.changed_at)
          WHEN 'source_failing' THEN
              NOT EXISTS (
                  SELECT FROM wakebell.sources
                  WHERE sources.name = alerts.subject AND sources.failures > 0
                    AND sources.name = ANY (CAST(CAST(:sources AS text) AS text[])))
          END
    ORDER BY alerts.id
    FOR UPDATE OF alerts
))
  AND resolved_at IS NULL
RETURNING kind, subject, reason, failures, opened_at;

-- name: prune
-- Alerts that were closed long ago, oldest first.
DELETE FROM wakebell.alerts WHERE id = ANY (ARRAY(
    SELECT id FROM wakebell.alerts
    WHERE resolved_at < now() - make_interval(secs => :keep_seconds)
    ORDER BY resolved_at
    LIMIT :most
    FOR UPDATE SKIP LOCKED
))
RETURNING id;
