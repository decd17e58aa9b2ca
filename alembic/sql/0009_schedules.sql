-- One row for each `[schedules.x]` that has been seen: when its next slot is.
CREATE TABLE wakebell.schedules (
    name text PRIMARY KEY,
    fingerprint text NOT NULL,                      -- of what decides its slots: another one starts from now
    next_at timestamptz,                            -- NULL: there is no further slot
    last_slot timestamptz,                          -- the latest that was fired or passed over
    fired_at timestamptz                            -- when a job was last queued for it
);
