-- name: look
-- What there is for `plan`, by the database's clock: to which of these recipients, or in which conversation of these
-- chats, something is owed, and how much of
-- it (to 1,000); whether a job is there to compose it, and whether that waits; and, of those who want no more than `most`
-- messages a day, when they were told for the last time but so many. And whether a message has lost its job.
SELECT
    now() AS now,
    (
        SELECT CAST(jsonb_agg(to_jsonb(found)) AS text)
        FROM (
            SELECT wanted.name, wanted.muted_until, open.count, composing.waits IS NOT NULL AS composing, composing.waits IS TRUE AS waits,
                CASE WHEN wanted.most IS NOT NULL THEN (
                    SELECT messages.created_at
                    FROM wakebell.messages
                    WHERE messages.recipient = wanted.name AND messages.kind = 'items'
                    ORDER BY messages.id DESC
                    LIMIT 1 OFFSET wanted.most - 1)
                END AS full_since
            FROM (
                SELECT named.name, named.most, CAST(NULL AS timestamptz) AS muted_until
                FROM jsonb_to_recordset(CAST(CAST(:recipients AS text) AS jsonb)) AS named (name text, most integer)
                UNION ALL
                SELECT owing.recipient, NULL, c.muted_until
                FROM (  -- one probe of the index for each who is owed something
                    WITH RECURSIVE each AS (
                        (
                            SELECT o.recipient
                            FROM wakebell.owed AS o
                            WHERE o.message_id IS NULL
                            ORDER BY o.recipient, o.id
                            LIMIT 1
                        )
                        UNION ALL
                        SELECT (
                            SELECT o.recipient
                            FROM wakebell.owed AS o
                            WHERE o.message_id IS NULL AND o.recipient > each.recipient
                            ORDER BY o.recipient, o.id
                            LIMIT 1
                        )
                        FROM each
                        WHERE each.recipient IS NOT NULL
                    )
                    SELECT each.recipient FROM each WHERE each.recipient IS NOT NULL
                ) AS owing
                JOIN wakebell.conversations AS c ON c.id = wakebell.conversation_of(owing.recipient)
                WHERE c.chat = ANY (CAST(CAST(:chats AS text) AS text[]))
            ) AS wanted
            CROSS JOIN LATERAL (
                SELECT count(*) AS count
                FROM (
                    SELECT FROM wakebell.owed
                    WHERE owed.recipient = wanted.name AND owed.message_id IS NULL
                    LIMIT 1000
                ) AS counted
            ) AS open
            LEFT JOIN LATERAL (
                SELECT jobs.status = 'pending' AND jobs.run_after > now() AS waits
                FROM wakebell.jobs
                WHERE jobs.type = 'compose_messages' AND jobs.unique_key = wanted.name
                  AND jobs.status IN ('pending', 'running')
                LIMIT 1
            ) AS composing ON true
            WHERE open.count > 0
        ) AS found
    ) AS owing,
    EXISTS (
        SELECT FROM wakebell.messages
        WHERE status IN ('queued', 'sending', 'retrying')
          AND NOT EXISTS (
              SELECT FROM wakebell.jobs
              WHERE jobs.type = 'send_message' AND jobs.unique_key = CAST(messages.id AS text)
                AND jobs.status IN ('pending', 'running'))
    ) AS abandoned;

-- name: plan
-- A compose job for each of these recipients who is owed something that no message holds. A fetch that commits
-- while a compose job runs meets that job's unique key; without this its rows would wait for nobody. And a message
-- that has no job any more, since that killed every process that ran it, is over.
WITH queued AS (
    INSERT INTO wakebell.jobs (type, payload, queue, unique_key)
    SELECT 'compose_messages', jsonb_build_object('recipient', wanted.name), 'wakebell.compose', wanted.name
    FROM jsonb_array_elements_text(CAST(CAST(:recipients AS text) AS jsonb)) AS wanted (name)
    WHERE EXISTS (
        SELECT FROM wakebell.owed WHERE owed.recipient = wanted.name AND owed.message_id IS NULL)
    ORDER BY wanted.name
    ON CONFLICT DO NOTHING
    RETURNING id
), abandoned AS (
    UPDATE wakebell.messages SET
        status = CASE WHEN status = 'queued' THEN 'failed' ELSE 'uncertain' END,
        finished_at = now(),
        last_error = 'its job was given up: every process that tried to send it died'
    WHERE status IN ('queued', 'sending', 'retrying')
      AND NOT EXISTS (
          SELECT FROM wakebell.jobs
          WHERE jobs.type = 'send_message' AND jobs.unique_key = CAST(messages.id AS text)
            AND jobs.status IN ('pending', 'running'))
    RETURNING id
)
SELECT (SELECT count(*) FROM queued) AS queued, (SELECT count(*) FROM abandoned) AS abandoned;

-- name: owed
-- What one recipient is owed and no message holds, oldest first, locked: two compose jobs at once share it.
SELECT owed.id, CAST(owed.subscriptions AS text) AS subscriptions, items.title, items.link, items.source,
    items.published_at, items.text, CAST(items.fields AS text) AS fields, now() AS now
FROM wakebell.owed
JOIN wakebell.items ON items.id = owed.item_id
WHERE owed.recipient = :recipient AND owed.message_id IS NULL
ORDER BY owed.id
LIMIT :most
FOR UPDATE OF owed SKIP LOCKED;

-- name: owed_more
-- What is owed besides, to be counted only; locked likewise.
SELECT id
FROM wakebell.owed
WHERE recipient = :recipient AND message_id IS NULL AND id > CAST(:after AS bigint)
ORDER BY id
LIMIT :most
FOR UPDATE SKIP LOCKED;

-- name: told_at
-- When somebody was told for the last times, newest first.
SELECT created_at
FROM wakebell.messages
WHERE recipient = :recipient AND kind = 'items'
ORDER BY id DESC
LIMIT :most;

-- name: add
-- One frozen message and the job that sends it, in a queue of its channel's own, which can be paused.
WITH added AS (
    INSERT INTO wakebell.messages (recipient, channel, address, kind, body, text, expires_at)
    VALUES (:recipient, CAST(:channel AS text), :address, :kind, :body, :text, CAST(:expires_at AS timestamptz))
    RETURNING id
), sending AS (
    INSERT INTO wakebell.jobs (type, payload, queue, unique_key, max_attempts, run_after)
    SELECT 'send_message', jsonb_build_object('message', added.id), 'wakebell.send.' || CAST(:channel AS text),
           CAST(added.id AS text), 1000, coalesce(CAST(:not_before AS timestamptz), now())
    FROM added
)
SELECT id FROM added;

-- name: hold
-- Each of these rows is told by its message from now on. The caller checks the count: fewer means that somebody else
-- has told them, and everything is rolled back.
WITH held AS (
    UPDATE wakebell.owed SET message_id = told.message
    FROM unnest(CAST(CAST(:ids AS text) AS bigint[]), CAST(CAST(:messages AS text) AS bigint[])) AS told (id, message)
    WHERE owed.id = told.id AND owed.message_id IS NULL
    RETURNING owed.id
)
SELECT count(*) AS held FROM held;

-- name: start
-- Before the first byte leaves: the message is being sent, by the job that holds the lease and by no other, unless its
-- channel takes nothing now, nobody is at its address, or its time has passed. A message found in `sending` was begun by
-- a process that died: it may have arrived.
UPDATE wakebell.messages SET
    status = 'sending',
    attempts = attempts + 1,
    unanswered = unanswered OR status = 'sending',
    first_tried_at = coalesce(first_tried_at, now())
WHERE id = :id
  AND status IN ('queued', 'sending', 'retrying')
  AND EXISTS (
      SELECT FROM wakebell.jobs
      WHERE jobs.id = :job AND jobs.status = 'running' AND jobs.lease_token = :token AND jobs.lease_until > now())
  AND NOT EXISTS (
      SELECT FROM wakebell.channels WHERE channels.name = messages.channel AND channels.parked_until > now())
  AND NOT EXISTS (
      SELECT FROM wakebell.recipients
      WHERE recipients.address = messages.address AND recipients.blocked_at IS NOT NULL)
  AND (expires_at IS NULL OR expires_at > now())
RETURNING id, recipient, channel, body, retry_key, first_tried_at, unanswered, now() - first_tried_at AS age, kind, address,
    expires_at - now() AS left,
    (SELECT moved_to FROM wakebell.recipients WHERE recipients.address = messages.address) AS moved_to;

-- name: obstacle
-- Why an open message was not begun: its time has passed, nobody is at its address, its channel takes nothing now, or
-- none of these, which is the job's lease.
SELECT m.id, m.recipient, m.channel, m.kind, m.unanswered OR m.status = 'sending' AS unanswered,
    r.blocked_at IS NOT NULL AS blocked, r.blocked_reason, c.parked_until > now() AS parked, c.parked_reason,
    m.expires_at <= now() AS expired, m.called_off
FROM wakebell.messages AS m
LEFT JOIN wakebell.recipients AS r ON r.address = m.address
LEFT JOIN wakebell.channels AS c ON c.name = m.channel
WHERE m.id = :id AND m.status IN ('queued', 'sending', 'retrying');

-- name: set_back
-- The try did not count: whoever it was for has refused it unread. The first one is as if it had not been, so that the
-- message has all of its time before it.
UPDATE wakebell.messages SET
    status = CASE WHEN attempts <= 1 AND NOT unanswered THEN 'queued' ELSE 'retrying' END,
    first_tried_at = CASE WHEN attempts <= 1 AND NOT unanswered THEN NULL ELSE first_tried_at END,
    attempts = greatest(attempts - 1, 0),
    last_error = :reason
WHERE id = :id AND status = 'sending';

-- name: take_back
-- Nobody will get this message, and nobody has: what it tells is owed again, and a reminder is to be told another way.
-- That is told as a blocked recipient or a parked channel, and not as a message that failed as well.
WITH over AS (
    UPDATE wakebell.messages SET status = 'failed', last_error = :reason, finished_at = now(), judged_finish = now()
    WHERE id = :id AND status IN ('queued', 'sending', 'retrying')
    RETURNING id
), again AS (
    DELETE FROM wakebell.reminders USING over
    WHERE reminders.message_id = over.id
    RETURNING reminders.origin, reminders.booking, reminders.starts_at
), reminding AS (
    INSERT INTO wakebell.jobs (type, payload, queue, unique_key)
    SELECT DISTINCT
        'send_reminder',
        jsonb_build_object('booking', again.booking, 'starts_at', again.starts_at, 'origin', again.origin),
        'wakebell.remind',
        wakebell.reminder_key(again.origin, again.booking, again.starts_at)
    FROM again
    ON CONFLICT DO NOTHING
)
UPDATE wakebell.owed SET message_id = NULL
FROM over
WHERE owed.message_id = over.id;

-- name: let_go
-- A try has failed of a message whose booking changed meanwhile: there is no other. Where it has surely not arrived, its
-- reminder was not told: its mark goes, a job looks at the booking as it is now, and nobody is alarmed.
WITH over AS (
    UPDATE wakebell.messages SET
        status = CASE WHEN unanswered OR status = 'uncertain' THEN 'uncertain' ELSE 'failed' END,
        last_error = CASE WHEN last_error = called_off THEN called_off ELSE concat_ws('; before that: ', called_off, last_error) END,
        finished_at = now(),
        judged_finish = CASE WHEN unanswered OR status = 'uncertain' THEN judged_finish ELSE now() END
    WHERE id = :id AND called_off IS NOT NULL AND status <> 'sent'
    RETURNING id, status
), again AS (
    DELETE FROM wakebell.reminders USING over
    WHERE reminders.message_id = over.id AND over.status = 'failed'
    RETURNING reminders.origin, reminders.booking, reminders.starts_at
), reminding AS (
    INSERT INTO wakebell.jobs (type, payload, queue, unique_key)
    SELECT DISTINCT
        'send_reminder',
        jsonb_build_object('booking', again.booking, 'starts_at', again.starts_at, 'origin', again.origin),
        'wakebell.remind',
        wakebell.reminder_key(again.origin, again.booking, again.starts_at)
    FROM again
    ON CONFLICT DO NOTHING
)
SELECT id FROM over;

-- name: prune
-- Old messages that are over, oldest first; what was owed for them goes with them.
DELETE FROM wakebell.messages WHERE id = ANY (ARRAY(
    SELECT id FROM wakebell.messages
    WHERE finished_at < now() - make_interval(secs => :keep_seconds)
    ORDER BY finished_at
    LIMIT :most
    FOR UPDATE SKIP LOCKED
))
RETURNING id;
