-- name: list
-- A page of conversations, those that were begun last first, with how much of each is remembered here.
SELECT
    c.id, c.chat, c.key, c.address AS person,
    CASE WHEN c.paused_until > now() THEN c.paused_until END AS paused_until,
    held.turns, held.last_at, now() AS now
FROM (
    SELECT one.id, one.chat, one.key, one.address, one.paused_until
    FROM wakebell.conversations AS one
    WHERE (CAST(:before AS bigint) IS NULL OR one.id < CAST(:before AS bigint))
      AND (CAST(:chat AS text) IS NULL OR one.chat = CAST(:chat AS text))
      AND (CAST(:paused AS boolean) IS NULL
           OR coalesce(one.paused_until > now(), false) = CAST(:paused AS boolean))
    ORDER BY one.id DESC
    LIMIT :limit
) AS c
CROSS JOIN LATERAL (
    SELECT count(*) AS turns, max(t.said_at) AS last_at FROM wakebell.turns AS t WHERE t.conversation_id = c.id
) AS held
ORDER BY c.id DESC;

-- name: find
-- One conversation in the same way.
SELECT
    c.id, c.chat, c.key, c.address AS person,
    CASE WHEN c.paused_until > now() THEN c.paused_until END AS paused_until,
    (SELECT count(*) FROM wakebell.turns AS t WHERE t.conversation_id = c.id) AS turns,
    (SELECT max(t.said_at) FROM wakebell.turns AS t WHERE t.conversation_id = c.id) AS last_at,
    now() AS now
FROM wakebell.conversations AS c
WHERE c.id = CAST(:id AS bigint);

-- name: turns
-- What was said in it, as far as it is remembered here.
SELECT t.mark, t.side, t.text, t.said_at AS at
FROM wakebell.turns AS t
WHERE t.conversation_id = CAST(:id AS bigint)
ORDER BY t.id;

-- name: resume
-- The service answers there again.
UPDATE wakebell.conversations SET paused_until = NULL WHERE id = CAST(:id AS bigint) RETURNING id;

-- name: lock
-- Whoever answers there waits, and then finds nothing.
SELECT c.chat, c.address FROM wakebell.conversations AS c WHERE c.id = CAST(:id AS bigint) FOR UPDATE;

-- name: forget
-- The conversation with all that was said, delivered and watched for in it; what is owed there is not any more.
WITH unowed AS (
    DELETE FROM wakebell.owed
    WHERE recipient = CAST(:recipient AS text) AND message_id IS NULL
)
DELETE FROM wakebell.conversations WHERE id = CAST(:id AS bigint);

-- name: forget_person
-- What is known of the person besides: the day's spendings; and that they were invited, if they watch nothing elsewhere.
WITH spent AS (
    DELETE FROM wakebell.spendings WHERE kind = CAST(:kind AS text) AND person = CAST(:person AS text)
)
DELETE FROM wakebell.watchers AS p
WHERE p.chat = CAST(:chat AS text) AND p.person = CAST(:person AS text)
  AND NOT EXISTS (SELECT FROM wakebell.watches AS w WHERE w.watcher_id = p.id);
