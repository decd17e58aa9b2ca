-- Pages for people, newest first, in bounded time whatever is asked and however many rows there are. One index each
-- serves every filter: its leading columns have few values, so each combination of them that exists is found by one
-- probe (`groups`), and gives no more than a page of ids, in order (`newest`). An index for each filter was tried: two
-- filters that are common apart and rare together still read a whole one, and a claim of 1,000 jobs touched 79 % more
-- pages instead of 34 %. The status of a group is written as two bounds, and the lower one is no row: with `=` the planner
-- took the primary key, and read all messages for each status that has none; at a row as the bound where it is to end,
-- PostgreSQL before 18 reads on to the end of the queue.

-- name: list_jobs
-- One page of jobs below an id. Ends early when the payloads on it are long. `found` counts the page and one more.
WITH RECURSIVE groups AS (
    (
        SELECT j.queue, j.type
        FROM wakebell.jobs AS j
        WHERE CAST(:queue AS text) IS NULL OR j.queue = CAST(:queue AS text)
        ORDER BY j.queue, j.type
        LIMIT 1
    )
    UNION ALL
    SELECT following.queue, following.type
    FROM groups AS g
    CROSS JOIN LATERAL (
        SELECT j.queue, j.type
        FROM wakebell.jobs AS j
        WHERE (j.queue, j.type) > (g.queue, g.type)
        ORDER BY j.queue, j.type
        LIMIT 1
    ) AS following
    -- Out here: inside, the probe would walk all of the queue to get past the pair.
    WHERE CAST(:queue AS text) IS NULL OR following.queue = CAST(:queue AS text)
), newest AS MATERIALIZED (
    SELECT candidates.id
    FROM groups AS g
    CROSS JOIN unnest(ARRAY['pending', 'running', 'done', 'failed', 'cancelled']) AS given (status)
    CROSS JOIN LATERAL (
        SELECT j.id
        FROM wakebell.jobs AS j
        WHERE j.queue = g.queue AND j.type = g.type AND j.status >= given.status
          AND (j.status, j.id) < (given.status, coalesce(CAST(:before AS bigint), 9223372036854775807))
        ORDER BY j.status DESC, j.id DESC
        LIMIT CAST(:most AS integer) + 1
    ) AS candidates
    WHERE (CAST(:type AS text) IS NULL OR g.type = CAST(:type AS text))
      AND (CAST(:status AS text) IS NULL OR given.status = CAST(:status AS text))
      AND (CAST(:own AS boolean) OR NOT starts_with(g.queue, 'wakebell.'))
    ORDER BY candidates.id DESC
    LIMIT CAST(:most AS integer) + 1
), sized AS (
    SELECT j.id, j.type, j.payload, j.queue, j.priority, j.status, j.run_after, j.waiting, j.held, j.attempts,
           j.crashes, j.max_attempts, j.unique_key, j.serial_key, j.last_error, j.result, j.created_at, j.started_at,
           j.finished_at,
           count(*) OVER () AS found,
           sum(octet_length(CAST(j.payload AS text))) OVER (ORDER BY j.id DESC)
               - octet_length(CAST(j.payload AS text)) AS bytes_before
    FROM newest
    -- One probe for each: joined, PostgreSQL before 17 walks through all jobs in order, so as not to sort a page.
    CROSS JOIN LATERAL (SELECT * FROM wakebell.jobs WHERE jobs.id = newest.id LIMIT 1) AS j
)
SELECT s.id, s.type, CAST(s.payload AS text) AS payload, s.queue, s.priority, s.status,
       wakebell.readable(s.run_after) AS run_after, s.waiting, s.held,
       s.attempts, s.crashes, s.max_attempts, s.unique_key, s.serial_key, s.last_error,
       CAST(s.result AS text) AS result, s.created_at, s.started_at, s.finished_at, s.found
FROM sized AS s
WHERE s.bytes_before < CAST(:most_bytes AS integer)
ORDER BY s.id DESC
LIMIT CAST(:most AS integer);

-- name: list_messages
-- One page of messages below an id. Ends early when the texts on it are long. `found` counts the page and one more.
WITH RECURSIVE groups AS (
    (
        SELECT m.recipient, m.channel
        FROM wakebell.messages AS m
        WHERE CAST(:recipient AS text) IS NULL OR m.recipient = CAST(:recipient AS text)
        ORDER BY m.recipient, m.channel
        LIMIT 1
    )
    UNION ALL
    SELECT following.recipient, following.channel
    FROM groups AS g
    CROSS JOIN LATERAL (
        SELECT m.recipient, m.channel
        FROM wakebell.messages AS m
        WHERE (m.recipient, m.channel) > (g.recipient, g.channel)
        ORDER BY m.recipient, m.channel
        LIMIT 1
    ) AS following
    WHERE CAST(:recipient AS text) IS NULL OR following.recipient = CAST(:recipient AS text)
), newest AS MATERIALIZED (
    SELECT candidates.id
    FROM groups AS g
    CROSS JOIN unnest(ARRAY['queued', 'sending', 'retrying', 'sent', 'failed', 'uncertain']) AS given (status)
    CROSS JOIN LATERAL (
        SELECT m.id
        FROM wakebell.messages AS m
        WHERE m.recipient = g.recipient AND m.channel = g.channel AND m.status >= given.status
          AND (m.status, m.id) < (given.status, coalesce(CAST(:before AS bigint), 9223372036854775807))
        ORDER BY m.status DESC, m.id DESC
        LIMIT CAST(:most AS integer) + 1
    ) AS candidates
    WHERE (CAST(:channel AS text) IS NULL OR g.channel = CAST(:channel AS text))
      AND (CAST(:status AS text) IS NULL OR given.status = CAST(:status AS text))
    ORDER BY candidates.id DESC
    LIMIT CAST(:most AS integer) + 1
), sized AS (
    SELECT m.id, m.recipient, m.channel, m.kind, m.status, m.text, m.attempts, m.last_error, m.provider_id, m.repeated,
           m.created_at, m.first_tried_at, m.sent_at, m.finished_at,
           count(*) OVER () AS found,
           sum(octet_length(m.text)) OVER (ORDER BY m.id DESC) - octet_length(m.text) AS bytes_before
    FROM newest
    CROSS JOIN LATERAL (SELECT * FROM wakebell.messages WHERE messages.id = newest.id LIMIT 1) AS m
)
SELECT s.id, s.recipient, s.channel, s.kind, s.status, s.text, s.attempts, s.last_error, s.provider_id, s.repeated,
       s.created_at, s.first_tried_at, s.sent_at, s.finished_at, s.found
FROM sized AS s
WHERE s.bytes_before < CAST(:most_bytes AS integer)
ORDER BY s.id DESC
LIMIT CAST(:most AS integer);

-- name: get_message
-- One message as it stands.
SELECT m.id, m.recipient, m.channel, m.kind, m.status, m.text, m.attempts, m.last_error, m.provider_id, m.repeated,
       m.created_at, m.first_tried_at, m.sent_at, m.finished_at
FROM wakebell.messages AS m
WHERE m.id = CAST(:id AS bigint);

-- name: list_told
-- The items of a message, in the order in which they are told.
SELECT items.title, items.link, items.source, CAST(owed.subscriptions AS text) AS subscriptions
FROM wakebell.owed
JOIN wakebell.items ON items.id = owed.item_id
WHERE owed.message_id = CAST(:id AS bigint)
ORDER BY owed.id;

-- name: list_sources
-- The state of these sources, with how many items each has. The count reads an index, not the items. A source is next
-- read when its waiting fetch may run, else when it is planned; not before its host may be asked.
SELECT s.name, s.fingerprint, s.due_at, s.primed_at, s.last_round_at, s.last_success_at, s.failures,
       s.last_failure_at, s.last_error, s.fresh_until, s.gone_at, s.refusals, s.distrusted_at,
       s.key_rule, s.state, s.empty_rounds,
       CAST(floor(extract(epoch FROM now() - coalesce(s.last_news_at, s.primed_at)) / 86400) AS integer) AS quiet_days,
       CASE WHEN s.moved_at IS NOT NULL THEN s.moved_host END AS moved_host,
       CASE WHEN h.wait_until > now() THEN h.wait_until END AS host_waits_until,
       CASE WHEN h.wait_until > now() THEN h.reason END AS host_reason,
       CASE WHEN s.gone_at IS NULL THEN greatest(
           coalesce(
               (SELECT j.run_after
                FROM wakebell.jobs AS j
                WHERE j.type = 'fetch_source' AND j.unique_key = s.name AND j.status IN ('pending', 'running')),
               least(s.retry_at, greatest(s.due_at, s.fresh_until))),
           CASE WHEN h.wait_until > now() THEN h.wait_until END)
       END AS next_due_at,
       (SELECT count(*) FROM wakebell.items AS i WHERE i.source = s.name) AS item_count
FROM wakebell.sources AS s
LEFT JOIN wakebell.hosts AS h ON h.host = s.host
WHERE s.name = ANY (CAST(CAST(:names AS text) AS text[]));
