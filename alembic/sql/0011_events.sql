-- What other services have told us, kept once by the name they gave it.
CREATE TABLE wakebell.events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    door text NOT NULL,                             -- `hooks.<name>`, `chats.<name>`
    event_id text NOT NULL,                         -- the provider's
    received_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT events_door_event_id_key UNIQUE (door, event_id)
);

CREATE INDEX events_old_idx ON wakebell.events (received_at);
