-- name: look
-- When a booking is to be looked at next; whether a message has had its time before it was sent; whether one waits at all;
-- and the reminders that the last tick knew, with the failures of their queries. Probes of partial indexes, and a table of
-- a few rows.
SELECT
    (
        SELECT next_at FROM wakebell.bookings WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1
    ) AS next_booking_at,
    coalesce((
        SELECT expires_at <= now()
        FROM wakebell.messages
        WHERE expires_at IS NOT NULL AND status IN ('queued', 'retrying')
        ORDER BY expires_at
        LIMIT 1
    ), false) AS expired,
    coalesce((
        SELECT true
        FROM wakebell.messages
        WHERE expires_at IS NOT NULL AND status IN ('queued', 'retrying')
        ORDER BY expires_at
        LIMIT 1
    ), false) AS reminder_waiting,
    (
        SELECT CAST(jsonb_object_agg(name, jsonb_build_array(fingerprint, failures)) AS text)
        FROM wakebell.reminder_rules
    ) AS reminder_rules;

-- name: keep_rules
-- These are configured now, and no others. Whatever is to come is looked at again; what was told before stays told.
-- Two ticks at once do the same twice.
WITH given AS (
    SELECT given.name, given.fingerprint
    FROM jsonb_to_recordset(CAST(CAST(:rules AS text) AS jsonb)) AS given (name text, fingerprint text)
), gone AS (
    DELETE FROM wakebell.reminder_rules WHERE name NOT IN (SELECT given.name FROM given)
), kept AS (
    INSERT INTO wakebell.reminder_rules AS known (name, fingerprint)
    SELECT given.name, given.fingerprint FROM given ORDER BY given.name
    ON CONFLICT (name) DO UPDATE SET
        fingerprint = excluded.fingerprint,
        failures = CASE WHEN known.fingerprint = excluded.fingerprint THEN known.failures ELSE 0 END
)
UPDATE wakebell.bookings SET next_at = least(next_at, now())
WHERE starts_at > now()
   OR (all_day AND starts_at > now() - interval '1 day');  -- its reminders count from later than its beginning

-- name: due
-- Bookings that are to be looked at now, locked: two ticks at once share them.
SELECT id, ref, starts_at, all_day, timezone, scheduled_at, now() AS now
FROM wakebell.bookings
WHERE next_at <= now()
ORDER BY next_at, id
LIMIT :most
FOR UPDATE SKIP LOCKED;

-- name: any_due
-- Whether a tick would find a booking to look at.
SELECT EXISTS (SELECT FROM wakebell.bookings WHERE next_at <= now()) AS due;

-- name: move_on
-- When each of them is to be looked at again.
UPDATE wakebell.bookings SET next_at = moved.next_at
FROM jsonb_to_recordset(CAST(CAST(:moved AS text) AS jsonb)) AS moved (id bigint, next_at timestamptz)
WHERE bookings.id = moved.id;

-- name: queue
-- A job for each start whose reminder has not been told; one that waits already tells it too.
WITH queued AS (
    INSERT INTO wakebell.jobs (type, payload, queue, unique_key)
    SELECT
        'send_reminder',
        jsonb_build_object('booking', asked.booking, 'starts_at', asked.starts_at, 'origin', asked.origin),
        'wakebell.remind',
        wakebell.reminder_key(asked.origin, asked.booking, asked.starts_at)
    FROM jsonb_to_recordset(CAST(CAST(:asked AS text) AS jsonb))
      AS asked (origin text, booking text, starts_at timestamptz, reminder text)
    WHERE NOT EXISTS (
        SELECT FROM wakebell.reminders
        WHERE reminders.booking = asked.booking AND reminders.reminder = asked.reminder
          AND reminders.starts_at = asked.starts_at)
    ORDER BY asked.starts_at, asked.booking  -- one order for all, so that two ticks wait and never deadlock
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT count(*) AS queued FROM queued;

-- name: standing
-- A booking that still has this start, and which of its reminders were told.
SELECT b.ref, b.title, b.starts_at, b.all_day, b.timezone, b.recipient, b.channel, b.address, b.language, now() AS now,
    ARRAY(
        SELECT told.reminder
        FROM wakebell.reminders AS told
        WHERE told.booking = b.ref AND told.starts_at = b.starts_at AND told.message_id IS NOT NULL
    ) AS told
FROM wakebell.bookings AS b
WHERE b.ref = :booking AND b.starts_at = :starts_at;

-- name: hold
-- Whether the booking still has this start, and is as it was read: until the transaction ends nobody moves it, changes it
-- or deletes it.
SELECT id
FROM wakebell.bookings
WHERE ref = :booking AND starts_at = :starts_at AND title = :title
  AND recipient IS NOT DISTINCT FROM CAST(:recipient AS text)
  AND channel IS NOT DISTINCT FROM CAST(:channel AS text)
  AND address IS NOT DISTINCT FROM CAST(:address AS text)
  AND all_day = :all_day AND timezone = :timezone AND language IS NOT DISTINCT FROM CAST(:language AS text)
FOR SHARE;

-- name: mark
-- These reminders of a start are told by this message; which of them were not told before.
INSERT INTO wakebell.reminders AS known (booking, reminder, starts_at, origin, message_id)
SELECT :booking, given.name, :starts_at, :origin, CAST(:message AS bigint)
FROM jsonb_array_elements_text(CAST(CAST(:reminders AS text) AS jsonb)) AS given (name)
ORDER BY given.name
ON CONFLICT (booking, reminder, starts_at) DO UPDATE SET message_id = excluded.message_id, created_at = now()
WHERE known.message_id IS NULL
RETURNING reminder;

-- name: add_late
-- A reminder whose time has passed: nobody is sent it, and its failure is judged like any other message's.
INSERT INTO wakebell.messages (recipient, channel, address, kind, status, body, text, last_error, expires_at, finished_at)
VALUES (:recipient, :channel, :fingerprint, 'reminder', 'failed', :text, :text, :reason, :expires_at, now())
RETURNING id;

-- name: expire
-- Messages whose time has passed before they were sent, at most so many. Those on their way are let be.
UPDATE wakebell.messages SET
    status = CASE WHEN unanswered THEN 'uncertain' ELSE 'failed' END,
    last_error = concat(CAST(:reason AS text), '; before that: ' || last_error),
    finished_at = now()
WHERE id = ANY (ARRAY(
    SELECT id FROM wakebell.messages
    WHERE expires_at <= now() AND status IN ('queued', 'retrying')
    ORDER BY expires_at
    LIMIT :most
    FOR UPDATE SKIP LOCKED))
RETURNING id;

-- name: waiting
-- Starts in one of the user's own tables whose messages have not left yet: a page of them, after that one.
SELECT DISTINCT reminders.origin, reminders.booking, reminders.starts_at
FROM wakebell.messages
JOIN wakebell.reminders ON reminders.message_id = messages.id
WHERE messages.expires_at IS NOT NULL AND messages.status IN ('queued', 'retrying')
  AND reminders.origin = :origin AND reminders.origin <> ''
  AND (reminders.starts_at, reminders.booking)
      > (coalesce(CAST(:after_start AS timestamptz), '-infinity'), coalesce(CAST(:after_booking AS text), ''))
ORDER BY reminders.starts_at, reminders.booking
LIMIT :most;

-- name: withdraw
-- The user's table has no such starts any more: what waits is not sent, and nobody is alarmed. What surely has not arrived
-- has no mark: a start that comes back is told.
WITH open AS (
    SELECT messages.id
    FROM jsonb_to_recordset(CAST(CAST(:gone AS text) AS jsonb)) AS gone (booking text, starts_at timestamptz)
    JOIN wakebell.reminders
      ON reminders.booking = gone.booking AND reminders.starts_at = gone.starts_at AND reminders.origin = :origin
    JOIN wakebell.messages ON messages.id = reminders.message_id
    WHERE messages.status IN ('queued', 'retrying')
    ORDER BY messages.id
    FOR UPDATE OF messages SKIP LOCKED
), over AS (
    UPDATE wakebell.messages AS m SET
        status = CASE WHEN m.unanswered THEN 'uncertain' ELSE 'failed' END,
        last_error = :reason,
        finished_at = now(),
        judged_finish = now()
    FROM open
    WHERE m.id = open.id
    RETURNING m.id, m.status
)
DELETE FROM wakebell.reminders USING over
WHERE reminders.message_id = over.id AND over.status = 'failed';

-- name: fail_query
-- A query failed.
UPDATE wakebell.reminder_rules SET failures = failures + 1, failed_at = now(), last_error = :reason
WHERE name = ANY (CAST(CAST(:names AS text) AS text[]));

-- name: heal_query
-- A query works again.
UPDATE wakebell.reminder_rules SET failures = 0
WHERE name = ANY (CAST(CAST(:names AS text) AS text[])) AND failures > 0;

-- name: prune
-- What was told of starts long ago, oldest first.
DELETE FROM wakebell.reminders WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM wakebell.reminders
    WHERE starts_at < now() - make_interval(secs => :keep_seconds)
    ORDER BY starts_at
    LIMIT :most
    FOR UPDATE SKIP LOCKED
))
RETURNING booking;
