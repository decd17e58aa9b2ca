-- name: look
-- Whether there is something for a plan: a slot has come, a schedule is new, changed or back, or one is gone. Of one
-- that a process with another line keeps: whether this one may take it, or is to object; and of one's own, whether
-- there is an objection to dismiss. And when the first slot is. The table has a row a schedule, so that reading all of
-- it is the fastest.
SELECT
    coalesce(bool_or(CASE
        WHEN wanted.name IS NULL THEN known.removed_at IS NULL
        WHEN known.name IS NULL THEN true
        WHEN known.fingerprint <> wanted.fingerprint THEN known.objected_at IS NULL
            OR known.objected_at <= now() - make_interval(secs => :unheard_seconds)
            OR known.configured_at < now() - make_interval(secs => :older_seconds)
            OR known.configured_at > now() + make_interval(secs => :clock_back_seconds)
        ELSE known.removed_at IS NOT NULL
            OR known.objected_at IS NOT NULL
            OR known.next_at <= now()
            OR greatest(known.anchor_at, known.last_slot) > now() + make_interval(secs => :clock_back_seconds)
    END), false) AS schedulable,
    min(known.next_at) FILTER (WHERE wanted.name IS NOT NULL AND known.removed_at IS NULL) AS next_slot_at
FROM jsonb_to_recordset(CAST(CAST(:schedules AS text) AS jsonb)) AS wanted (name text, fingerprint text)
FULL JOIN wakebell.schedules AS known ON known.name = wanted.name;

-- name: read
-- All that are known, beside the database's clock; one row without a name where none is.
SELECT
    now() AS now, s.name, s.fingerprint, s.revision, s.anchor_at, s.next_at, s.last_slot, s.fired_slot, s.fired_at,
    s.missed_count, s.missed_slot, s.missed_at, s.removed_at, s.configured_at, s.objected_at
FROM (SELECT) AS one
LEFT JOIN wakebell.schedules AS s ON true
ORDER BY s.name;

-- name: move
-- Queue the jobs of the slots that have come, and move each schedule past them: both, or neither. Two at once: the
-- second waits for the row, finds another revision, and neither moves nor queues. A schedule whose jobs the rules of
-- `wakebell.enqueue_many` refuse stays where it is, alone.
WITH given AS (
    SELECT g.*, CASE WHEN g.jobs <> '[]' THEN wakebell.jobs_fault(
        (
            SELECT jsonb_agg(entry -> 'job' ORDER BY at)
            FROM jsonb_array_elements(g.jobs) WITH ORDINALITY AS e (entry, at)
        ),
        1000, 'jobs', 0
    ) END AS fault
    FROM jsonb_to_recordset(CAST(CAST(:moves AS text) AS jsonb)) AS g (
        name text, revision bigint, fingerprint text, begins boolean, removed boolean, anchor_at timestamptz,
        next_at timestamptz, last_slot timestamptz, fired_slot timestamptz, missed integer, missed_slot timestamptz,
        configured_at timestamptz, objects boolean, jobs jsonb
    )
), created AS (
    INSERT INTO wakebell.schedules AS s (name, fingerprint, anchor_at, next_at, configured_at)
    SELECT given.name, given.fingerprint, given.anchor_at, given.next_at, coalesce(given.configured_at, now())
    FROM given
    WHERE given.revision IS NULL
    ORDER BY given.name
    ON CONFLICT (name) DO NOTHING
    RETURNING s.name
), seen AS (
    SELECT s.name
    FROM wakebell.schedules AS s
    JOIN given ON given.name = s.name AND given.revision = s.revision
    WHERE given.fault IS NULL
    ORDER BY s.name  -- one order for all, so that two ticks wait and never deadlock
    FOR UPDATE OF s
), moved AS (
    UPDATE wakebell.schedules AS s SET
        fingerprint = given.fingerprint,
        -- an objection changes nothing that a tick of the other process goes by
        revision = s.revision + CASE WHEN given.objects THEN 0 ELSE 1 END,
        anchor_at = given.anchor_at,
        next_at = given.next_at,
        last_slot = given.last_slot,
        fired_slot = coalesce(given.fired_slot, s.fired_slot),
        fired_at = CASE WHEN given.jobs = '[]' THEN s.fired_at ELSE now() END,
        missed_count = s.missed_count + given.missed,
        missed_slot = CASE WHEN given.begins THEN NULL ELSE coalesce(given.missed_slot, s.missed_slot) END,
        missed_at = CASE WHEN given.begins THEN NULL WHEN given.missed > 0 THEN now() ELSE s.missed_at END,
        removed_at = CASE WHEN given.removed THEN now() WHEN given.objects THEN s.removed_at END,
        configured_at = coalesce(given.configured_at, s.configured_at),
        objected_at = CASE WHEN given.objects THEN now() WHEN given.removed THEN s.objected_at END
    FROM given
    JOIN seen ON seen.name = given.name
    WHERE s.name = given.name
    RETURNING s.name
), listed AS (
    SELECT jsonb_agg(entry -> 'job' ORDER BY entry ->> 'slot', given.name) AS jobs
    FROM given
    JOIN moved ON moved.name = given.name
    CROSS JOIN LATERAL jsonb_array_elements(given.jobs) AS e (entry)
)
SELECT
    (SELECT count(*) FROM listed, wakebell.add_jobs(listed.jobs) AS added WHERE added.created) AS fired,
    (
        SELECT CAST(jsonb_agg(changed.name) AS text)
        FROM (SELECT created.name FROM created UNION ALL SELECT moved.name FROM moved) AS changed
    ) AS moved,
    (
        SELECT CAST(jsonb_object_agg(given.name, given.fault) AS text)
        FROM given
        WHERE given.fault IS NOT NULL
    ) AS refused;
