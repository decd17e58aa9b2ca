-- What other services have told us, kept once by the name they gave it.
CREATE TABLE wakebell.events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    door text NOT NULL,                             -- `hooks.<name>`, `chats.<name>`
    event_id text NOT NULL,                         -- the provider's
    received_at timestamptz NOT NULL DEFAULT now(),
    type text,                                      -- the provider's; NULL: it has not said
    job_id bigint,                                  -- what it became; NULL: nobody wanted one. The job may be pruned by now
    body bytea,                                     -- as it came, where the job's payload could not hold it
    aged_from timestamptz NOT NULL DEFAULT now(),   -- its age counts from here; later where its body was still needed
    CONSTRAINT events_door_event_id_key UNIQUE (door, event_id),
    CONSTRAINT events_names_check CHECK (door <> '' AND event_id <> '')
);

CREATE INDEX events_old_idx ON wakebell.events (aged_from);


-- An event and its job, both or neither: whoever calls it is one transaction, and a second one with the same name waits
-- for the first and finds what it has made. An event that was kept without a job gets one when it is told again and
-- wanted by then. Without `job_type` no job is wanted.
--
-- The job's payload is {id, type, source, received_at, data}. Where `data` is NULL the `body` is kept and `omitted` says
-- why. `job_id` and `created` are both NULL where `data` was too long after all: nothing is kept, to be called again so.
CREATE FUNCTION wakebell.keep_event(
    door text,
    event_id text,
    type text,
    source text,
    data jsonb,
    omitted text,
    body bytea,
    job_type text,
    queue text
)
RETURNS TABLE (job_id bigint, created boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    payload jsonb := jsonb_build_object(
        'id', keep_event.event_id,
        'type', keep_event.type,
        'source', keep_event.source,
        'received_at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'data', keep_event.data
    );
    kept bigint;
BEGIN
    IF keep_event.omitted IS NOT NULL THEN
        payload := payload || jsonb_build_object('omitted', keep_event.omitted);
    END IF;
    IF octet_length(payload::text) > 262144 THEN
        RETURN QUERY SELECT NULL::bigint, NULL::boolean;
        RETURN;
    END IF;

    LOOP
        INSERT INTO wakebell.events AS e (door, event_id, type)
        VALUES (keep_event.door, keep_event.event_id, keep_event.type)
        ON CONFLICT DO NOTHING
        RETURNING e.id INTO kept;
        keep_event.created := FOUND;
        EXIT WHEN FOUND;
        SELECT e.id, e.job_id INTO kept, keep_event.job_id
        FROM wakebell.events AS e
        WHERE e.door = keep_event.door AND e.event_id = keep_event.event_id
        FOR UPDATE;
        EXIT WHEN FOUND;            -- else it has just been pruned
    END LOOP;

    IF keep_event.job_id IS NULL AND keep_event.job_type IS NOT NULL THEN
        keep_event.created := true;
        SELECT added.id INTO keep_event.job_id
        FROM wakebell.add_job(keep_event.job_type, payload, keep_event.queue, 0, NULL, NULL, NULL, 4) AS added;
        UPDATE wakebell.events AS e SET job_id = keep_event.job_id, body = keep_event.body WHERE e.id = kept;
    END IF;
    RETURN NEXT;
END
$$;


-- Forgets at most `most` events whose time is over. A body stays as long as its job is there, which may wait, or be run
-- again by a person: its time begins anew. Two at once share them.
CREATE FUNCTION wakebell.prune_events(keep_seconds double precision, most integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
DECLARE
    old bigint[];
    pruned integer;
BEGIN
    old := ARRAY(
        SELECT e.id
        FROM wakebell.events AS e
        WHERE e.aged_from < now() - make_interval(secs => keep_seconds)
        ORDER BY e.aged_from
        LIMIT most
        FOR UPDATE SKIP LOCKED
    );
    UPDATE wakebell.events AS e SET aged_from = now()
    WHERE e.id = ANY (old)
      AND e.body IS NOT NULL
      AND EXISTS (SELECT FROM wakebell.jobs AS j WHERE j.id = e.job_id);
    DELETE FROM wakebell.events AS e
    WHERE e.id = ANY (old) AND e.aged_from < now() - make_interval(secs => keep_seconds);
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END
$$;
