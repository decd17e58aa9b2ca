-- Appointments, and what was sent before each of them.
CREATE TABLE wakebell.bookings (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ref text NOT NULL UNIQUE,                       -- whoever booked names it
    title text NOT NULL,
    starts_at timestamptz NOT NULL,                 -- of an all-day booking: the beginning of its day in `timezone`
    all_day boolean NOT NULL DEFAULT false,
    timezone text NOT NULL,
    recipient text,                                 -- a name of the configuration; or, in its place,
    channel text,                                   -- one of its channels,
    address text,                                   -- and whom to reach there
    language text,                                  -- NULL: the recipient's
    scheduled_at timestamptz NOT NULL DEFAULT now(),    -- when it was given this start
    next_at timestamptz DEFAULT now(),              -- when a tick looks at it next: a reminder falls due, or it is new;
                                                    -- NULL: nothing more is to be sent
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT bookings_whom_check CHECK ((recipient IS NULL) = (channel IS NOT NULL AND address IS NOT NULL))
);

-- What a tick looks for, and when it is to be woken for the next one.
CREATE INDEX bookings_due_idx ON wakebell.bookings (next_at) WHERE next_at IS NOT NULL;
-- For pruning, and for a changed configuration, which looks at all that is to come.
CREATE INDEX bookings_starts_idx ON wakebell.bookings (starts_at);

-- One row for each reminder of a booking's start that was told, or counts as told, or was given up.
CREATE TABLE wakebell.reminders (
    booking text NOT NULL,                          -- its `ref`
    reminder text NOT NULL,                         -- the name in the configuration
    starts_at timestamptz NOT NULL,                 -- a moved booking earns a new one
    origin text NOT NULL DEFAULT '',                -- '': `bookings`; else the first reminder that has this `query`
    message_id bigint,                              -- that tells it; NULL: it could not be told to anybody
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (booking, reminder, starts_at)
);

CREATE INDEX reminders_message_idx ON wakebell.reminders (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX reminders_starts_idx ON wakebell.reminders (starts_at);

-- What is configured, as the last tick saw it; and how its `query` does.
CREATE TABLE wakebell.reminder_rules (
    name text PRIMARY KEY,
    fingerprint text NOT NULL,                      -- of what decides when: another one has all bookings looked at again
    failures integer NOT NULL DEFAULT 0,            -- of its `query`, in a row
    failed_at timestamptz,                          -- the last of them
    last_error text
);

-- After this instant it is of no use: a try that has not begun by then is none.
ALTER TABLE wakebell.messages ADD COLUMN expires_at timestamptz;
-- Why it is not wanted any more, when its booking changed while it was being sent.
ALTER TABLE wakebell.messages ADD COLUMN called_off text;
CREATE INDEX messages_expiring_idx ON wakebell.messages (expires_at)
    WHERE expires_at IS NOT NULL AND status IN ('queued', 'retrying');


-- The unique key of the job that tells what is due of a booking's start: there is one at a time.
CREATE FUNCTION wakebell.reminder_key(origin text, booking text, starts_at timestamptz)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT md5(concat_ws(chr(31), origin, extract(epoch FROM starts_at), booking))
$$;
