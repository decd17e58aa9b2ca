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
    OR (
        SELECT name FROM wakebell.schedules
        WHERE missed_at IS NOT NULL AND judged_miss IS DISTINCT FROM missed_at
        ORDER BY name
        LIMIT 1) IS NOT NULL
    OR EXISTS (SELECT FROM wakebell.reminder_rules WHERE failures > 0)
    OR EXISTS (SELECT FROM wakebell.alerts WHERE resolved_at IS NULL) AS work,
    (SELECT j.type FROM wakebell.jobs AS j WHERE j.held ORDER BY j.type, j.id LIMIT 1) IS NOT NULL AS parked,
    (
        SELECT CAST(jsonb_agg(jsonb_build_array(latest.started_at, latest.status) ORDER BY latest.started_at DESC) AS text)
        FROM (
            SELECT ticks.started_at, ticks.status
            FROM wakebell.ticks
            ORDER BY ticks.started_at DESC
            LIMIT 6
        ) AS latest
    ) AS last_ticks;

-- name: undelivered
-- Alerts that did not reach their recipient: of the failed messages that `open` marks next, in the same transaction.
SELECT taken.recipient, taken.text
FROM (
    SELECT id, kind, channel, recipient, text
    FROM wakebell.messages
    WHERE status IN ('failed', 'uncertain') AND judged_finish IS DISTINCT FROM finished_at
    ORDER BY id
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
) AS taken
WHERE taken.kind = 'alert' AND taken.channel <> 'inbox'
ORDER BY taken.id;

-- name: open
-- Open an alert for each thing that has failed and has none, and add to the open ones. `signs` are what the tick has seen
-- itself. Two ticks at once: the marks are taken by one of them, and of two inserts with one key the second meets the
-- first's. Only rows that were inserted here are counted.
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
), missed AS (
    UPDATE wakebell.schedules SET judged_miss = missed_at
    WHERE name = ANY (ARRAY(
        SELECT name FROM wakebell.schedules
        WHERE missed_at IS NOT NULL AND judged_miss IS DISTINCT FROM missed_at
        ORDER BY name
        LIMIT 1000
        FOR UPDATE SKIP LOCKED))
    RETURNING name, missed_slot, missed_at, removed_at
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
    UNION ALL
    SELECT 'schedule_missed', name, to_char(missed_slot AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"'), 1, missed_at, NULL
    FROM missed
    WHERE removed_at IS NULL
    UNION ALL
    SELECT 'reminder_failing', name, last_error, failures, coalesce(failed_at, now()), NULL
    FROM wakebell.reminder_rules
    WHERE failures > 0
      AND NOT EXISTS (  -- this failure is known already
          SELECT FROM wakebell.alerts
          WHERE alerts.key = 'reminder_failing:' || reminder_rules.name
            AND alerts.resolved_at IS NULL
            AND alerts.failed_at >= coalesce(reminder_rules.failed_at, alerts.failed_at))
    UNION ALL
    SELECT sign.kind, sign.subject, sign.reason, 1, now(), sign.last_job
    FROM jsonb_to_recordset(CAST(:signs AS jsonb)) AS sign (kind text, subject text, reason text, last_job bigint)
    WHERE sign.kind NOT IN ('job_unknown', 'jobs_overdue')
       OR NOT EXISTS (  -- a state and no event: one that lasts does not happen again
           SELECT FROM wakebell.alerts
           WHERE alerts.key = sign.kind || ':' || sign.subject AND alerts.resolved_at IS NULL)
), opened AS (
    INSERT INTO wakebell.alerts AS alert (key, kind, subject, reason, failures, failed_at, last_job)
    SELECT kind || ':' || subject, kind, subject, reason, failures, failed_at, last_job
    FROM found
    ORDER BY kind, subject
    ON CONFLICT (key) WHERE resolved_at IS NULL DO UPDATE SET
        reason = excluded.reason,
        failures = CASE
            WHEN starts_with(alert.kind, 'source_') OR alert.kind = 'reminder_failing'
            THEN excluded.failures  -- it counts them itself
            ELSE alert.failures + excluded.failures
        END,
        failed_at = greatest(alert.failed_at, excluded.failed_at),
        last_job = coalesce(excluded.last_job, alert.last_job),
        judged_at = now()
    RETURNING xmax = 0 AS new
)
SELECT count(*) FILTER (WHERE opened.new) AS opened FROM opened;

-- name: tell
-- Take what is open and is to be told: what was not told yet, and, unless somebody has taken it on, what was told so long
-- ago. Nothing that is muted. Two ticks at once: a row that the other has is the other's to tell.
WITH due AS (
    SELECT alert.id, alert.told_at IS NOT NULL AS again
    FROM wakebell.alerts AS alert
    WHERE alert.resolved_at IS NULL AND alert.acknowledged_at IS NULL
      AND (alert.told_at IS NULL OR alert.told_at < now() - make_interval(secs => :repeat_seconds))
      AND wakebell.muted_until(alert.key) IS NULL
    ORDER BY alert.id
    FOR UPDATE OF alert SKIP LOCKED
), told AS (
    UPDATE wakebell.alerts SET told_at = now()
    FROM due
    WHERE alerts.id = due.id
    RETURNING kind, subject, reason, failures, opened_at, last_job, again
)
SELECT kind, subject, reason, failures, opened_at, last_job, again
FROM told
ORDER BY again, kind, subject;

-- name: resolve
-- Close what went well after its latest failure (`healed`), and what nothing is left of. Not what failed anew just
-- now: where some fail and some go well in every tick, it is one incident until a tick without a failure. `kept` are jobs
-- of the type that stay failed; `told`: it was heard of, and may be heard of now. `well` is what the tick has seen itself,
-- and how long it has been so.
-- Two ticks at once never wait for each other here: a row that the other has is the other's to close.
-- Bounds as rows, an order and max(), not EXISTS: that was planned as a walk over all jobs, which expects to find one
-- soon. The verdict is no subquery of its own: of a row that was waited for it would be an old one.
WITH well AS (
    SELECT seen.key, seen.seconds
    FROM jsonb_to_recordset(CAST(:well AS jsonb)) AS seen (key text, seconds double precision)
), judged AS MATERIALIZED (
    SELECT alert.id, verdict.healed, alert.told_at IS NOT NULL AND wakebell.muted_until(alert.key) IS NULL AS told
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
                      AND coalesce(jobs.started_at, jobs.finished_at) >= alert.failed_at  -- what ran beside it mends nothing
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
                WHEN 'job_unknown' THEN (
                    SELECT jobs.id
                    FROM wakebell.jobs
                    WHERE jobs.held AND jobs.status = 'pending' AND jobs.type = alert.subject
                    ORDER BY jobs.type, jobs.id
                    LIMIT 1) IS NULL
                WHEN 'jobs_overdue' THEN NOT EXISTS (
                        SELECT FROM wakebell.queues WHERE queues.name = alert.subject AND queues.paused_until > now())
                    AND coalesce((  -- by half of what opened it: it is not to open and close by turns
                        SELECT jobs.run_after
                        FROM wakebell.jobs
                        WHERE jobs.status = 'pending' AND NOT jobs.waiting AND NOT jobs.held
                          AND jobs.queue = alert.subject AND jobs.rank <= now() AND jobs.run_after <= now()
                        ORDER BY jobs.rank, jobs.id
                        LIMIT 1) > now() - make_interval(secs => CAST(:overdue_seconds AS double precision) / 2), true)
                WHEN 'tick_overdue' THEN alert.key IN (SELECT well.key FROM well)
                WHEN 'tick_failed' THEN alert.key IN (SELECT well.key FROM well)
                WHEN 'schedule_missed' THEN EXISTS (
                    SELECT FROM wakebell.schedules
                    WHERE schedules.name = alert.subject AND schedules.removed_at IS NULL
                      AND schedules.fired_at >= alert.failed_at)
                WHEN 'reminder_failing' THEN EXISTS (
                    SELECT FROM wakebell.reminder_rules
                    WHERE reminder_rules.name = alert.subject AND reminder_rules.failures = 0)
                WHEN 'config_broken' THEN EXISTS (
                    SELECT FROM well
                    WHERE well.key = alert.key AND alert.failed_at < now() - make_interval(secs => well.seconds))
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
                    AND NOT EXISTS (
                        SELECT FROM wakebell.watches
                        WHERE watches.conversation_id = wakebell.conversation_of(alert.subject))
                WHEN 'recipient_blocked' THEN alert.subject <> ALL (CAST(CAST(:recipients AS text) AS text[]))
                WHEN 'channel_parked' THEN alert.subject <> ALL (CAST(CAST(:channels AS text) AS text[]))
                WHEN 'quota_low' THEN alert.subject <> ALL (CAST(CAST(:channels AS text) AS text[]))
                WHEN 'jobs_overdue' THEN EXISTS (
                    SELECT FROM wakebell.queues WHERE queues.name = alert.subject AND queues.paused_until > now())
                WHEN 'schedule_missed' THEN NOT EXISTS (
                    SELECT FROM wakebell.schedules
                    WHERE schedules.name = alert.subject AND schedules.removed_at IS NULL)
                WHEN 'reminder_failing' THEN NOT EXISTS (
                    SELECT FROM wakebell.reminder_rules WHERE reminder_rules.name = alert.subject)
                WHEN 'job_unknown' THEN false
                WHEN 'tick_overdue' THEN false
                WHEN 'tick_failed' THEN false
                WHEN 'config_broken' THEN false
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
    RETURNING kind, subject, reason, failures, opened_at, healed, told
)
SELECT kind, subject, reason, failures, opened_at, healed IS TRUE AS healed, told, (
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
