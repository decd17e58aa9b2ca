-- name: unknown
-- Items of a round without a row, in their order, with the row by the key that they had before the source's rule changed.
-- One probe of the unique index for each: as joins these were planned as a walk over all items.
SELECT given.item ->> 'key' AS key, given.item ->> 'former' AS former, former.id AS former_id
FROM jsonb_array_elements(CAST(CAST(:given AS text) AS jsonb)) WITH ORDINALITY AS given (item, n)
LEFT JOIN LATERAL (
    SELECT items.id
    FROM wakebell.items
    WHERE items.source = :source AND items.key = given.item ->> 'key'
    LIMIT 1
) AS known ON true
LEFT JOIN LATERAL (
    SELECT items.id
    FROM wakebell.items
    WHERE items.source = :source AND items.key = given.item ->> 'former'
    LIMIT 1
) AS former ON true
WHERE known.id IS NULL
ORDER BY given.n;

-- name: alike
-- The latest known items of each of these links and titles. What was last listed before the source was primed again is
-- none of them: it was told apart by other keys.
SELECT
    alike.id, alike.key, alike.title, alike.link, alike.link_mark, alike.title_mark, alike.published_at,
    alike.first_seen_at
FROM jsonb_array_elements_text(CAST(CAST(:marks AS text) AS jsonb) -> 'links') AS given (mark)
CROSS JOIN LATERAL (
    SELECT items.*
    FROM wakebell.items
    WHERE items.source = :source AND items.link_mark = CAST(given.mark AS bigint)
      AND items.seen_at >= CAST(:since AS timestamptz) - interval '1 hour'
    ORDER BY items.id DESC
    LIMIT :most
) AS alike
UNION
SELECT
    alike.id, alike.key, alike.title, alike.link, alike.link_mark, alike.title_mark, alike.published_at,
    alike.first_seen_at
FROM jsonb_array_elements_text(CAST(CAST(:marks AS text) AS jsonb) -> 'titles') AS given (mark)
CROSS JOIN LATERAL (
    SELECT items.*
    FROM wakebell.items
    WHERE items.source = :source AND items.title_mark = CAST(given.mark AS bigint)
      AND items.seen_at >= CAST(:since AS timestamptz) - interval '1 hour'
    ORDER BY items.id DESC
    LIMIT :most
) AS alike
ORDER BY id DESC;

-- name: move
-- New keys, which no row has: the caller holds the source.
UPDATE wakebell.items SET key = given.key
FROM jsonb_to_recordset(CAST(CAST(:given AS text) AS jsonb)) AS given (id bigint, key text)
WHERE items.id = given.id
RETURNING items.id;

-- name: owed_elsewhere
-- Who is owed, or was told, something under one of these titles of another source that merges with this one. Orders and
-- limits keep it to the indexes: without them tables of unknown length are read as a whole.
SELECT DISTINCT CAST(given.mark AS bigint) AS title_mark, twin.recipient
FROM jsonb_array_elements_text(CAST(CAST(:titles AS text) AS jsonb)) AS given (mark)
CROSS JOIN LATERAL (
    SELECT items.id
    FROM wakebell.items
    WHERE items.title_mark = CAST(given.mark AS bigint)
      AND items.source = ANY (CAST(CAST(:sources AS text) AS text[]))
      AND items.source <> :source
      AND items.first_seen_at > now() - make_interval(secs => :within_seconds)
    ORDER BY items.title_mark, items.source
    LIMIT :most
) AS alike
CROSS JOIN LATERAL (
    SELECT owed.recipient
    FROM wakebell.owed
    WHERE owed.item_id = alike.id
    ORDER BY owed.item_id, owed.recipient
    LIMIT 1000
) AS twin;

-- name: merge_in_turn
-- Rounds of sources that merge are stored one after the other: each sees what the one before it owes.
SELECT pg_advisory_xact_lock(hashtext('wakebell.merge'));
