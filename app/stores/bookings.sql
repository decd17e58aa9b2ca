-- name: put
-- The booking as it is given now. `created`: it was not there. Two at once under one ref: the second waits, and changes
-- what the first has written.
INSERT INTO wakebell.bookings AS known
    (ref, title, starts_at, all_day, timezone, recipient, channel, address, language)
VALUES (:ref, :title, :starts_at, :all_day, :timezone, CAST(:recipient AS text), CAST(:channel AS text),
        CAST(:address AS text), CAST(:language AS text))
ON CONFLICT (ref) DO UPDATE SET
    title = excluded.title,
    starts_at = excluded.starts_at,
    all_day = excluded.all_day,
    timezone = excluded.timezone,
    recipient = excluded.recipient,
    channel = excluded.channel,
    address = excluded.address,
    language = excluded.language,
    scheduled_at = CASE WHEN known.starts_at = excluded.starts_at THEN known.scheduled_at ELSE now() END,
    next_at = now(),
    updated_at = now()
WHERE (known.title, known.starts_at, known.all_day, known.timezone)
        IS DISTINCT FROM (excluded.title, excluded.starts_at, excluded.all_day, excluded.timezone)
   OR (known.recipient, known.channel, known.address, known.language)
        IS DISTINCT FROM (excluded.recipient, excluded.channel, excluded.address, excluded.language)
RETURNING id, xmax = 0 AS created;

-- name: call_off
-- What is not sent yet of a booking's reminders is not sent any more, and nobody is alarmed. One that is on its way may
-- arrive, but is not tried again: it keeps its mark until that is known (`let_go`). What was called off is no reminder
-- that was told.
WITH open AS (
    SELECT m.id
    FROM wakebell.messages AS m
    WHERE m.id IN (SELECT message_id FROM wakebell.reminders WHERE booking = :ref AND origin = '')
      AND m.status IN ('queued', 'sending', 'retrying')
    ORDER BY m.id
    FOR UPDATE
), over AS (
    UPDATE wakebell.messages AS m SET
        status = CASE
            WHEN m.status = 'sending' THEN m.status
            WHEN m.unanswered THEN 'uncertain'
            ELSE 'failed'
        END,
        last_error = :reason,
        called_off = CASE WHEN m.status = 'sending' THEN CAST(:reason AS text) END,
        expires_at = now(),
        finished_at = CASE WHEN m.status <> 'sending' THEN now() END,
        judged_finish = CASE WHEN m.status <> 'sending' THEN now() END
    FROM open
    WHERE m.id = open.id
    RETURNING m.id, m.status
)
DELETE FROM wakebell.reminders USING over
WHERE reminders.message_id = over.id AND over.status = 'failed';

-- name: take_up
-- A booking that comes back to an earlier start earns that start's reminders again, if it has told of another one since.
DELETE FROM wakebell.reminders AS earlier
WHERE earlier.booking = :ref AND earlier.origin = '' AND earlier.starts_at = :starts_at
  AND EXISTS (
      SELECT FROM wakebell.reminders AS later
      WHERE later.booking = earlier.booking AND later.origin = '' AND later.starts_at <> earlier.starts_at
        AND later.created_at > earlier.created_at);

-- name: get
-- One booking, with what was told of its start.
SELECT b.id, b.ref, b.title, b.starts_at, b.all_day, b.timezone, b.recipient, b.channel, b.address, b.language,
    b.created_at, b.updated_at,
    CAST((
        SELECT jsonb_object_agg(told.reminder, told.message_id)
        FROM wakebell.reminders AS told
        WHERE told.booking = b.ref AND told.starts_at = b.starts_at AND told.origin = ''
    ) AS text) AS reminders
FROM wakebell.bookings AS b
WHERE b.ref = :ref;

-- name: list_bookings
-- One page of bookings below an id, the newest first.
SELECT b.id, b.ref, b.title, b.starts_at, b.all_day, b.timezone, b.recipient, b.channel, b.address, b.language,
    b.created_at, b.updated_at,
    CAST((
        SELECT jsonb_object_agg(told.reminder, told.message_id)
        FROM wakebell.reminders AS told
        WHERE told.booking = b.ref AND told.starts_at = b.starts_at AND told.origin = ''
    ) AS text) AS reminders
FROM wakebell.bookings AS b
WHERE b.id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY b.id DESC
LIMIT CAST(:most AS integer) + 1;

-- name: delete
-- Whether it was there.
DELETE FROM wakebell.bookings WHERE ref = :ref RETURNING id;

-- name: prune
-- Bookings that began long ago, oldest first.
DELETE FROM wakebell.bookings WHERE id = ANY (ARRAY(
    SELECT id FROM wakebell.bookings
    WHERE starts_at < now() - make_interval(secs => :keep_seconds)
    ORDER BY starts_at
    LIMIT :most
    FOR UPDATE SKIP LOCKED
))
RETURNING id;
