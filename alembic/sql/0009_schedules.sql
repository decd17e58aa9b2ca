-- One row for each `[schedules.x]` that has been seen. Its next slot is kept here: no process has to live until then.
-- `next_at` is moved in the transaction that queues the jobs, and by whoever names the `revision` that he has seen.
CREATE TABLE wakebell.schedules (
    name text PRIMARY KEY,
    fingerprint text NOT NULL,                      -- of what decides its slots: another one starts from now
    revision bigint NOT NULL DEFAULT 1,
    anchor_at timestamptz NOT NULL,                 -- when it was seen first, or changed: it has slots from then on
    next_at timestamptz,                            -- NULL: there is no further slot
    last_slot timestamptz,                          -- the latest that was fired or passed over
    fired_slot timestamptz,                         -- the latest that a job was queued for
    fired_at timestamptz,                           -- when that was
    missed_count bigint NOT NULL DEFAULT 0,         -- slots that were too late (catch_up = "none"), all in all
    missed_slot timestamptz,                        -- the latest of them
    missed_at timestamptz,                          -- when that was found
    removed_at timestamptz,                         -- when a tick has found that nobody configures it any more
    configured_at timestamptz NOT NULL DEFAULT now(),   -- when the process that began it read its configuration: one
                                                    -- that did so before does not take it back with another line
    objected_at timestamptz                         -- when such a one has left it alone; NULL: no one has since the
                                                    -- last tick of a process with this line
);
