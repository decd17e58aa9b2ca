-- Alerts can be acknowledged and muted, and are told again while they stay open.
ALTER TABLE wakebell.alerts
    ADD COLUMN last_job bigint,         -- id of the job that failed last, of a job type or a queue
    ADD COLUMN told_at timestamptz,     -- when it was told last; NULL: not yet, since it is muted
    ADD COLUMN acknowledged_at timestamptz,             -- somebody has taken it on: it is not told again
    DROP CONSTRAINT alerts_kind_check,
    ADD CONSTRAINT alerts_kind_check CHECK (kind IN (
        'job_failed', 'source_failing', 'message_failed', 'source_blind', 'source_silent', 'source_unstable',
        'recipient_blocked', 'channel_parked', 'quota_low',
        'job_unknown', 'jobs_overdue', 'tick_overdue', 'tick_failed', 'config_broken',
        'schedule_missed', 'reminder_failing'));

-- Until now each was told as it opened.
UPDATE wakebell.alerts SET told_at = opened_at;

-- Which miss of a schedule an alert has taken note of.
ALTER TABLE wakebell.schedules ADD COLUMN judged_miss timestamptz;
CREATE INDEX schedules_unjudged_idx ON wakebell.schedules (name)
    WHERE missed_at IS NOT NULL AND judged_miss IS DISTINCT FROM missed_at;

-- What is recorded and not told for a while, whether it is open yet or not.
CREATE TABLE wakebell.mutes (
    pattern text PRIMARY KEY,           -- of alerts' keys; `*` stands for anything
    until timestamptz NOT NULL,
    muted_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT mutes_pattern_check CHECK (length(pattern) BETWEEN 1 AND 500)
);

-- Until when an alert with this key is muted; NULL: it is not.
CREATE FUNCTION wakebell.muted_until(alert_key text)
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT max(m.until)
    FROM wakebell.mutes AS m
    WHERE m.until > now()
      AND alert_key LIKE replace(replace(replace(replace(m.pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')
$$;
