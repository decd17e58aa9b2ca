-- name: keep
-- What a provider has delivered: each event once, by the name it gave it, and for each message a job that answers it,
-- behind those of its conversation. Copies that come at once wait for each other at the conversation's row. Whoever
-- says something more, or whose message comes again, is not to wait for the time of a reply that failed.
WITH given AS MATERIALIZED (
    SELECT g.place, g.event, g.kind, g.key, g.address, g.person, g.text, g.reply_token, g.at
    FROM jsonb_to_recordset(CAST(CAST(:given AS text) AS jsonb)) AS g (
        place integer, event text, kind text, key text, address text, person text, text text, reply_token text,
        at timestamptz)
), talking AS (
    INSERT INTO wakebell.conversations AS c (chat, key, address)
    SELECT DISTINCT ON (given.key) CAST(:chat AS text), given.key, given.address
    FROM given
    ORDER BY given.key, given.place DESC
    ON CONFLICT (chat, key) DO UPDATE SET last_at = now(), address = coalesce(excluded.address, c.address)
    RETURNING c.id, c.key
), fresh AS (
    INSERT INTO wakebell.said (
        conversation_id, chat, event_id, kind, address, person, text, reply_token, said_at, answered_at, outcome
    )
    SELECT
        talking.id, CAST(:chat AS text), given.event, given.kind, given.address, given.person, given.text,
        given.reply_token, given.at,
        CASE WHEN given.kind <> 'message' THEN now() END, CASE WHEN given.kind <> 'message' THEN 'noted' END
    FROM given
    JOIN talking ON talking.key = given.key
    ORDER BY given.event
    ON CONFLICT (chat, event_id) DO NOTHING
    RETURNING id, conversation_id, event_id, kind
), hurried AS (
    UPDATE wakebell.jobs SET run_after = now(), max_attempts = max_attempts + 1  -- the more is said, the less is given up
    FROM talking
    WHERE jobs.serial_key = 'wakebell.chat:' || talking.id AND jobs.status = 'pending' AND NOT jobs.waiting
      AND jobs.run_after > now() AND jobs.attempts < 50
      AND EXISTS (SELECT FROM given WHERE given.key = talking.key AND given.kind = 'message')
), queued AS (
    SELECT wakebell.add_job(
        type => 'answer_message',
        payload => jsonb_build_object('said', ordered.id),
        queue => CAST(:queue AS text),
        priority => 0,
        run_after => now(),
        unique_key => CAST(ordered.id AS text),
        serial_key => 'wakebell.chat:' || ordered.conversation_id,
        max_attempts => CAST(:max_attempts AS integer)
    )
    FROM (
        SELECT fresh.id, fresh.conversation_id
        FROM fresh
        JOIN given ON given.event = fresh.event_id
        WHERE fresh.kind = 'message'
        ORDER BY given.place
    ) AS ordered
)
SELECT
    given.event AS event_id, given.kind,
    fresh.id IS NOT NULL AS fresh,
    given.kind <> 'message' OR known.answered_at IS NOT NULL AS answered,
    (SELECT count(*) FROM queued) AS queued
FROM given
LEFT JOIN fresh ON fresh.event_id = given.event
LEFT JOIN wakebell.said AS known ON known.chat = CAST(:chat AS text) AND known.event_id = given.event
ORDER BY given.place;

-- name: pause
-- A person has taken over in these conversations, for so long from now on.
UPDATE wakebell.conversations SET
    paused_until = greatest(paused_until, now() + make_interval(secs => CAST(:seconds AS double precision)))
WHERE chat = CAST(:chat AS text) AND key = ANY (CAST(CAST(:keys AS text) AS text[]))
RETURNING key;

-- name: resume
-- The service answers again.
UPDATE wakebell.conversations SET paused_until = NULL
WHERE chat = CAST(:chat AS text) AND key = CAST(:key AS text) AND paused_until > now()
RETURNING key;

-- name: read
-- A message with its conversation, and the last turns of it that are not forgotten yet.
SELECT
    s.id, s.chat, s.conversation_id, c.key, s.event_id, s.address, s.person, s.text,
    coalesce(s.said_at, s.received_at) AS said_at, s.received_at, s.reply_token, CAST(s.reply AS text) AS reply, s.sent,
    s.retry_key,
    s.replying_at, s.answered_at IS NOT NULL AS answered,
    coalesce(c.paused_until > now(), false) AS paused,
    CASE WHEN c.spent_on = CAST(now() AT TIME ZONE 'UTC' AS date) THEN c.tokens ELSE 0 END AS tokens_today,
    CASE WHEN c.spent_on = CAST(now() AT TIME ZONE 'UTC' AS date) THEN c.replies ELSE 0 END AS replies_today,
    (
        SELECT CAST(json_agg(json_build_array(last.mark, last.side, last.text, last.said_at) ORDER BY last.id) AS text)
        FROM (
            SELECT t.id, t.mark, t.side, t.text, t.said_at
            FROM wakebell.turns AS t
            WHERE t.conversation_id = s.conversation_id
            ORDER BY t.id DESC
            LIMIT CAST(:most AS integer)
        ) AS last
        WHERE last.said_at > now() - make_interval(secs => CAST(:keep_seconds AS double precision))
    ) AS turns,
    now() AS now
FROM wakebell.said AS s
JOIN wakebell.conversations AS c ON c.id = s.conversation_id
WHERE s.id = CAST(:id AS bigint);

-- name: freeze
-- The reply as it will be sent, whoever sends it; the first one that was made stays.
UPDATE wakebell.said SET reply = coalesce(reply, CAST(CAST(:reply AS text) AS jsonb)), replying_at = coalesce(replying_at, now())
WHERE id = CAST(:id AS bigint);

-- name: progress
-- So many texts of the reply are with the provider; the others are sent under another key.
UPDATE wakebell.said SET sent = CAST(:sent AS integer), replying_at = NULL, retry_key = gen_random_uuid()
WHERE id = CAST(:id AS bigint);

-- name: spend
-- What making the reply has cost, on this day in UTC.
UPDATE wakebell.conversations SET
    tokens = CASE WHEN spent_on = CAST(now() AT TIME ZONE 'UTC' AS date) THEN tokens ELSE 0 END + CAST(:tokens AS bigint),
    replies = CASE WHEN spent_on = CAST(now() AT TIME ZONE 'UTC' AS date) THEN replies ELSE 0 END + 1,
    spent_on = CAST(now() AT TIME ZONE 'UTC' AS date)
WHERE id = CAST(:conversation AS bigint);

-- name: remember
-- These turns, each once, in their order; and only the last ones are kept.
WITH given AS (
    SELECT t.mark, t.side, t.text, t.at
    FROM jsonb_to_recordset(CAST(CAST(:turns AS text) AS jsonb))
      AS t (place integer, mark text, side text, text text, at timestamptz)
    ORDER BY t.place
)
INSERT INTO wakebell.turns (conversation_id, mark, side, text, said_at)
SELECT CAST(:conversation AS bigint), given.mark, given.side, given.text, coalesce(given.at, now())
FROM given
ON CONFLICT (conversation_id, mark) DO NOTHING;

-- name: trim
-- All but the last ones of a conversation are forgotten.
DELETE FROM wakebell.turns AS t
WHERE t.conversation_id = CAST(:conversation AS bigint)
  AND t.id <= (
      SELECT old.id
      FROM wakebell.turns AS old
      WHERE old.conversation_id = CAST(:conversation AS bigint)
      ORDER BY old.id DESC
      LIMIT 1 OFFSET CAST(:most AS integer)
  );

-- name: answer
-- There is nothing more to do about this message: that it was there is kept, what was said is for the memory.
UPDATE wakebell.said SET
    answered_at = now(), outcome = CAST(:outcome AS text), text = '', reply = NULL, reply_token = NULL
WHERE id = CAST(:id AS bigint) AND answered_at IS NULL;

-- name: conversation
-- Its id, by the name that the provider gives it.
SELECT id FROM wakebell.conversations WHERE chat = CAST(:chat AS text) AND key = CAST(:key AS text);

-- name: superseded
-- Whether something of these kinds was said in this conversation after that.
SELECT EXISTS (
    SELECT FROM wakebell.said AS s
    JOIN wakebell.conversations AS c ON c.id = s.conversation_id
    WHERE c.chat = CAST(:chat AS text) AND c.key = CAST(:key AS text)
      AND s.kind = ANY (CAST(CAST(:kinds AS text) AS text[])) AND s.said_at > CAST(:at AS timestamptz)
) AS superseded;

-- name: prune
-- Conversations in which nothing was said for so long, with all that belongs to them; and what was delivered so long ago.
-- Where somebody still watches something, or a person has taken over, only the turns go; and it is looked at again after
-- as long.
WITH silent AS MATERIALIZED (
    SELECT c.id, coalesce(c.paused_until > now(), false) OR watched.id IS NOT NULL AS kept
    FROM wakebell.conversations AS c
    LEFT JOIN LATERAL (
        SELECT w.id FROM wakebell.watches AS w WHERE w.conversation_id = c.id LIMIT 1
    ) AS watched ON true
    WHERE c.last_at < now() - make_interval(secs => CAST(:keep_seconds AS double precision))
    ORDER BY c.last_at
    LIMIT :most
    FOR UPDATE OF c SKIP LOCKED
), old AS (
    DELETE FROM wakebell.conversations WHERE id = ANY (ARRAY(SELECT silent.id FROM silent WHERE NOT silent.kept))
    RETURNING id
), kept AS (
    UPDATE wakebell.conversations SET last_at = now()
    WHERE id = ANY (ARRAY(SELECT silent.id FROM silent WHERE silent.kept))
    RETURNING id
), forgotten AS (
    DELETE FROM wakebell.turns WHERE conversation_id IN (SELECT kept.id FROM kept)
), heard AS (
    DELETE FROM wakebell.said WHERE id = ANY (ARRAY(
        SELECT id FROM wakebell.said
        WHERE received_at < now() - make_interval(secs => CAST(:keep_seconds AS double precision))
          AND answered_at IS NOT NULL
        ORDER BY received_at
        LIMIT :most
        FOR UPDATE SKIP LOCKED))
    RETURNING id
)
SELECT (SELECT count(*) FROM old) + (SELECT count(*) FROM kept) + (SELECT count(*) FROM heard) AS pruned;
