-- name: look
-- Whether any table holds a row past its time, and nobody is told to prune. Each question is one probe of an index, asked
-- so that nothing else can be planned: EXISTS of an old row walked over the whole table wherever statistics were missing,
-- or from a time when there were such rows.
SELECT (
    coalesce((SELECT min(finished_at) FROM wakebell.jobs) < now() - make_interval(secs => :jobs_seconds), false)
    OR coalesce(
        (SELECT min(finished_at) FROM wakebell.messages) < now() - make_interval(secs => :messages_seconds), false)
    OR coalesce((SELECT min(aged_from) FROM wakebell.events) < now() - make_interval(secs => :events_seconds), false)
    OR coalesce((SELECT min(starts_at) FROM wakebell.bookings) < now() - make_interval(secs => :jobs_seconds), false)
    OR coalesce((SELECT min(starts_at) FROM wakebell.reminders) < now() - make_interval(secs => :jobs_seconds), false)
    OR coalesce(
        (SELECT min(last_at) FROM wakebell.conversations) < now() - make_interval(secs => :conversations_seconds), false)
    OR coalesce(
        (SELECT min(received_at) FROM wakebell.said WHERE answered_at IS NOT NULL)
        < now() - make_interval(secs => :conversations_seconds), false)
    OR (
        SELECT s.id
        FROM wakebell.said AS s
        WHERE s.answered_at IS NULL AND s.received_at < now() - make_interval(secs => :conversations_seconds)
          AND NOT EXISTS (
              SELECT FROM wakebell.jobs AS j
              WHERE j.type = 'answer_message' AND j.unique_key = CAST(s.id AS text) AND j.status IN ('pending', 'running'))
        ORDER BY s.received_at
        LIMIT 1
    ) IS NOT NULL
    OR coalesce(
        (SELECT min(spent_on) FROM wakebell.spendings) < CAST((now() AT TIME ZONE 'UTC') - interval '1 day' AS date), false)
    OR coalesce((SELECT min(started_at) FROM wakebell.ticks) < now() - make_interval(secs => :ticks_seconds), false)
    OR EXISTS (
        SELECT
        FROM wakebell.sources
        CROSS JOIN LATERAL (
            SELECT FROM wakebell.items
            WHERE items.source = sources.name
              AND items.seen_at < sources.last_round_at - make_interval(secs => :items_seconds)
              AND (
                  SELECT true FROM wakebell.owed WHERE owed.item_id = items.id AND owed.message_id IS NULL LIMIT 1
              ) IS NULL
            ORDER BY items.seen_at
            LIMIT 1
        ) AS old)
) AND NOT EXISTS (
    SELECT FROM wakebell.jobs
    WHERE type = 'prune_rows' AND unique_key = 'prune' AND status IN ('pending', 'running')
) AS prunable;

-- name: plan
-- One job, unless there is one.
INSERT INTO wakebell.jobs (type, queue, unique_key)
SELECT 'prune_rows', 'wakebell.housekeeping', 'prune'
ON CONFLICT DO NOTHING
RETURNING id;
