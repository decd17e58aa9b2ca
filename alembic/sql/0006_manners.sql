-- What is known of the hosts that are read, and what each source's server has asked for.

-- One row for each host that was ever read. Who may read it now is the head of its serial key, `wakebell.host:<host>`.
CREATE TABLE wakebell.hosts (
    host text PRIMARY KEY,
    next_at timestamptz NOT NULL,       -- no request before: the gap after the last one
    wait_until timestamptz,             -- nor before this, because the host has said so
    refusals integer NOT NULL DEFAULT 0,            -- answers in a row that said so
    reason text,                        -- of the last of them
    CONSTRAINT hosts_refusals_check CHECK (refusals >= 0)
);

CREATE INDEX hosts_old_idx ON wakebell.hosts (next_at);

ALTER TABLE wakebell.sources
    ADD COLUMN host text,               -- whose turn a fetch takes; NULL: not planned since there are turns
    ADD COLUMN retry_at timestamptz,    -- planned then, before its slot or after it
    ADD COLUMN fresh_until timestamptz, -- not planned before: its server says that nothing changes until then
    ADD COLUMN ttl_seconds double precision,        -- what the last document itself says of that
    ADD COLUMN refusals integer NOT NULL DEFAULT 0, -- rounds in a row that the host has refused (429, 503)
    ADD COLUMN gone_at timestamptz,     -- 410: over for good; not planned again until the address changes
    ADD COLUMN distrusted_at timestamptz,           -- its server has said "unchanged" of what had changed
    ADD COLUMN moved_to text,           -- where it is permanently redirected to
    ADD COLUMN moved_host text,
    ADD COLUMN moved_since timestamptz, -- first seen, and in each complete round since
    ADD COLUMN moved_rounds integer NOT NULL DEFAULT 0,
    ADD COLUMN moved_at timestamptz;    -- believed since: requests begin there
