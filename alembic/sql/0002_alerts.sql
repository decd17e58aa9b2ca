-- Open incidents about ourselves, and which failures they have taken note of.

CREATE TABLE wakebell.alerts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL,                  -- what it is about: one incident is open for it at most
    kind text NOT NULL,
    subject text NOT NULL,              -- the name of the job type, source or recipient
    reason text,                        -- of the latest failure
    failures integer NOT NULL DEFAULT 1,
    opened_at timestamptz NOT NULL DEFAULT now(),
    failed_at timestamptz NOT NULL,                     -- the latest failure: what went well after it, heals
    judged_at timestamptz NOT NULL DEFAULT now(),       -- when that failure was taken note of
    resolved_at timestamptz,
    CONSTRAINT alerts_kind_check CHECK (kind IN ('job_failed', 'source_failing', 'message_failed'))
);

CREATE UNIQUE INDEX alerts_open_key ON wakebell.alerts (key) WHERE resolved_at IS NULL;
CREATE INDEX alerts_old_idx ON wakebell.alerts (resolved_at) WHERE resolved_at IS NOT NULL;

-- A failure is judged once: the mark is set in the transaction that opens its alert. The mark is the time at which the
-- row failed, so that one which is run again and fails again is judged again, whoever put it back. What had failed
-- before there were alerts is old news.
ALTER TABLE wakebell.jobs ADD COLUMN judged_finish timestamptz;
UPDATE wakebell.jobs SET judged_finish = finished_at WHERE status = 'failed';
CREATE INDEX jobs_unjudged_idx ON wakebell.jobs (id)
    WHERE status = 'failed' AND judged_finish IS DISTINCT FROM finished_at;

ALTER TABLE wakebell.messages ADD COLUMN judged_finish timestamptz;
UPDATE wakebell.messages SET judged_finish = finished_at WHERE status IN ('failed', 'uncertain');
CREATE INDEX messages_unjudged_idx ON wakebell.messages (id)
    WHERE status IN ('failed', 'uncertain') AND judged_finish IS DISTINCT FROM finished_at;

-- What heals: the next one of the type that goes well, or that none is left of those that failed; the next message
-- that reaches the recipient.
CREATE INDEX jobs_done_idx ON wakebell.jobs (type, finished_at) WHERE status = 'done';
CREATE INDEX jobs_judged_idx ON wakebell.jobs (type)
    WHERE judged_finish IS NOT NULL AND status IN ('pending', 'running', 'failed');
CREATE INDEX messages_sent_idx ON wakebell.messages (recipient, sent_at) WHERE sent_at IS NOT NULL;

-- Which sources to look at: nearly always none.
CREATE INDEX sources_failing_idx ON wakebell.sources (name) WHERE failures > 0;
