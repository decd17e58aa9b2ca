-- name: look
-- Whether there is anything to judge, and to tell of parked jobs: probes of partial indexes that are nearly always empty.
-- The last ones have an order for the sake of their plans: EXISTS walked over all recipients, and all jobs.
SELECT
    EXISTS (SELECT FROM wakebell.jobs WHERE status = 'failed' AND judged_finish IS DISTINCT FROM finished_at)
    OR EXISTS (
        SELECT FROM wakebell.messages
        WHERE status IN ('failed', 'uncertain') AND judged_finish IS DISTINCT FROM finished_at)
    OR EXISTS (
        SELECT FROM wakebell.sources
        WHERE failures > 0 AND (failures >= :source_failures OR gone_at IS NOT NULL)
          AND name = ANY (CAST(CAST(:sources AS text) AS text[])))
    OR EXISTS (
        SELECT FROM wakebell.sources
        WHERE state <> 'ok' AND name = ANY (CAST(CAST(:sources AS text) AS text[])))
    OR EXISTS (
        SELECT FROM wakebell.channels
        WHERE judged_low IS DISTINCT FROM low_at OR judged_park IS DISTINCT FROM parked_at)
    OR (
        SELECT address FROM wakebell.recipients
        WHERE blocked_at IS NOT NULL AND judged_block IS DISTINCT FROM blocked_at
        ORDER BY address
        LIMIT 1) IS NOT NULL
    OR EXISTS (SELECT FROM wakebell.alerts WHERE resolved_at IS NULL) AS work,
    (SELECT j.type FROM wakebell.jobs AS j WHERE j.held ORDER BY j.type, j.id LIMIT 1) IS NOT NULL AS parked;

-- name: open
-- Open an alert for each thing that has failed and has none, and add to the open ones.
-- Two ticks at once: the marks are taken by one of them, and of two inserts with one key the second meets the first's.
-- Only rows that were inserted here come back, so that each is told once.
WITH failed_jobs AS (
    UPDATE wakebell.jobs SET judged_finish = finished_at
    WHERE id = ANY (ARRAY(
        SELECT id FROM wakebell.jobs
        WHERE status = 'failed' AND judged_finish IS DISTINCT FROM finished_at
        ORDER BY id
        LIMIT 1000
        FOR UPDATE SKIP LOCKED))
    RETURNING id, type, last_error, finished_at
), failed_messages AS (
    UPDATE wakebell.messages SET judged_finish = finished_at
    WHERE id = ANY (ARRAY(
        SELECT id FROM wakebell.messages
        WHERE status IN ('failed', 'uncertain') AND judged_finish IS DISTINCT FROM finished_at
        ORDER BY id
        LIMIT 1000
        FOR UPDATE SKIP LOCKED))
    RETURNING recipient, kind, last_error, finished_at
), channels AS (
    SELECT name, low_at, low_until, low_reason, parked_at, parked_until, parked_reason,
           judged_low IS DISTINCT FROM low_at AS newly_low, judged_park IS DISTINCT FROM parked_at AS newly_parked
    FROM wakebell.channels
    WHERE judged_low IS DISTINCT FROM low_at OR judged_park IS DISTINCT FROM parked_at
    ORDER BY name
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
), judged_channels AS (
    UPDATE wakebell.channels SET judged_low = low_at, judged_park = parked_at
    WHERE name IN (SELECT channels.name FROM channels)
), blocked AS (
    UPDATE wakebell.recipients SET judged_block = blocked_at
    WHERE address = ANY (ARRAY(
        SELECT address FROM wakebell.recipients
        WHERE blocked_at IS NOT NULL AND judged_block IS DISTINCT FROM blocked_at
        ORDER BY address
        LIMIT 1000
        FOR UPDATE SKIP LOCKED))
    RETURNING name, blocked_reason, blocked_at
), found (kind, subject, reason, failures, failed_at, last_job) AS (
    SELECT 'job_failed', type, (array_agg(last_error ORDER BY finished_at DESC, id DESC))[1], count(*),
           max(finished_at), (array_agg(id ORDER BY finished_at DESC, id DESC))[1]
    FROM failed_jobs
    WHERE type <> 'send_message'  -- its message has failed, and that is told
    GROUP BY type
    UNION ALL
    SELECT 'message_failed', recipient, (array_agg(last_error ORDER BY finished_at DESC))[1], count(*),
           max(finished_at), NULL
    FROM failed_messages
    WHERE kind <> 'alert'  -- an alert that cannot be told must not open another one
    GROUP BY recipient
    UNION ALL
    SELECT 'source_failing', name, last_error, failures, coalesce(last_failure_at, created_at), NULL
    FROM wakebell.sources
    WHERE failures > 0 AND (failures >= :source_failures OR gone_at IS NOT NULL)
      AND name = ANY (CAST(CAST(:sources AS text) AS text[]))
      AND NOT EXISTS (  -- this failure is known already
          SELECT FROM wakebell.alerts
          WHERE alerts.key = 'source_failing:' || sources.name
            AND alerts.resolved_at IS NULL
            AND alerts.failed_at >= coalesce(sources.last_failure_at, sources.created_at))
    UNION ALL
    SELECT 'source_' || state, name,
           CASE state WHEN 'unstable' THEN 'ignore_params, id_regex or key' END,
           CASE state
               WHEN 'blind' THEN empty_rounds
               WHEN 'silent' THEN floor(extract(epoch FROM now() - coalesce(last_news_at, primed_at, created_at)) / 86400)
               ELSE 1
           END,
           coalesce(state_at, created_at), NULL
    FROM wakebell.sources
    WHERE state <> 'ok' AND name = ANY (CAST(CAST(:sources AS text) AS text[]))
      AND NOT EXISTS (  -- the round that says so is known already
          SELECT FROM wakebell.alerts
          WHERE alerts.key = 'source_' || sources.state || ':' || sources.name
            AND alerts.resolved_at IS NULL
            AND alerts.failed_at >= coalesce(sources.state_at, sources.created_at))
    UNION ALL
    SELECT 'channel_parked', name, parked_reason, 1, parked_at, NULL
    FROM channels
    WHERE newly_parked AND parked_until > now()
    UNION ALL
    SELECT 'quota_low', name, low_reason, 1, low_at, NULL
    FROM channels
    WHERE newly_low AND low_until > now()
    UNION ALL
    SELECT 'recipient_blocked', name, (array_agg(blocked_reason ORDER BY blocked_at DESC))[1], 1, max(blocked_at), NULL
    FROM blocked
    GROUP BY name
), opened AS (
    INSERT INTO wakebell.alerts AS alert (key, kind, subject, reason, failures, failed_at)
    SELECT kind || ':' || subject, kind, subject, reason, failures, failed_at
    FROM found
    ORDER BY kind, subject
    ON CONFLICT (key) WHERE resolved_at IS NULL DO UPDATE SET
        reason = excluded.reason,
        failures = CASE
            WHEN starts_with(alert.kind, 'source_') THEN excluded.failures  -- it counts them itself
            ELSE alert.failures + excluded.failures
        END,
        failed_at = greatest(alert.failed_at, excluded.failed_at),
        judged_at = now()
    RETURNING kind, subject, reason, failures, opened_at, xmax = 0 AS new
)
SELECT opened.kind, opened.subject, opened.reason, opened.failures, opened.opened_at, found.last_job
FROM opened
JOIN found USING (kind, subject)
WHERE opened.new
ORDER BY kind, subject;

-- name: resolve
-- Close what went well after its latest failure (`healed`), and what nothing is left of. Not what failed anew just
-- now: where some fail and some go well in every tick, it is one incident until a tick without a failure. `kept` are jobs
-- of the type that stay failed.
-- Two ticks at once never wait for each other here: a row that the other has is the other's to close.
-- Bounds as rows, an order and max(), not EXISTS: that was planned as a walk over all jobs, which expects to find one
-- soon. The verdict is no subquery of its own: of a row that was waited for it would be an old one.
WITH judged AS MATERIALIZED (
    SELECT alert.id, verdict.healed
    FROM wakebell.alerts AS alert
    CROSS JOIN LATERAL (
        SELECT
            CASE alert.kind
                WHEN 'job_failed' THEN (
                    SELECT true
                    FROM wakebell.jobs
                    WHERE jobs.status = 'done'
                      AND (jobs.type, jobs.finished_at) > (alert.subject, alert.failed_at)
                      AND jobs.type <= alert.subject
                    ORDER BY jobs.type, jobs.finished_at
                    LIMIT 1) IS NOT NULL
                WHEN 'message_failed' THEN alert.failed_at < (  -- the alert itself proves nothing: it may go another way
                    SELECT max(messages.sent_at) FROM wakebell.messages
                    WHERE messages.recipient = alert.subject AND messages.kind <> 'alert')
                WHEN 'source_failing' THEN EXISTS (
                    SELECT FROM wakebell.sources
                    WHERE sources.name = alert.subject AND sources.last_success_at > alert.failed_at
                      AND sources.name = ANY (CAST(CAST(:sources AS text) AS text[])))
                WHEN 'recipient_blocked' THEN alert.subject = ANY (CAST(CAST(:recipients AS text) AS text[]))
                    AND NOT EXISTS (
                        SELECT FROM wakebell.recipients
                        WHERE recipients.name = alert.subject AND recipients.blocked_at IS NOT NULL
                          AND recipients.address = ANY (CAST(CAST(:addresses AS text) AS text[])))
                WHEN 'channel_parked' THEN alert.subject = ANY (CAST(CAST(:channels AS text) AS text[]))
                    AND NOT EXISTS (  -- room may have been seen where there was none: then it is parked again soon
                        SELECT FROM wakebell.channels
                        WHERE channels.name = alert.subject
                          AND (channels.parked_until > now() OR channels.freed_at > now() - interval '2 hours'))
                WHEN 'quota_low' THEN alert.subject = ANY (CAST(CAST(:channels AS text) AS text[]))
                    AND NOT EXISTS (
                        SELECT FROM wakebell.channels
                        WHERE channels.name = alert.subject AND channels.low_until > now())
                ELSE EXISTS (  -- a later round says otherwise
                    SELECT FROM wakebell.sources
                    WHERE sources.name = alert.subject AND sources.state_at > alert.failed_at
                      AND 'source_' || sources.state <> alert.kind
                      AND sources.name = ANY (CAST(CAST(:sources AS text) AS text[])))
            END AS healed,
            CASE alert.kind
                WHEN 'job_failed' THEN NOT EXISTS (  -- cancelled or pruned; one that is run again is not over
                    SELECT FROM wakebell.jobs
                    WHERE jobs.type = alert.subject AND jobs.judged_finish IS NOT NULL
                      AND jobs.status IN ('pending', 'running', 'failed'))
                WHEN 'message_failed' THEN alert.subject <> ALL (CAST(CAST(:recipients AS text) AS text[]))
                WHEN 'recipient_blocked' THEN alert.subject <> ALL (CAST(CAST(:recipients AS text) AS text[]))
                WHEN 'channel_parked' THEN alert.subject <> ALL (CAST(CAST(:channels AS text) AS text[]))
                WHEN 'quota_low' THEN alert.subject <> ALL (CAST(CAST(:channels AS text) AS text[]))
                ELSE NOT EXISTS (  -- nor does another replica watch it, which would plan it
                    SELECT FROM wakebell.sources
                    WHERE sources.name = alert.subject
                      AND (sources.name = ANY (CAST(CAST(:sources AS text) AS text[]))
                           OR greatest(sources.due_at, sources.fresh_until)
                              > now() - make_interval(secs => greatest(sources.every_seconds, 3600))))
            END AS gone
    ) AS verdict
    WHERE alert.resolved_at IS NULL AND alert.judged_at < now() AND (verdict.healed OR verdict.gone)
    ORDER BY alert.id
    FOR UPDATE OF alert SKIP LOCKED
), closed AS (
    UPDATE wakebell.alerts SET resolved_at = now()
    FROM judged
    WHERE alerts.id = judged.id
    RETURNING kind, subject, reason, failures, opened_at, healed
)
SELECT kind, subject, reason, failures, opened_at, healed IS TRUE AS healed, (
    SELECT count(*)
    FROM (
        SELECT
        FROM wakebell.jobs
        WHERE closed.kind = 'job_failed' AND jobs.type = closed.subject
          AND jobs.judged_finish IS NOT NULL AND jobs.status IN ('pending', 'running', 'failed')  -- the index's own words
          AND jobs.status = 'failed'
        LIMIT :most_kept
    ) AS failed
) AS kept
FROM closed
ORDER BY kind, subject;

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
