-- name: keep
-- What a provider has delivered: each event once, by the name it gave it, and for each message a job that answers it,
-- behind those of its conversation. Copies that come at once wait for each other at the conversation's row, which everyone
-- locks first who writes of one: then messages, then jobs. Whoever says something more, or whose message comes again, is
-- not to wait for the time of a reply that failed; and of a message that comes again before its reply is being sent, the
-- new reply token counts.
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
    ON CONFLICT (chat, key) DO UPDATE SET
        last_at = CASE
            WHEN EXISTS (SELECT FROM given WHERE given.key = c.key AND given.kind IN ('message', 'staff')) THEN now()
            ELSE c.last_at
        END,
        address = coalesce(excluded.address, c.address)
    RETURNING c.id, c.key
), renewed AS (
    UPDATE wakebell.said SET reply_token = given.reply_token, token_at = now()
    FROM given
    WHERE said.chat = CAST(:chat AS text) AND said.event_id = given.event
      AND said.answered_at IS NULL AND said.replying_at IS NULL
      AND given.reply_token IS NOT NULL AND given.reply_token IS DISTINCT FROM said.reply_token
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
-- A person has taken over in these conversations, for so long from now on. Several at once lock them in one order.
WITH meant AS MATERIALIZED (
    SELECT c.id
    FROM wakebell.conversations AS c
    WHERE c.chat = CAST(:chat AS text) AND c.key = ANY (CAST(CAST(:keys AS text) AS text[]))
    ORDER BY c.key
    FOR NO KEY UPDATE
)
UPDATE wakebell.conversations AS c SET
    paused_until = greatest(paused_until, now() + make_interval(secs => CAST(:seconds AS double precision)))
FROM meant
WHERE c.id = meant.id
RETURNING c.key, now() AS now;

-- name: hold
-- Whether the conversation is there still; nobody else writes of it before this transaction ends.
SELECT c.id FROM wakebell.conversations AS c WHERE c.id = CAST(:conversation AS bigint) FOR NO KEY UPDATE;

-- name: read
-- A message with its conversation, and the last turns of it.
SELECT
    s.id, s.chat, s.conversation_id, c.key, s.event_id, s.address, s.person, s.text,
    coalesce(s.said_at, s.received_at) AS said_at, s.received_at, s.reply_token,
    coalesce(s.token_at, s.received_at) AS token_at, CAST(s.reply AS text) AS reply, s.sent, s.retry_key, s.replying_at,
    s.answered_at IS NOT NULL AS answered,
    coalesce(c.paused_until > now(), false) AS paused,
    (
        SELECT CAST(json_agg(json_build_array(last.mark, last.side, last.text, last.said_at) ORDER BY last.id) AS text)
        FROM (
            SELECT t.id, t.mark, t.side, t.text, t.said_at
            FROM wakebell.turns AS t
            WHERE t.conversation_id = s.conversation_id
            ORDER BY t.id DESC
            LIMIT CAST(:most AS integer)
        ) AS last
    ) AS turns,
    now() AS now
FROM wakebell.said AS s
JOIN wakebell.conversations AS c ON c.id = s.conversation_id
WHERE s.id = CAST(:id AS bigint);

-- name: waiting
-- What was said in the conversation after this message and waits for it.
SELECT s.text FROM wakebell.said AS s
WHERE s.conversation_id = CAST(:conversation AS bigint) AND s.id > CAST(:id AS bigint) AND s.answered_at IS NULL
    AND s.kind = 'message'
ORDER BY s.id LIMIT 20;

-- name: freeze
-- The reply as it will be sent, whoever sends it, and the token that it is sent with; the first one that was made stays.
UPDATE wakebell.said SET reply = coalesce(reply, CAST(CAST(:reply AS text) AS jsonb)), replying_at = coalesce(replying_at, now())
WHERE id = CAST(:id AS bigint)
RETURNING reply_token, coalesce(token_at, received_at) AS token_at;

-- name: progress
-- So many texts of the reply are with the provider; the others are sent under another key.
UPDATE wakebell.said SET sent = CAST(:sent AS integer), replying_at = NULL, retry_key = gen_random_uuid()
WHERE id = CAST(:id AS bigint);

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
-- There is nothing more to do about this message: that it was there is kept, what was said is for the memory, which is
-- forgotten so long after the last thing said.
WITH told AS (
    UPDATE wakebell.conversations SET last_at = now() WHERE id = CAST(:conversation AS bigint)
)
UPDATE wakebell.said SET
    answered_at = now(), outcome = CAST(:outcome AS text), text = '', reply = NULL, reply_token = NULL
WHERE id = CAST(:id AS bigint) AND answered_at IS NULL;

-- name: conversation
-- Its id, by the name that the provider gives it; locked, as everyone does who writes of one.
SELECT id FROM wakebell.conversations WHERE chat = CAST(:chat AS text) AND key = CAST(:key AS text) FOR NO KEY UPDATE;

-- name: latest
-- Of what was said in this conversation of these kinds, which is the last by the provider's clock.
SELECT s.kind
FROM wakebell.said AS s
JOIN wakebell.conversations AS c ON c.id = s.conversation_id
WHERE c.chat = CAST(:chat AS text) AND c.key = CAST(:key AS text)
  AND s.kind = ANY (CAST(CAST(:kinds AS text) AS text[]))
ORDER BY coalesce(s.said_at, s.received_at) DESC, s.id DESC
LIMIT 1;

-- name: prune
-- Conversations in which nothing was said for so long, with all that belongs to them; and what was delivered so long ago.
-- Where somebody still watches something, a person has taken over, or a message waits for its reply, only the turns go; and
-- it is looked at again after as long. What nobody answers any more has had its time as well.
WITH silent AS MATERIALIZED (
    SELECT
        c.id,
        coalesce(c.paused_until > now(), false) OR watched.id IS NOT NULL OR EXISTS (
            SELECT FROM wakebell.jobs AS j
            WHERE j.serial_key = 'wakebell.chat:' || c.id AND j.status IN ('pending', 'running')
        ) AS kept
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
), given_up AS (
    DELETE FROM wakebell.said WHERE id = ANY (ARRAY(
        SELECT s.id FROM wakebell.said AS s
        WHERE s.received_at < now() - make_interval(secs => CAST(:keep_seconds AS double precision))
          AND s.answered_at IS NULL
          AND NOT EXISTS (
              SELECT FROM wakebell.jobs AS j
              WHERE j.type = 'answer_message' AND j.unique_key = CAST(s.id AS text) AND j.status IN ('pending', 'running')
          )
        ORDER BY s.received_at
        LIMIT :most
        FOR UPDATE OF s SKIP LOCKED))
    RETURNING id
)
SELECT
    (SELECT count(*) FROM old) + (SELECT count(*) FROM kept) + (SELECT count(*) FROM heard)
    + (SELECT count(*) FROM given_up) AS pruned;
