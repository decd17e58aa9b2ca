-- What people have used up of models' limits on a day, in whatever conversations they have written.
CREATE TABLE wakebell.spendings (
    kind text NOT NULL,                             -- of the chat: 'line', 'telegram', ...
    person text NOT NULL,                           -- by the provider
    spent_on date NOT NULL,                         -- the day, in UTC, that the next two columns are about
    tries integer NOT NULL DEFAULT 0,               -- to have a reply made, whatever has come of them
    tokens bigint NOT NULL DEFAULT 0,
    CONSTRAINT spendings_pkey PRIMARY KEY (kind, person)
);

CREATE INDEX spendings_old_idx ON wakebell.spendings (spent_on);

-- A message that is delivered again may have a new reply token, which lives from then on. NULL: it came with the message.
ALTER TABLE wakebell.said ADD COLUMN token_at timestamptz;

-- What waits for its reply, or was given up.
CREATE INDEX said_unanswered_idx ON wakebell.said (received_at) WHERE answered_at IS NULL;
