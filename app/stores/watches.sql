-- name: invited
-- Whether this person was invited to give commands in this chat.
SELECT EXISTS (
    SELECT FROM wakebell.watchers
    WHERE chat = CAST(:chat AS text) AND person = CAST(:person AS text) AND invited_at IS NOT NULL
) AS invited;

-- name: guess
-- How often this person has tried today, in UTC, what might be the invitation; this message counts once, however often
-- it is looked at.
INSERT INTO wakebell.watchers AS known (chat, person, guessed_on, guesses, guessed_in)
VALUES (CAST(:chat AS text), CAST(:person AS text), CAST(now() AT TIME ZONE 'UTC' AS date), 1, CAST(:said AS bigint))
ON CONFLICT (chat, person) DO UPDATE SET
    guesses = CASE WHEN known.guessed_on = excluded.guessed_on THEN known.guesses ELSE 0 END
        + CASE WHEN known.guessed_on = excluded.guessed_on AND known.guessed_in = excluded.guessed_in THEN 0 ELSE 1 END,
    guessed_on = excluded.guessed_on,
    guessed_in = excluded.guessed_in
RETURNING guesses;

-- name: invite
-- This person may give commands from now on.
INSERT INTO wakebell.watchers AS known (chat, person, invited_at)
VALUES (CAST(:chat AS text), CAST(:person AS text), now())
ON CONFLICT (chat, person) DO UPDATE SET
    invited_at = coalesce(known.invited_at, excluded.invited_at),
    guesses = 0;

-- name: unsay
-- What was said is not to stay.
UPDATE wakebell.said SET text = '' WHERE id = CAST(:id AS bigint);

-- name: begin
-- The reply that an earlier try has frozen; locked, so that the effect of one message is had once.
SELECT CAST(s.reply AS text) AS reply FROM wakebell.said AS s WHERE s.id = CAST(:id AS bigint) FOR UPDATE;

-- name: watcher
-- The row of this person, made if it is not there. Locked: two messages at once, in two conversations, are counted one
-- after the other.
INSERT INTO wakebell.watchers AS known (chat, person)
VALUES (CAST(:chat AS text), CAST(:person AS text))
ON CONFLICT (chat, person) DO UPDATE SET person = known.person
RETURNING id, (SELECT count(*) FROM wakebell.watches AS w WHERE w.watcher_id = known.id) AS watches;

-- name: list
-- What this person watches in this conversation, in the order of its numbers.
SELECT w.id, CAST(to_jsonb(w.phrases) AS text) AS phrases, w.mark
FROM wakebell.watches AS w
JOIN wakebell.watchers AS p ON p.id = w.watcher_id
WHERE w.conversation_id = CAST(:conversation AS bigint)
  AND p.chat = CAST(:chat AS text) AND p.person = CAST(:person AS text)
ORDER BY w.id;

-- name: add
-- One more; whoever asks for it is there to be told.
WITH back AS (
    UPDATE wakebell.conversations SET left_at = NULL
    WHERE id = CAST(:conversation AS bigint) AND left_at IS NOT NULL
)
INSERT INTO wakebell.watches (watcher_id, conversation_id, phrases, mark)
VALUES (
    CAST(:watcher AS bigint), CAST(:conversation AS bigint), CAST(CAST(:phrases AS text) AS text[]),
    CAST(:mark AS text))
ON CONFLICT (watcher_id, conversation_id, mark) DO NOTHING;

-- name: remove
-- This one no longer.
DELETE FROM wakebell.watches WHERE id = CAST(:id AS bigint);

-- name: forget
-- What nobody in this conversation watches for any more is not told there either; what waits for another watch stays.
DELETE FROM wakebell.owed
WHERE recipient = CAST(:recipient AS text) AND message_id IS NULL
  AND NOT subscriptions ?| CAST(CAST(:labels AS text) AS text[]);

-- name: labels
-- All that is watched in this conversation, by whomever.
SELECT CAST(to_jsonb(w.phrases) AS text) AS phrases
FROM wakebell.watches AS w
WHERE w.conversation_id = CAST(:conversation AS bigint)
ORDER BY w.id;

-- name: mute
-- Nothing is told there for so long; of no seconds: all is told again.
UPDATE wakebell.conversations SET
    muted_until = CASE
        WHEN CAST(:seconds AS double precision) > 0
        THEN now() + make_interval(secs => CAST(:seconds AS double precision))
    END
WHERE id = CAST(:conversation AS bigint)
RETURNING muted_until, now() AS now;

-- name: latest
-- The newest items of these sources, with what this recipient was, or is to be, told of them. Of the last thousand that
-- were kept: those of a source's first round came all at once, whatever their age.
SELECT newest.title, newest.link, newest.source, CAST(owed.subscriptions AS text) AS subscriptions
FROM (
    SELECT items.id, items.title, items.link, items.source, items.published_at, items.first_seen_at
    FROM wakebell.items
    ORDER BY items.id DESC
    LIMIT 1000
) AS newest
LEFT JOIN wakebell.owed ON owed.item_id = newest.id AND owed.recipient = CAST(:recipient AS text)
WHERE newest.source = ANY (CAST(CAST(:sources AS text) AS text[]))
ORDER BY least(coalesce(newest.published_at, newest.first_seen_at), newest.first_seen_at) DESC, newest.id DESC
LIMIT CAST(:most AS integer);

-- name: status
-- When the last tick began that has ended, and until when this conversation is muted.
SELECT
    now() AS now,
    c.muted_until,
    (SELECT t.started_at FROM wakebell.ticks AS t WHERE t.status IS NOT NULL ORDER BY t.started_at DESC LIMIT 1) AS last_at
FROM wakebell.conversations AS c
WHERE c.id = CAST(:conversation AS bigint);

-- name: watched
-- All that is watched for, and where it is told: read once for a round that has something new.
SELECT c.chat, c.id AS conversation, p.person, p.invited_at IS NOT NULL AS invited, CAST(to_jsonb(w.phrases) AS text) AS phrases
FROM wakebell.watches AS w
JOIN wakebell.watchers AS p ON p.id = w.watcher_id
JOIN wakebell.conversations AS c ON c.id = w.conversation_id
WHERE c.left_at IS NULL AND c.chat = ANY (CAST(CAST(:chats AS text) AS text[]))
ORDER BY w.id;

-- name: listener
-- A conversation in which somebody watches something, and who does.
SELECT c.chat, c.id AS conversation, c.address, c.muted_until, (
    SELECT CAST(jsonb_agg(DISTINCT jsonb_build_array(p.person, p.invited_at IS NOT NULL)) AS text)
    FROM wakebell.watches AS w
    JOIN wakebell.watchers AS p ON p.id = w.watcher_id
    WHERE w.conversation_id = c.id
) AS people
FROM wakebell.conversations AS c
WHERE c.id = CAST(:conversation AS bigint) AND c.left_at IS NULL;

-- name: found
-- The id of a conversation in which somebody watches something, by the name that the provider gives it.
SELECT c.id
FROM wakebell.conversations AS c
WHERE c.chat = CAST(:chat AS text) AND c.key = CAST(:key AS text)
  AND EXISTS (SELECT FROM wakebell.watches AS w WHERE w.conversation_id = c.id);

-- name: leave
-- Nobody is there any more: nothing is owed there from now on, and what was is not.
WITH gone AS (
    UPDATE wakebell.conversations SET left_at = coalesce(left_at, now())
    WHERE id = CAST(:conversation AS bigint)
)
DELETE FROM wakebell.owed WHERE recipient = CAST(:recipient AS text) AND message_id IS NULL;

-- name: come_back
-- Somebody is there again.
UPDATE wakebell.conversations SET left_at = NULL
WHERE id = CAST(:conversation AS bigint) AND left_at IS NOT NULL;

-- name: drop
-- What has been owed for so long to somebody who cannot be told is not any more. How much is left.
WITH dropped AS (
    DELETE FROM wakebell.owed
    WHERE recipient = CAST(:recipient AS text) AND message_id IS NULL
      AND created_at < now() - make_interval(secs => CAST(:keep_seconds AS double precision))
    RETURNING id
)
SELECT count(*) AS left
FROM (
    SELECT id FROM wakebell.owed WHERE recipient = CAST(:recipient AS text) AND message_id IS NULL LIMIT 1001
) AS open
WHERE open.id NOT IN (SELECT dropped.id FROM dropped);

-- name: count
-- In how many conversations of these chats somebody is told of something.
SELECT count(DISTINCT w.conversation_id) AS count
FROM wakebell.watches AS w
JOIN wakebell.conversations AS c ON c.id = w.conversation_id
WHERE c.left_at IS NULL AND c.chat = ANY (CAST(CAST(:chats AS text) AS text[]));

-- name: prune
-- Those who have only guessed, and not lately.
DELETE FROM wakebell.watchers WHERE id = ANY (ARRAY(
    SELECT p.id
    FROM wakebell.watchers AS p
    WHERE p.invited_at IS NULL
      AND coalesce(p.guessed_on, '-infinity') < CAST((now() AT TIME ZONE 'UTC') - interval '1 day' AS date)
      AND NOT EXISTS (SELECT FROM wakebell.watches AS w WHERE w.watcher_id = p.id)
    ORDER BY p.id
    LIMIT :most
    FOR UPDATE OF p SKIP LOCKED))
RETURNING id;
