-- name: standing
-- What is known of one address and its channel, counted up to now. What was composed since the provider was asked is
-- spent already, sent or not; and what was sent shortly before, which it may not have counted yet.
WITH given AS (
    SELECT
        CAST(:channel AS text) AS channel,
        CAST(:address AS text) AS address,
        CAST(:recipient AS text) AS recipient,
        CAST(:counted AS boolean) AS counted
)
SELECT
    now() AS now,
    r.blocked_reason,
    r.blocked_at IS NOT NULL AS blocked,
    r.moved_to,
    r.members,
    r.members_read_at,
    c.parked_until > now() AS parked,
    c.parked_reason,
    c.quota_limit,
    c.quota_used,
    c.quota_tried_at,
    c.quota_read_at,
    CASE WHEN given.counted THEN (
        SELECT coalesce(sum(greatest(to_whom.members, 1)), 0)
        FROM wakebell.messages AS m
        LEFT JOIN wakebell.recipients AS to_whom ON to_whom.address = m.address
        WHERE m.channel = given.channel AND m.status IN ('queued', 'sending', 'retrying')
    ) ELSE 0 END AS under_way,
    CASE WHEN given.counted THEN (
        SELECT coalesce(sum(greatest(to_whom.members, 1)), 0)
        FROM wakebell.messages AS m
        LEFT JOIN wakebell.recipients AS to_whom ON to_whom.address = m.address
        WHERE m.channel = given.channel AND m.status IN ('sent', 'uncertain')
          AND m.finished_at >= greatest(
              date_trunc('month', now() AT TIME ZONE make_interval(secs => :zone_seconds))
                  AT TIME ZONE make_interval(secs => :zone_seconds),
              c.quota_read_at - make_interval(secs => :lag_seconds))
    ) ELSE 0 END AS sent_since,
    CASE WHEN given.counted THEN (
        SELECT m.created_at
        FROM wakebell.messages AS m
        WHERE m.recipient = given.recipient AND m.channel = given.channel AND m.kind = 'items'
        ORDER BY m.id DESC
        LIMIT 1
    ) END AS last_at,
    CASE WHEN given.counted THEN (
        SELECT coalesce(sum(greatest(groups.members - 1, 0)), 0)
        FROM wakebell.recipients AS groups
        WHERE groups.channel = given.channel AND groups.members IS NOT NULL
          AND groups.members_read_at > now() - interval '7 days'
    ) ELSE 0 END AS further_members
FROM given
LEFT JOIN wakebell.channels AS c ON c.name = given.channel
LEFT JOIN wakebell.recipients AS r ON r.address = given.address;

-- name: closed
-- Which of these addresses, by their places, nothing goes to now.
SELECT given.place
FROM jsonb_to_recordset(CAST(CAST(:given AS text) AS jsonb)) AS given (place integer, channel text, address text)
WHERE EXISTS (
        SELECT FROM wakebell.channels WHERE channels.name = given.channel AND channels.parked_until > now())
   OR EXISTS (
        SELECT FROM wakebell.recipients
        WHERE recipients.address = given.address AND recipients.blocked_at IS NOT NULL)
ORDER BY given.place;

-- name: claim_reading
-- Whoever gets a row asks the provider; the others are told nothing until the time is over.
INSERT INTO wakebell.channels AS known (name, quota_tried_at)
VALUES (CAST(:channel AS text), now())
ON CONFLICT (name) DO UPDATE SET quota_tried_at = now()
WHERE known.quota_tried_at IS NULL OR known.quota_tried_at <= now() - make_interval(secs => :every_seconds)
RETURNING name;

-- name: keep_reading
-- What the provider has said. A reading that was begun after the channel was parked and shows room frees it, and its
-- queue with it. Another limit than before: somebody has bought more, and whether that runs low is seen anew.
WITH read AS (
    UPDATE wakebell.channels AS c SET
        quota_read_at = now(),
        quota_limit = CAST(:limit AS integer),
        quota_used = CAST(:used AS integer),
        low_until = CASE
            WHEN c.low_until > now() AND c.quota_limit IS DISTINCT FROM CAST(:limit AS integer) THEN now()
            ELSE c.low_until
        END,
        parked_until = CASE WHEN given.frees THEN NULL ELSE c.parked_until END,
        freed_at = CASE WHEN given.frees THEN now() ELSE c.freed_at END
    FROM (
        SELECT name, CAST(:room AS boolean) AND parked_until > now() AND quota_tried_at > parked_at AS frees
        FROM wakebell.channels
        WHERE name = CAST(:channel AS text)
        FOR UPDATE
    ) AS given
    WHERE c.name = given.name
    RETURNING given.frees
)
UPDATE wakebell.queues SET paused_until = NULL, pause_reason = NULL
WHERE name = 'wakebell.send.' || CAST(:channel AS text) AND (SELECT frees FROM read);

-- name: park
-- The channel takes nothing more until then. Parked already: for the longer of the two.
INSERT INTO wakebell.channels AS known (name, parked_at, parked_until, parked_reason)
VALUES (CAST(:channel AS text), now(), CAST(:until AS timestamptz), CAST(:reason AS text))
ON CONFLICT (name) DO UPDATE SET
    parked_at = CASE WHEN known.parked_until > now() THEN known.parked_at ELSE excluded.parked_at END,
    parked_until = greatest(known.parked_until, excluded.parked_until),
    parked_reason = excluded.parked_reason;

-- name: pause
-- No send of the channel is started before then, by whichever replica. A longer pause stays.
INSERT INTO wakebell.queues AS known (name, paused_until, pause_reason)
VALUES ('wakebell.send.' || CAST(:channel AS text), now() + make_interval(secs => :seconds), CAST(:reason AS text))
ON CONFLICT (name) DO UPDATE SET
    paused_until = greatest(known.paused_until, excluded.paused_until),
    pause_reason = CASE
        WHEN known.paused_until >= excluded.paused_until THEN known.pause_reason
        ELSE excluded.pause_reason
    END;

-- name: mark_low
-- Digests are kept apart until the month is over; once a month is enough to know.
UPDATE wakebell.channels SET
    low_at = now(),
    low_until = CAST(:until AS timestamptz),
    low_reason = CAST(:reason AS text)
WHERE name = CAST(:channel AS text) AND (low_until IS NULL OR low_until <= now());

-- name: block
-- Nobody is reached at this address: it is not called again.
INSERT INTO wakebell.recipients AS known (address, name, channel, blocked_at, blocked_reason, judged_block)
VALUES (
    CAST(:address AS text), CAST(:name AS text), CAST(:channel AS text), now(), CAST(:reason AS text),
    CASE WHEN NOT CAST(:alert AS boolean) THEN now() END)
ON CONFLICT (address) DO UPDATE SET
    name = excluded.name,
    channel = excluded.channel,
    blocked_at = coalesce(known.blocked_at, excluded.blocked_at),
    blocked_reason = excluded.blocked_reason,
    judged_block = CASE WHEN known.blocked_at IS NULL THEN excluded.judged_block ELSE known.judged_block END;

-- name: unblock
-- A person says that somebody is there again; what is owed there is told by the next tick.
WITH unblocked AS (
    UPDATE wakebell.recipients SET blocked_at = NULL, blocked_reason = NULL, judged_block = NULL
    WHERE address = CAST(:address AS text) AND blocked_at IS NOT NULL
    RETURNING address
), due AS (
    UPDATE wakebell.jobs SET run_after = now()
    WHERE type = 'compose_messages' AND unique_key = CAST(:name AS text)
      AND status = 'pending' AND run_after > now()
      AND EXISTS (SELECT FROM unblocked)
    RETURNING id
)
SELECT count(*) AS unblocked FROM unblocked;

-- name: move
-- The address is reached elsewhere from now on.
INSERT INTO wakebell.recipients AS known (address, name, channel, moved_to)
VALUES (CAST(:address AS text), CAST(:name AS text), CAST(:channel AS text), CAST(:to AS text))
ON CONFLICT (address) DO UPDATE SET name = excluded.name, channel = excluded.channel, moved_to = excluded.moved_to;

-- name: keep_members
-- How many a message to this group costs.
INSERT INTO wakebell.recipients AS known (address, name, channel, members, members_read_at)
VALUES (CAST(:address AS text), CAST(:name AS text), CAST(:channel AS text), CAST(:members AS integer), now())
ON CONFLICT (address) DO UPDATE SET
    name = excluded.name,
    channel = excluded.channel,
    members = coalesce(excluded.members, known.members),
    members_read_at = excluded.members_read_at;

-- name: turn_of_channel
-- The next free instant for a send of this channel, which is taken with it unless that is too far away; how long it is
-- until then.
WITH taken AS (
    INSERT INTO wakebell.channels AS known (name, next_at)
    VALUES (CAST(:channel AS text), clock_timestamp() + make_interval(secs => :gap_seconds))
    ON CONFLICT (name) DO UPDATE SET
        next_at = greatest(known.next_at, clock_timestamp()) + make_interval(secs => :gap_seconds)
    WHERE known.next_at IS NULL OR known.next_at <= clock_timestamp() + make_interval(secs => :most_seconds)
    RETURNING next_at - make_interval(secs => :gap_seconds) AS at
)
SELECT extract(epoch FROM coalesce(
    (SELECT at FROM taken),
    (SELECT next_at FROM wakebell.channels WHERE name = CAST(:channel AS text))) - clock_timestamp()) AS wait_seconds;

-- name: turn_of_recipient
-- The same for a send to this address.
WITH taken AS (
    INSERT INTO wakebell.recipients AS known (address, name, channel, next_at)
    VALUES (
        CAST(:address AS text), CAST(:name AS text), CAST(:channel AS text),
        clock_timestamp() + make_interval(secs => :gap_seconds))
    ON CONFLICT (address) DO UPDATE SET
        next_at = greatest(known.next_at, clock_timestamp()) + make_interval(secs => :gap_seconds)
    WHERE known.next_at IS NULL OR known.next_at <= clock_timestamp() + make_interval(secs => :most_seconds)
    RETURNING next_at - make_interval(secs => :gap_seconds) AS at
)
SELECT extract(epoch FROM coalesce(
    (SELECT at FROM taken),
    (SELECT next_at FROM wakebell.recipients WHERE address = CAST(:address AS text))) - clock_timestamp()
) AS wait_seconds;
