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
    last_at timestamptz NOT NULL DEFAULT now(),
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
