-- Open incidents about ourselves, and which failures they have taken note of.

CREATE TABLE wakebell.alerts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL,                  -- what it is about: one incident is open for it at most
    kind text NOT NULL,
    subject text NOT NULL,              -- the name of the job type, source or recipient
    reason text,                        -- of the latest failure
    failures integer NOT NULL DEFAULT 1,
    opened_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now(),      -- the latest failure
    resolved_at timestamptz,
    CONSTRAINT alerts_kind_check CHECK (kind IN ('job_failed', 'source_failing', 'message_failed'))
);

CREATE UNIQUE INDEX alerts_open_key ON wakebell.alerts (key) WHERE resolved_at IS NULL;
CREATE INDEX alerts_old_idx ON wakebell.alerts (resolved_at) WHERE resolved_at IS NOT NULL;

-- A failure is judged once: the mark is set in the transaction that opens its alert. What had failed before there were
-- alerts is old news.
ALTER TABLE wakebell.jobs ADD COLUMN judged boolean NOT NULL DEFAULT true;
ALTER TABLE wakebell.jobs ALTER COLUMN judged SET DEFAULT false;
CREATE INDEX jobs_unjudged_idx ON wakebell.jobs (id) WHERE status = 'failed' AND NOT judged;

ALTER TABLE wakebell.messages ADD COLUMN judged boolean NOT NULL DEFAULT true;
ALTER TABLE wakebell.messages ALTER COLUMN judged SET DEFAULT false;
CREATE INDEX messages_unjudged_idx ON wakebell.messages (id) WHERE status IN ('failed', 'uncertain') AND NOT judged;

-- Which sources to look at: nearly always none.
CREATE INDEX sources_failing_idx ON wakebell.sources (name) WHERE failures > 0;
