-- What is watched, what is owed for it, what is told, and the history of ticks.

CREATE TABLE wakebell.sources (
    name text PRIMARY KEY,
    fingerprint text NOT NULL,          -- of kind and url: another one primes again
    every_seconds double precision NOT NULL CHECK (every_seconds > 0),
    grid_from timestamptz NOT NULL DEFAULT now(),   -- slots are this plus whole multiples of every_seconds
    due_at timestamptz NOT NULL,
    etag text,
    last_modified text,
    primed_at timestamptz,              -- NULL: the next complete round is stored silently
    last_round_at timestamptz,          -- the last complete round; a 304 or a failure does not move it
    last_success_at timestamptz,        -- the last complete round or 304
    failures integer NOT NULL DEFAULT 0,            -- in a row
    last_failure_at timestamptz,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE wakebell.items (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source text NOT NULL,
    key text NOT NULL,
    title text NOT NULL,
    link text,
    published_at timestamptz,
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz NOT NULL DEFAULT now(),     -- the last complete round that listed it, to within an hour
    CONSTRAINT items_source_key_key UNIQUE (source, key)
);

-- For forgetting: the items of a source by their last sighting.
CREATE INDEX items_seen_idx ON wakebell.items (source, seen_at);

CREATE TABLE wakebell.messages (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recipient text NOT NULL,
    channel text NOT NULL,
    kind text NOT NULL DEFAULT 'items',             -- items, note
    status text NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'sending', 'retrying', 'sent', 'failed', 'uncertain')),
    retry_key uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE,
    body text NOT NULL,
    text text NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    unanswered boolean NOT NULL DEFAULT false,      -- some try ended without an answer: it may have arrived
    last_error text,
    provider_id text,
    repeated boolean NOT NULL DEFAULT false,        -- the provider said that it had it already
    created_at timestamptz NOT NULL DEFAULT now(),
    first_tried_at timestamptz,
    sent_at timestamptz,
    finished_at timestamptz
);

CREATE INDEX messages_open_idx ON wakebell.messages (id) WHERE status IN ('queued', 'sending', 'retrying');
CREATE INDEX messages_recipient_idx ON wakebell.messages (recipient, id);
CREATE INDEX messages_old_idx ON wakebell.messages (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE wakebell.owed (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item_id bigint NOT NULL REFERENCES wakebell.items (id) ON DELETE CASCADE,
    recipient text NOT NULL,
    subscriptions jsonb NOT NULL,
    message_id bigint REFERENCES wakebell.messages (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT owed_item_id_recipient_key UNIQUE (item_id, recipient)
);

-- What composing takes: the rows that no message holds yet.
CREATE INDEX owed_open_idx ON wakebell.owed (recipient, id) WHERE message_id IS NULL;
CREATE INDEX owed_message_idx ON wakebell.owed (message_id) WHERE message_id IS NOT NULL;

CREATE TABLE wakebell.ticks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    trigger text NOT NULL,
    status text CHECK (status IN ('ok', 'partial', 'failed')),      -- NULL: running, or killed
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    summary jsonb
);

CREATE INDEX ticks_started_idx ON wakebell.ticks (started_at);
