-- name: answered
-- The gap begins. After an answer that does not ask to be left alone, nothing of an earlier one counts any more; where
-- there was no answer, it does.
INSERT INTO wakebell.hosts AS known (host, next_at)
VALUES (CAST(:host AS text), clock_timestamp() + make_interval(secs => :gap_seconds))
ON CONFLICT (host) DO UPDATE SET
    next_at = excluded.next_at,
    wait_until = CASE WHEN NOT CAST(:answered AS boolean) THEN known.wait_until END,
    refusals = CASE WHEN CAST(:answered AS boolean) THEN 0 ELSE known.refusals END,
    reason = CASE WHEN NOT CAST(:answered AS boolean) THEN known.reason END;

-- name: refused
-- It asks to be left alone. How long: what it says, else by how often it has said so in a row. A longer wait that
-- another source was given stays.
INSERT INTO wakebell.hosts AS known (host, next_at, wait_until, refusals, reason)
SELECT given.host, now(), now() + make_interval(secs => coalesce(given.asked, given.usual[1])), 1, given.reason
FROM (
    SELECT
        CAST(:host AS text) AS host,
        CAST(:asked_seconds AS double precision) AS asked,
        CAST(CAST(:usual AS text) AS double precision[]) AS usual,
        CAST(:reason AS text) AS reason
) AS given
ON CONFLICT (host) DO UPDATE SET
    wait_until = greatest(
        known.wait_until,
        now() + make_interval(secs => coalesce(
            CAST(:asked_seconds AS double precision),
            (CAST(CAST(:usual AS text) AS double precision[]))[
                least(known.refusals + 1, cardinality(CAST(CAST(:usual AS text) AS double precision[])))]))),
    refusals = known.refusals + 1,
    reason = excluded.reason
RETURNING refusals, extract(epoch FROM wait_until - now()) AS wait_seconds;

-- name: prune
-- Hosts that nobody has read for long, oldest first. Two at once share them.
DELETE FROM wakebell.hosts WHERE host = ANY (ARRAY(
    SELECT host FROM wakebell.hosts
    WHERE next_at < now() - make_interval(secs => :keep_seconds)
      AND (wait_until IS NULL OR wait_until < now())
    ORDER BY next_at
    LIMIT :most
    FOR UPDATE SKIP LOCKED
))
RETURNING host;
