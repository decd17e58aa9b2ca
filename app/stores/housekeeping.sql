-- name: look
-- Whether any table holds a row past its time, and nobody is told to prune; each question is one probe of an index.
SELECT (
    EXISTS (
        SELECT FROM wakebell.jobs WHERE finished_at < now() - make_interval(secs => :jobs_seconds))
    OR EXISTS (
        SELECT FROM wakebell.messages WHERE finished_at < now() - make_interval(secs => :messages_seconds))
    OR EXISTS (
        SELECT FROM wakebell.ticks WHERE started_at < now() - make_interval(secs => :ticks_seconds))
    OR EXISTS (
        SELECT
        FROM wakebell.sources
        CROSS JOIN LATERAL (
            SELECT FROM wakebell.items
            WHERE items.source = sources.name
              AND items.seen_at < sources.last_round_at - make_interval(secs => :items_seconds)
              AND NOT EXISTS (
                  SELECT FROM wakebell.owed WHERE owed.item_id = items.id AND owed.message_id IS NULL)
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
