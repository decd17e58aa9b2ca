-- What items are recognised by once their keys have changed, and what is wrong with a source that answers.

ALTER TABLE wakebell.items
    ADD COLUMN link_mark bigint,        -- of its link and title as they were last listed; NULL: not listed since then
    ADD COLUMN title_mark bigint;

-- For what an unknown item may be; the second also over the sources.
CREATE INDEX items_link_idx ON wakebell.items (source, link_mark) WHERE link_mark IS NOT NULL;
CREATE INDEX items_title_idx ON wakebell.items (title_mark, source) WHERE title_mark IS NOT NULL;

ALTER TABLE wakebell.sources
    ADD COLUMN key_rule text NOT NULL DEFAULT 'id',     -- what its keys are made of; left when it proves useless
    ADD COLUMN oldest_at timestamptz,   -- the earliest date in the first round: what is older is no news
    ADD COLUMN last_news_at timestamptz,
    ADD COLUMN empty_rounds integer NOT NULL DEFAULT 0, -- in a row, though it has listed something before
    ADD COLUMN state text NOT NULL DEFAULT 'ok',        -- of the last round that was read
    ADD COLUMN state_at timestamptz,
    ADD CONSTRAINT sources_key_rule_check CHECK (key_rule IN ('id', 'link', 'link_title')),
    ADD CONSTRAINT sources_empty_rounds_check CHECK (empty_rounds >= 0),
    ADD CONSTRAINT sources_state_check CHECK (state IN ('ok', 'blind', 'silent', 'unstable'));

-- What was news before this was kept.
UPDATE wakebell.sources SET last_news_at = latest.first_seen_at
FROM (SELECT source, max(first_seen_at) AS first_seen_at FROM wakebell.items GROUP BY source) AS latest
WHERE latest.source = sources.name;

-- Which sources to look at: nearly always none.
CREATE INDEX sources_state_idx ON wakebell.sources (name) WHERE state <> 'ok';

ALTER TABLE wakebell.alerts
    DROP CONSTRAINT alerts_kind_check,
    ADD CONSTRAINT alerts_kind_check CHECK (kind IN (
        'job_failed', 'source_failing', 'message_failed', 'source_blind', 'source_silent', 'source_unstable'));
