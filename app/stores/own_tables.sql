-- In each of them `SELECT * FROM wakebell.bookings` stands where the user's query is put.

-- name: due
-- Bookings of which a reminder has fallen due, and the one that fell due last has no mark; and when the next one will. The
-- bounds are pushed down into the user's query. All-day bookings are found an hour early, whatever the clocks do that day:
-- the caller knows their zones. One row without a booking where there is none.
SELECT clock.now, upcoming.next_at, due.ref, due.starts_at, due.all_day, due.timezone
FROM (SELECT now() AS now) AS clock
CROSS JOIN (
    SELECT wakebell.readable(min(following.starts_at - make_interval(secs => rule.seconds))) AS next_at
    FROM jsonb_to_recordset(CAST(CAST(:rules AS text) AS jsonb)) AS rule (name text, seconds double precision)
    CROSS JOIN LATERAL (
        SELECT booking.starts_at
        FROM (SELECT * FROM wakebell.bookings) AS booking
        WHERE booking.starts_at > now() + make_interval(secs => rule.seconds)
        ORDER BY booking.starts_at
        LIMIT 1
    ) AS following
) AS upcoming
LEFT JOIN (
    SELECT CAST(booking.ref AS text) AS ref, booking.starts_at, more.all_day, more.timezone
    FROM (SELECT * FROM wakebell.bookings) AS booking
    CROSS JOIN LATERAL (
        SELECT to_jsonb(booking) ->> 'all_day' = 'true' AS all_day, to_jsonb(booking) ->> 'timezone' AS timezone
    ) AS more
    CROSS JOIN LATERAL (
        SELECT rule.name
        FROM jsonb_to_recordset(CAST(CAST(:rules AS text) AS jsonb))
          AS rule (name text, seconds double precision, all_day_seconds double precision)
        WHERE booking.starts_at
            + CASE WHEN more.all_day THEN make_interval(secs => rule.all_day_seconds - 3600) ELSE interval '0' END
            - make_interval(secs => rule.seconds) <= now()
        ORDER BY rule.seconds
        LIMIT 1
    ) AS latest
    WHERE booking.starts_at > now() - CASE WHEN more.all_day THEN interval '1 day' ELSE interval '0' END
      AND booking.starts_at > now() - interval '1 day'
      AND booking.starts_at <= now() + make_interval(secs => (
          SELECT max(rule.seconds)
          FROM jsonb_to_recordset(CAST(CAST(:rules AS text) AS jsonb)) AS rule (seconds double precision)))
      AND NOT EXISTS (
          SELECT FROM wakebell.reminders AS told
          WHERE told.booking = CAST(booking.ref AS text) AND told.reminder = latest.name
            AND told.starts_at = booking.starts_at)
    ORDER BY booking.starts_at
    LIMIT CAST(:most AS integer)
) AS due ON true;

-- name: find
-- One booking that has this start, and which of its reminders were told.
SELECT CAST(booking.ref AS text) AS ref, more.fields ->> 'title' AS title, booking.starts_at,
    more.fields ->> 'all_day' = 'true' AS all_day,
    more.fields ->> 'timezone' AS timezone, more.fields ->> 'to' AS recipient, more.fields ->> 'channel' AS channel,
    more.fields ->> 'address' AS address, more.fields ->> 'language' AS language, now() AS now,
    ARRAY(
        SELECT told.reminder
        FROM wakebell.reminders AS told
        WHERE told.booking = CAST(booking.ref AS text) AND told.starts_at = booking.starts_at
          AND told.message_id IS NOT NULL
    ) AS told
FROM (SELECT * FROM wakebell.bookings) AS booking
CROSS JOIN LATERAL (SELECT to_jsonb(booking) AS fields) AS more
WHERE CAST(booking.ref AS text) = CAST(:ref AS text) AND booking.starts_at = CAST(:starts AS timestamptz)
LIMIT 1;

-- name: columns
-- No row of it; what is asked for is what its columns are.
SELECT * FROM (SELECT * FROM wakebell.bookings) AS booking LIMIT 0;
