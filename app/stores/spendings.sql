-- name: begin
-- One more try of this person's on this day, in UTC; no row: the day's limit is reached, and nothing is counted. Counted
-- before it is made: what fails, is never heard of or dies on the way has been one. Two at once are two.
INSERT INTO wakebell.spendings AS known (kind, person, spent_on, tries)
VALUES (CAST(:kind AS text), CAST(:person AS text), CAST(now() AT TIME ZONE 'UTC' AS date), 1)
ON CONFLICT (kind, person) DO UPDATE SET
    tries = CASE WHEN known.spent_on = excluded.spent_on THEN known.tries ELSE 0 END + 1,
    tokens = CASE WHEN known.spent_on = excluded.spent_on THEN known.tokens ELSE 0 END,
    spent_on = excluded.spent_on
WHERE known.spent_on <> excluded.spent_on
   OR (known.tries < CAST(:most_tries AS integer) AND known.tokens < CAST(:most_tokens AS bigint))
RETURNING tries;

-- name: charge
-- What a try has cost; on the next day, where it has ended then.
UPDATE wakebell.spendings SET tokens = tokens + CAST(:tokens AS bigint)
WHERE kind = CAST(:kind AS text) AND person = CAST(:person AS text);

-- name: prune
-- Of days that are over, everywhere.
DELETE FROM wakebell.spendings WHERE (kind, person) IN (
    SELECT s.kind, s.person
    FROM wakebell.spendings AS s
    WHERE s.spent_on < CAST((now() AT TIME ZONE 'UTC') - interval '1 day' AS date)
    ORDER BY s.spent_on
    LIMIT :most
    FOR UPDATE SKIP LOCKED)
RETURNING person;
