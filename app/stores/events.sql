-- name: keep
SELECT job_id, created FROM wakebell.keep_event(
    CAST(:door AS text), CAST(:event_id AS text), CAST(:type AS text), CAST(:source AS text),
    CAST(:data AS jsonb), CAST(:omitted AS text), CAST(:body AS bytea), CAST(:job_type AS text), CAST(:queue AS text)
);

-- name: body
-- Of an event whose job's payload could not hold it.
SELECT body FROM wakebell.events WHERE door = :door AND event_id = :event_id;

-- name: prune
SELECT wakebell.prune_events(:keep_seconds, :most) AS pruned;
