-- What stands between a message and whom it is for: a month's allowance, a channel that takes nothing for a while, an
-- address where nobody is reached any more.

-- One row for each channel that there was ever something to say of.
CREATE TABLE wakebell.channels (
    name text PRIMARY KEY,
    next_at timestamptz,                -- no send before: the gap after the last one
    quota_tried_at timestamptz,         -- the provider was asked, or is being asked
    quota_read_at timestamptz,          -- it has answered
    quota_limit integer,                -- this month's messages; NULL: as many as one likes, or not known
    quota_used integer,
    low_at timestamptz,                 -- digests are kept apart since then, to make the month's messages last
    low_until timestamptz,              -- the end of that month
    low_reason text,
    parked_at timestamptz,              -- it takes nothing since then
    parked_until timestamptz,           -- and not before this; NULL: there was room again
    parked_reason text,
    freed_at timestamptz,               -- there was room again
    judged_low timestamptz,             -- which `low_at` and which `parked_at` an alert has taken note of
    judged_park timestamptz,
    CONSTRAINT channels_quota_check CHECK (quota_limit >= 0 AND quota_used >= 0),
    CONSTRAINT channels_low_check CHECK ((low_at IS NULL) = (low_until IS NULL)),
    CONSTRAINT channels_parked_check CHECK (parked_until IS NULL OR parked_at IS NOT NULL)
);

CREATE INDEX channels_unjudged_idx ON wakebell.channels (name)
    WHERE judged_low IS DISTINCT FROM low_at OR judged_park IS DISTINCT FROM parked_at;

-- One row for each address that there was ever something to say of.
CREATE TABLE wakebell.recipients (
    address text PRIMARY KEY,           -- fingerprint of the kind and account of its channel and of its `to`
    name text NOT NULL,                 -- of the recipient who had it last
    channel text NOT NULL,
    next_at timestamptz,                -- no send before: the gap after the last one
    blocked_at timestamptz,             -- never called again, until a person says so
    blocked_reason text,
    judged_block timestamptz,           -- which `blocked_at` an alert has taken note of
    moved_to text,                      -- where it is reached now
    members integer,                    -- of a group: what a message costs
    members_read_at timestamptz,
    CONSTRAINT recipients_members_check CHECK (members >= 0)
);

CREATE INDEX recipients_name_idx ON wakebell.recipients (name);
CREATE INDEX recipients_members_idx ON wakebell.recipients (channel) WHERE members IS NOT NULL;
CREATE INDEX recipients_unjudged_idx ON wakebell.recipients (address)
    WHERE blocked_at IS NOT NULL AND judged_block IS DISTINCT FROM blocked_at;

-- Where it was composed for, since a configuration may change before it is sent. NULL: composed before this was kept.
ALTER TABLE wakebell.messages ADD COLUMN address text;

ALTER TABLE wakebell.alerts
    DROP CONSTRAINT alerts_kind_check,
    ADD CONSTRAINT alerts_kind_check CHECK (kind IN (
        'job_failed', 'source_failing', 'message_failed', 'source_blind', 'source_silent', 'source_unstable',
        'recipient_blocked', 'channel_parked', 'quota_low'));
