-- What the status page draws. Each statement reads an index backwards, no further than to its cap.

-- name: hours
-- The ticks of the last hours, counted by the hour in which they began.
WITH latest AS MATERIALIZED (
    SELECT t.started_at, t.status, t.summary
    FROM wakebell.ticks AS t
    WHERE t.started_at > now() - make_interval(hours => CAST(:hours AS integer))
    ORDER BY t.started_at DESC
    LIMIT CAST(:most AS integer)
)
SELECT
    to_timestamp(floor(extract(epoch FROM l.started_at) / 3600) * 3600) AS began_at,
    count(*) AS ticks,
    coalesce(max(CAST(l.summary ->> 'duration_ms' AS numeric)), 0) AS longest_ms,
    coalesce(sum(CAST(l.summary -> 'sources' ->> 'new_items' AS numeric)), 0) AS items,
    coalesce(sum(CAST(l.summary -> 'messages' ->> 'sent' AS numeric)), 0) AS sent,
    coalesce(sum(
        coalesce(CAST(l.summary -> 'jobs' ->> 'failed' AS numeric), 0)
        + coalesce(CAST(l.summary -> 'sources' ->> 'failed' AS numeric), 0)
        + coalesce(CAST(l.summary -> 'messages' ->> 'failed' AS numeric), 0)
        + CASE WHEN l.status = 'failed' THEN 1 ELSE 0 END), 0) AS failures
FROM latest AS l
GROUP BY 1
ORDER BY 1;

-- name: ticks
-- The latest ticks, whole.
SELECT t.id, t.trigger, t.status, t.started_at, t.finished_at, CAST(t.summary AS text) AS summary
FROM wakebell.ticks AS t
ORDER BY t.started_at DESC
LIMIT CAST(:most AS integer);

-- name: rounds
-- The latest rounds of all sources, oldest first: those that were read, and those that failed and were cancelled. Written
-- as rows, so that the listing's index is read backwards (see `listings.sql`).
SELECT latest.source, latest.finished_at, latest.status, latest.new
FROM unnest(ARRAY['done', 'cancelled']) AS given (status)
CROSS JOIN LATERAL (
    SELECT j.unique_key AS source, j.finished_at, j.status, CAST(j.result ->> 'new' AS integer) AS new
    FROM wakebell.jobs AS j
    WHERE (j.queue, j.type, j.status, j.id) > ('wakebell.fetch', 'fetch_source', given.status, 0)
      AND (j.queue, j.type, j.status, j.id) < ('wakebell.fetch', 'fetch_source', given.status, 9223372036854775807)
    ORDER BY j.queue DESC, j.type DESC, j.status DESC, j.id DESC
    LIMIT CAST(:most AS integer)
) AS latest
WHERE latest.finished_at IS NOT NULL AND latest.source IS NOT NULL
ORDER BY latest.finished_at;

-- name: channels
-- What is known of these channels' allowances.
SELECT c.name, c.quota_limit, c.quota_used, c.quota_read_at, c.low_reason, c.parked_reason,
       c.low_until > now() AS low, c.parked_until > now() AS parked, c.parked_until
FROM wakebell.channels AS c
WHERE c.name = ANY (CAST(CAST(:names AS text) AS text[]))
ORDER BY c.name;
