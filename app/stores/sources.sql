-- name: plan
-- A fetch job for each wanted source whose slot has come, which moves its next slot in the same statement.
-- Two ticks at once: the second waits for the row, sees the moved slot and plans nothing. A tick that comes a
-- little early takes the slot (a tenth of the interval, at most five minutes); one that comes hours late takes
-- one slot, not all it missed. Slots lie on a grid, so that neither makes the next one drift.
WITH wanted AS (
    SELECT w.name, w.fingerprint, w.every_seconds
    FROM jsonb_to_recordset(CAST(CAST(:wanted AS text) AS jsonb))
      AS w (name text, fingerprint text, every_seconds double precision)
), due AS (
    INSERT INTO wakebell.sources AS known (name, fingerprint, every_seconds, grid_from, due_at)
    SELECT wanted.name, wanted.fingerprint, wanted.every_seconds, now(),
           now() + make_interval(secs => wanted.every_seconds)
    FROM wanted
    ORDER BY wanted.name
    ON CONFLICT (name) DO UPDATE SET
        fingerprint = excluded.fingerprint,
        every_seconds = excluded.every_seconds,
        primed_at = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.primed_at END,
        etag = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.etag END,
        last_modified = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.last_modified END,
        failures = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.failures ELSE 0 END,
        grid_from = CASE WHEN known.every_seconds = excluded.every_seconds THEN known.grid_from ELSE now() END,
        due_at = CASE
            WHEN known.every_seconds <> excluded.every_seconds
            THEN now() + make_interval(secs => excluded.every_seconds)
            ELSE known.grid_from + make_interval(secs => known.every_seconds * (1 + floor(
                (extract(epoch FROM now() - known.grid_from) + least(known.every_seconds / 10, 300))
                / known.every_seconds)))
            END
    WHERE known.due_at <= now() + make_interval(secs => least(known.every_seconds / 10, 300))
       OR known.fingerprint <> excluded.fingerprint
       OR known.every_seconds <> excluded.every_seconds
    RETURNING name
), queued AS (
    INSERT INTO wakebell.jobs (type, payload, queue, unique_key, max_attempts)
    SELECT 'fetch_source', jsonb_build_object('source', due.name), 'wakebell.fetch', due.name, 1000
    FROM due
    ORDER BY due.name
    ON CONFLICT DO NOTHING  -- its last fetch has not ended: that one serves this slot too
    RETURNING id
)
SELECT (SELECT count(*) FROM due) AS due, (SELECT count(*) FROM queued) AS queued;

-- name: lock
-- The source of a round that is about to be stored. Held to the end of the transaction, so that two rounds of one
-- source are stored one after the other and `primed_at` is read where it is decided.
SELECT fingerprint, primed_at
FROM wakebell.sources
WHERE name = :name
FOR UPDATE;

-- name: fail
-- One more failure in a row. Nothing that was seen changes, nor do the validators. Returns how long it is to the
-- next slot, in seconds.
UPDATE wakebell.sources SET
    failures = failures + 1,
    last_failure_at = now(),
    last_error = :reason
WHERE name = :name AND fingerprint = :fingerprint
RETURNING failures, extract(epoch FROM due_at - now()) AS seconds_to_slot;
