-- In each of them `SELECT * FROM wakebell.bookings` stands where the user's query is put.

-- name: due
-- Bookings of which a reminder has fallen due, where the one that fell due last has no mark and no job is there to tell of
-- that start; when the next one will; how many rows have no name that could be kept; and the type of `starts_at`. The bounds
-- are pushed down into the user's query. All-day bookings are found an hour early and an hour late, whatever the clocks do
-- that day: the caller knows their zones. Those that are in these hours come last, and hide nobody. One row without a
-- booking where there is none.
SELECT clock.now, clock.kind, upcoming.next_at, unusable.unnamed, unusable.overlong, due.ref, due.starts_at, due.all_day,
    due.timezone
FROM (
    SELECT now() AS now, CAST(pg_typeof((
        SELECT booking.starts_at FROM (SELECT * FROM wakebell.bookings) AS booking LIMIT 0)) AS text) AS kind
) AS clock
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
CROSS JOIN (
    SELECT count(*) FILTER (WHERE booking.ref IS NULL) AS unnamed,
        count(*) FILTER (WHERE booking.ref IS NOT NULL) AS overlong
    FROM (SELECT * FROM wakebell.bookings) AS booking
    WHERE booking.starts_at > now()
      AND booking.starts_at <= now() + make_interval(secs => (
          SELECT max(rule.seconds)
          FROM jsonb_to_recordset(CAST(CAST(:rules AS text) AS jsonb)) AS rule (seconds double precision)))
      AND (booking.ref IS NULL OR length(CAST(booking.ref AS text)) > CAST(:longest AS integer))
) AS unusable
LEFT JOIN (
    SELECT untold.ref, untold.starts_at, untold.all_day, untold.timezone
    FROM (
        SELECT CAST(booking.ref AS text) AS ref, booking.starts_at, more.all_day, more.timezone,
            more.all_day AND NOT (latest.at <= now() AND latest.ends_at > now()) AS doubtful
        FROM (SELECT * FROM wakebell.bookings) AS booking
        CROSS JOIN LATERAL (
            SELECT to_jsonb(booking) ->> 'all_day' = 'true' AS all_day, to_jsonb(booking) ->> 'timezone' AS timezone
        ) AS more
        CROSS JOIN LATERAL (
            SELECT rule.name, ends.at AS ends_at, ends.at - make_interval(secs => rule.seconds) AS at
            FROM jsonb_to_recordset(CAST(CAST(:rules AS text) AS jsonb))
              AS rule (name text, seconds double precision, all_day_seconds double precision)
            CROSS JOIN LATERAL (
                SELECT booking.starts_at
                    + CASE WHEN more.all_day THEN make_interval(secs => rule.all_day_seconds) ELSE interval '0' END AS at
            ) AS ends
            WHERE ends.at - make_interval(secs => rule.seconds)
                - CASE WHEN more.all_day THEN interval '1 hour' ELSE interval '0' END <= now()
            ORDER BY ends.at - make_interval(secs => rule.seconds) DESC, ends.at DESC
            LIMIT 1
        ) AS latest
        WHERE latest.ends_at > now() - CASE WHEN more.all_day THEN interval '1 hour' ELSE interval '0' END
          AND booking.ref IS NOT NULL AND length(CAST(booking.ref AS text)) <= CAST(:longest AS integer)
          AND booking.starts_at > now() - interval '1 day'
          AND booking.starts_at <= now() + make_interval(secs => (
              SELECT max(rule.seconds)
              FROM jsonb_to_recordset(CAST(CAST(:rules AS text) AS jsonb)) AS rule (seconds double precision)))
          AND NOT EXISTS (
              SELECT FROM wakebell.reminders AS told
              WHERE told.booking = CAST(booking.ref AS text) AND told.reminder = latest.name
                AND told.starts_at = booking.starts_at)
        OFFSET 0  -- what follows is asked of these alone
    ) AS untold
    WHERE (
        SELECT jobs.id
        FROM wakebell.jobs
        WHERE jobs.type = 'send_reminder' AND jobs.status IN ('pending', 'running')
          AND jobs.unique_key = wakebell.reminder_key(CAST(:origin AS text), untold.ref, untold.starts_at)
        LIMIT 1
    ) IS NULL
    ORDER BY coalesce(untold.doubtful, false), untold.starts_at
    LIMIT CAST(:most AS integer)
) AS due ON true;

-- name: standing
-- Which of these starts are still there; all lie between `earliest` and `latest`, which is pushed down into the user's query.
SELECT given.ref, given.starts_at
FROM jsonb_to_recordset(CAST(CAST(:given AS text) AS jsonb)) AS given (ref text, starts_at timestamptz)
WHERE EXISTS (
    SELECT
    FROM (SELECT * FROM wakebell.bookings) AS booking
    WHERE booking.starts_at >= CAST(:earliest AS timestamptz) AND booking.starts_at <= CAST(:latest AS timestamptz)
      AND booking.starts_at = given.starts_at AND CAST(booking.ref AS text) = given.ref);

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
