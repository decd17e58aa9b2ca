-- name: add
-- Keep the items not seen before, and owe each of them to those who subscribed, unless this is the silent round.
-- One statement: no item is ever kept without what is owed for it, nor owed twice. The caller holds the source's
-- row, so two rounds of one source never meet here; ORDER BY keeps rounds of other writers from deadlocking.
WITH given AS (
    SELECT new.place, new.key, new.title, new.link, new.published_at, new.link_mark, new.title_mark, new.news, new.text,
           new.fields
    FROM jsonb_to_recordset(CAST(CAST(:items AS text) AS jsonb)) AS new (
        place integer, key text, title text, link text, published_at timestamptz, link_mark bigint, title_mark bigint, news boolean,
        text text, fields jsonb)
), seen AS (
    UPDATE wakebell.items SET
        seen_at = now(),
        link_mark = given.link_mark,
        title_mark = given.title_mark,
        published_at = coalesce(given.published_at, items.published_at)
    FROM given
    WHERE items.source = CAST(:source AS text)
      AND items.key = given.key
      AND (items.seen_at < now() - make_interval(secs => :sighting_seconds)  -- else each round would write every row
           OR items.link_mark IS DISTINCT FROM given.link_mark
           OR items.title_mark IS DISTINCT FROM given.title_mark)
), fresh AS (
    INSERT INTO wakebell.items (source, key, title, link, published_at, link_mark, title_mark, text, fields)
    SELECT CAST(:source AS text), given.key, given.title, given.link, given.published_at, given.link_mark,
           given.title_mark, given.text, given.fields
    FROM given
    ORDER BY given.key
    ON CONFLICT (source, key) DO NOTHING
    RETURNING id, key
), owed AS (
    INSERT INTO wakebell.owed (item_id, recipient, subscriptions)
    SELECT fresh.id, matched.recipient, matched.subscriptions
    FROM fresh
    JOIN jsonb_to_recordset(CAST(CAST(:matches AS text) AS jsonb))
      AS matched (key text, recipient text, subscriptions jsonb) USING (key)
    JOIN given USING (key)
    WHERE CAST(:telling AS boolean) AND given.news
    ORDER BY given.place, matched.recipient  -- as their source lists them, and so they are told
    ON CONFLICT DO NOTHING  -- a key that came twice
    RETURNING item_id, recipient
), composing AS (
    INSERT INTO wakebell.jobs (type, payload, queue, unique_key)
    SELECT 'compose_messages', jsonb_build_object('recipient', owed.recipient), 'wakebell.compose', owed.recipient
    FROM (SELECT DISTINCT recipient FROM owed) AS owed
    ORDER BY owed.recipient
    ON CONFLICT DO NOTHING  -- one is queued already and will take these too, or the next plan asks for another
)
SELECT
    (SELECT count(*) FROM fresh JOIN given USING (key) WHERE given.news) AS added,
    (SELECT count(DISTINCT item_id) FROM owed) AS matched;

-- name: has_listed
-- Whether the source has listed anything since it was primed, to within an hour. An order, for the sake of its plan.
SELECT (
    SELECT items.id
    FROM wakebell.items
    WHERE items.source = :source AND items.seen_at >= CAST(:since AS timestamptz) - interval '1 hour'
    ORDER BY items.source, items.seen_at
    LIMIT 1
) IS NOT NULL AS listed;

-- name: forget
-- Items that complete rounds of their source no longer list, by far enough. A source that is unreachable, unchanged
-- or no longer configured has no new complete round, so nothing of it ages. What is owed and not yet told stays.
DELETE FROM wakebell.items WHERE id = ANY (ARRAY(
    SELECT old.id
    FROM wakebell.sources
    CROSS JOIN LATERAL (
        SELECT items.id
        FROM wakebell.items
        WHERE items.source = sources.name
          AND items.seen_at < sources.last_round_at - make_interval(secs => :keep_seconds)
          AND NOT EXISTS (
              SELECT FROM wakebell.owed WHERE owed.item_id = items.id AND owed.message_id IS NULL)
        ORDER BY items.seen_at
        LIMIT :most
    ) AS old
    LIMIT :most
))
RETURNING id;
