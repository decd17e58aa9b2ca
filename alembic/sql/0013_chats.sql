-- One row for each thread of one person, or one group, with one page or bot.
CREATE TABLE wakebell.conversations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    chat text NOT NULL,                             -- the name in `[chats.*]`
    key text NOT NULL,                              -- the provider's: page or bot, and person or group
    address text,                                   -- what a message there needs
    paused_until timestamptz,                       -- a person has taken over
    spent_on date,                                  -- the day, in UTC, that the next two columns are about
    tokens bigint NOT NULL DEFAULT 0,               -- of a model
    replies integer NOT NULL DEFAULT 0,             -- made by a model
    last_at timestamptz NOT NULL DEFAULT now(),     -- the last thing said, or the last look at what is kept longer
    CONSTRAINT conversations_chat_key_key UNIQUE (chat, key)
);

CREATE INDEX conversations_old_idx ON wakebell.conversations (last_at);

-- What was said last, by either side: as much of it as is remembered.
CREATE TABLE wakebell.turns (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation_id bigint NOT NULL REFERENCES wakebell.conversations (id) ON DELETE CASCADE,
    mark text NOT NULL,                             -- of the event it belongs to, and the side: remembered once
    side text NOT NULL CHECK (side IN ('person', 'service', 'staff')),
    text text NOT NULL,
    said_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT turns_conversation_id_mark_key UNIQUE (conversation_id, mark)
);

CREATE INDEX turns_conversation_idx ON wakebell.turns (conversation_id, id);

-- What a provider has delivered, kept once by the name it gave it, with the reply that is being made to it.
CREATE TABLE wakebell.said (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation_id bigint NOT NULL REFERENCES wakebell.conversations (id) ON DELETE CASCADE,
    chat text NOT NULL,
    event_id text NOT NULL,
    kind text NOT NULL,
    address text,
    person text,
    text text NOT NULL DEFAULT '',
    reply_token text,
    said_at timestamptz,                            -- by the provider's clock
    received_at timestamptz NOT NULL DEFAULT now(),
    reply jsonb,                                    -- its texts, frozen before the first of them leaves
    retry_key uuid NOT NULL DEFAULT gen_random_uuid(),
    replying_at timestamptz,                        -- when the first try began: what was not heard of since may have arrived
    sent integer NOT NULL DEFAULT 0,                -- texts of it that are with the provider
    answered_at timestamptz,
    outcome text,                                   -- 'replied', 'paused', 'nothing to say', ...
    CONSTRAINT said_chat_event_id_key UNIQUE (chat, event_id)
);

CREATE INDEX said_old_idx ON wakebell.said (received_at) WHERE answered_at IS NOT NULL;
CREATE INDEX said_conversation_idx ON wakebell.said (conversation_id, id);

-- News is held back from this conversation until then; and since when nobody is there, who has blocked the bot.
ALTER TABLE wakebell.conversations
    ADD COLUMN muted_until timestamptz,
    ADD COLUMN left_at timestamptz;

-- Who has given a command in a chat, or has tried to guess what invites to it.
CREATE TABLE wakebell.watchers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    chat text NOT NULL,
    person text NOT NULL,                           -- by the provider
    invited_at timestamptz,
    guessed_on date,                                -- the day, in UTC, that the next column is about
    guesses integer NOT NULL DEFAULT 0,
    guessed_in bigint,                              -- the last message that was one: a repeat of it is none
    CONSTRAINT watchers_chat_person_key UNIQUE (chat, person)
);

-- What they watch for, and where they are told.
CREATE TABLE wakebell.watches (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    watcher_id bigint NOT NULL REFERENCES wakebell.watchers (id) ON DELETE CASCADE,
    conversation_id bigint NOT NULL REFERENCES wakebell.conversations (id) ON DELETE CASCADE,
    phrases text[] NOT NULL CHECK (cardinality(phrases) > 0),
    mark text NOT NULL,                             -- the phrases as they are compared, in order
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT watches_watcher_id_conversation_id_mark_key UNIQUE (watcher_id, conversation_id, mark)
);

CREATE INDEX watches_conversation_idx ON wakebell.watches (conversation_id);

-- The conversation that a recipient stands for; NULL: the name is one of the configuration's.
CREATE FUNCTION wakebell.conversation_of(recipient text)
RETURNS bigint
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CAST(substring(recipient FROM '^chats/[a-z0-9_-]+/([0-9]{1,18})$') AS bigint)
$$;
