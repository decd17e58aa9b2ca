-- name: plan
-- A fetch job for each wanted source whose slot has come, which moves its next slot in the same statement.
-- Two ticks at once: the second passes over the row, or sees the moved slot, and plans nothing. A row is never waited
-- for: whoever holds it may be suspended, and a later tick plans what is still due. A tick that comes a
-- little early takes the slot (a tenth of the interval, at most five minutes); one that comes hours late takes
-- one slot, not all it missed. Slots lie on a grid, so that neither makes the next one drift. A slot before
-- `fresh_until` waits until then; `retry_at` comes between slots. Of a source that is gone only the slot moves: it
-- stays one that somebody watches.
WITH wanted AS (
    SELECT w.name, w.fingerprint, w.every_seconds, w.host
    FROM jsonb_to_recordset(CAST(CAST(:wanted AS text) AS jsonb))
      AS w (name text, fingerprint text, every_seconds double precision, host text)
), come AS (
    SELECT known.name
    FROM wakebell.sources AS known
    JOIN wanted ON wanted.name = known.name
    WHERE greatest(known.due_at, known.fresh_until)
          <= now() + make_interval(secs => least(known.every_seconds / 10, 300))
       OR known.retry_at <= now()
       OR known.fingerprint <> wanted.fingerprint
       OR known.every_seconds <> wanted.every_seconds
    ORDER BY known.name
    FOR UPDATE OF known SKIP LOCKED
), due AS (
    INSERT INTO wakebell.sources AS known (name, fingerprint, every_seconds, host, grid_from, due_at)
    SELECT wanted.name, wanted.fingerprint, wanted.every_seconds, wanted.host, now(),
           now() + make_interval(secs => wanted.every_seconds)
    FROM wanted
    WHERE wanted.name IN (SELECT come.name FROM come)
       OR NOT EXISTS (SELECT FROM wakebell.sources AS known WHERE known.name = wanted.name)
    ORDER BY wanted.name
    ON CONFLICT (name) DO UPDATE SET
        fingerprint = excluded.fingerprint,
        every_seconds = excluded.every_seconds,
        host = CASE
            WHEN known.fingerprint = excluded.fingerprint AND known.moved_at IS NOT NULL THEN known.moved_host
            ELSE excluded.host
        END,
        primed_at = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.primed_at END,
        etag = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.etag END,
        last_modified = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.last_modified END,
        failures = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.failures ELSE 0 END,
        retry_at = NULL,
        fresh_until = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.fresh_until END,
        ttl_seconds = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.ttl_seconds END,
        refusals = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.refusals ELSE 0 END,
        gone_at = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.gone_at END,
        distrusted_at = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.distrusted_at END,
        moved_to = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.moved_to END,
        moved_host = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.moved_host END,
        moved_since = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.moved_since END,
        moved_rounds = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.moved_rounds ELSE 0 END,
        moved_at = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.moved_at END,
        grid_from = CASE WHEN known.every_seconds = excluded.every_seconds THEN known.grid_from ELSE now() END,
        due_at = CASE
            WHEN known.every_seconds <> excluded.every_seconds
            THEN now() + make_interval(secs => excluded.every_seconds)
            ELSE known.grid_from + make_interval(secs => known.every_seconds * (1 + floor(
                (extract(epoch FROM now() - known.grid_from) + least(known.every_seconds / 10, 300))
                / known.every_seconds)))
            END
    WHERE known.name IN (SELECT come.name FROM come)  -- not one that another tick has just put in
    RETURNING name, host, gone_at
), listed AS (
    SELECT jsonb_agg(jsonb_build_object(
        'type', 'fetch_source',
        'payload', jsonb_build_object('source', due.name, 'host', due.host),
        'queue', 'wakebell.fetch',
        'unique_key', due.name,
        'serial_key', 'wakebell.host:' || due.host,
        'max_attempts', 1000
    ) ORDER BY due.name) AS jobs
    FROM due
    WHERE due.gone_at IS NULL
)
SELECT
    (SELECT count(*) FROM due WHERE due.gone_at IS NULL) AS due,
    -- One whose last fetch has not ended is not put in: that one serves this slot too.
    (SELECT count(*) FROM listed, wakebell.add_jobs(listed.jobs) AS added WHERE added.created) AS queued;

-- name: look
-- When the first of these sources is to be planned.
SELECT min(least(retry_at, greatest(due_at, fresh_until))) AS next_source_at
FROM wakebell.sources
WHERE name = ANY (CAST(CAST(:names AS text) AS text[])) AND gone_at IS NULL;

-- name: get
-- What a visit needs to know, the host's turn with it. `watched`: some replica has planned it lately.
SELECT
    s.fingerprint, s.etag, s.last_modified, s.primed_at, s.host, s.refusals,
    s.gone_at IS NOT NULL AS gone,
    s.distrusted_at IS NOT NULL AS distrusted,
    CASE WHEN s.moved_at IS NOT NULL THEN s.moved_to END AS moved_to,
    s.last_round_at < now() - make_interval(secs => :whole_seconds) AS whole_due,
    s.last_success_at > s.last_round_at AS unchanged_lately,
    greatest(s.due_at, s.fresh_until) > now() - make_interval(secs => greatest(s.every_seconds, 3600)) AS watched,
    extract(epoch FROM greatest(h.next_at, h.wait_until) - now()) AS wait_seconds,
    h.wait_until > now() AS host_waits,
    h.reason AS host_reason,
    now() AS now
FROM wakebell.sources AS s
LEFT JOIN wakebell.hosts AS h ON h.host = s.host
WHERE s.name = :name;

-- name: lock
-- The source of a round that is about to be stored. Held to the end of the transaction, so that two rounds of one
-- source are stored one after the other and `primed_at` is read where it is decided.
SELECT fingerprint, primed_at, key_rule, oldest_at, last_round_at, now() AS now
FROM wakebell.sources
WHERE name = :name
FOR UPDATE;

-- name: settle
-- A round that went well. Of a complete one (not a 304) also what it brought: validators, the primed mark, the feed's
-- own ttl. An interval is made longer only. A move is believed after enough rounds over enough days, or at once (`at_once`);
-- `moved_now` and `distrusted_now` say whether that was decided here.
UPDATE wakebell.sources AS s SET
    last_success_at = now(),
    failures = 0,
    refusals = 0,
    last_error = NULL,
    retry_at = NULL,
    primed_at = CASE WHEN given.complete THEN coalesce(s.primed_at, now()) ELSE s.primed_at END,
    last_round_at = CASE WHEN given.complete THEN now() ELSE s.last_round_at END,
    distrusted_at = coalesce(s.distrusted_at, CASE WHEN given.distrust THEN now() END),
    etag = CASE
        WHEN s.distrusted_at IS NOT NULL OR given.distrust THEN NULL
        WHEN given.complete THEN given.etag
        ELSE s.etag
    END,
    last_modified = CASE
        WHEN s.distrusted_at IS NOT NULL OR given.distrust THEN NULL
        WHEN given.complete THEN given.last_modified
        ELSE s.last_modified
    END,
    ttl_seconds = CASE WHEN given.complete THEN given.ttl_seconds ELSE s.ttl_seconds END,
    fresh_until = CASE
        WHEN greatest(given.fresh_seconds, given.ttl_seconds, CASE WHEN NOT given.complete THEN s.ttl_seconds END)
            > s.every_seconds
        THEN now() + make_interval(secs => greatest(
            given.fresh_seconds, given.ttl_seconds, CASE WHEN NOT given.complete THEN s.ttl_seconds END))
    END,
    moved_since = CASE
        WHEN given.moved_to IS NULL THEN NULL
        WHEN given.moved_to = s.moved_to THEN s.moved_since
        ELSE now()
    END,
    moved_rounds = CASE
        WHEN given.moved_to IS NULL THEN 0
        WHEN given.moved_to = s.moved_to THEN s.moved_rounds + 1
        ELSE 1
    END,
    moved_at = CASE
        WHEN given.moved_to IS NULL THEN NULL
        WHEN given.moved_to = s.moved_to AND s.moved_at IS NOT NULL THEN s.moved_at
        WHEN given.at_once THEN now()
        WHEN given.moved_to = s.moved_to
            AND s.moved_rounds + 1 >= :least_rounds
            AND s.moved_since <= now() - make_interval(secs => :least_seconds)
        THEN now()
    END,
    moved_to = given.moved_to,
    moved_host = given.moved_host
FROM (
    SELECT
        CAST(:complete AS boolean) AS complete,
        CAST(:distrust AS boolean) AS distrust,
        CAST(:etag AS text) AS etag,
        CAST(:last_modified AS text) AS last_modified,
        CAST(:ttl_seconds AS double precision) AS ttl_seconds,
        CAST(:fresh_seconds AS double precision) AS fresh_seconds,
        CAST(:moved_to AS text) AS moved_to,
        CAST(:moved_host AS text) AS moved_host,
        CAST(:at_once AS boolean) AS at_once
) AS given
WHERE s.name = :name AND s.fingerprint = :fingerprint
RETURNING s.moved_at IS NOT DISTINCT FROM now() AS moved_now, s.distrusted_at IS NOT DISTINCT FROM now() AS distrusted_now;

-- name: fail
-- One more failure in a row. Nothing that was seen changes, nor do the validators; a move that was believed no more is.
-- The next try comes after the delay of so many failures, unless the next slot is nearer.
UPDATE wakebell.sources SET
    failures = failures + 1,
    last_failure_at = now(),
    last_error = :reason,
    refusals = 0,
    retry_at = CASE
        WHEN now() + make_interval(secs => delays.seconds[least(failures + 1, cardinality(delays.seconds))])
            < greatest(due_at, fresh_until)
        THEN now() + make_interval(secs => delays.seconds[least(failures + 1, cardinality(delays.seconds))])
    END,
    moved_to = CASE WHEN moved_at IS NULL THEN moved_to END,
    moved_host = CASE WHEN moved_at IS NULL THEN moved_host END,
    moved_since = CASE WHEN moved_at IS NULL THEN moved_since END,
    moved_rounds = CASE WHEN moved_at IS NULL THEN moved_rounds ELSE 0 END,
    moved_at = NULL
FROM (SELECT CAST(CAST(:delays AS text) AS double precision[]) AS seconds) AS delays
WHERE name = :name AND fingerprint = :fingerprint
RETURNING failures;

-- name: refuse
-- The host asks to be left alone: tried again when it may be, and no failure until that lasts.
UPDATE wakebell.sources SET
    refusals = refusals + 1,
    failures = CASE
        WHEN greatest(refusals + 1, :host_refusals) >= :lasting
        THEN greatest(failures + 1, refusals + 1, :host_refusals)
        ELSE failures
    END,
    last_failure_at = CASE
        WHEN greatest(refusals + 1, :host_refusals) >= :lasting THEN now()
        ELSE last_failure_at
    END,
    last_error = :reason,
    retry_at = now() + make_interval(secs => :wait_seconds)
WHERE name = :name AND fingerprint = :fingerprint
RETURNING greatest(refusals, :host_refusals) >= :lasting AS lasting;

-- name: stop
-- It is gone, says its server: never planned again, until it has another address.
UPDATE wakebell.sources SET
    failures = failures + 1,
    refusals = 0,
    last_failure_at = now(),
    last_error = :reason,
    gone_at = now(),
    retry_at = NULL,
    fresh_until = NULL
WHERE name = :name AND fingerprint = :fingerprint
RETURNING name;

-- name: leave
-- Left to a replica that knows it: whoever plans it next, from then on.
UPDATE wakebell.sources SET retry_at = now() + make_interval(secs => :delay_seconds)
WHERE name = :name;

-- name: line_up
-- The fetch of a source anew, in the line of the host that it is at now.
SELECT added.id
FROM wakebell.sources AS s
CROSS JOIN LATERAL wakebell.add_jobs(jsonb_build_array(jsonb_build_object(
    'type', 'fetch_source',
    'payload', jsonb_build_object('source', s.name, 'host', s.host),
    'queue', 'wakebell.fetch',
    'unique_key', s.name,
    'serial_key', 'wakebell.host:' || s.host,
    'max_attempts', 1000
))) AS added
WHERE s.name = :name AND s.host IS NOT NULL;
