-- Give back jobs that were claimed and not started: due as before, the attempt not spent. Ids and tokens as in
-- `finish_jobs`. Returns how many; those whose lease was lost are let be.
CREATE FUNCTION wakebell.release_jobs(ids text, tokens text)
RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET jit = off
SET enable_seqscan = off
AS $$
DECLARE
    claim record;
    released integer;
    total integer := 0;
BEGIN
    FOR claim IN
        SELECT c.token, array_agg(c.id) AS ids
        FROM unnest(ids::bigint[], tokens::bigint[]) AS c (id, token)
        GROUP BY c.token
    LOOP
        UPDATE wakebell.jobs AS j SET
            status = 'pending',
            attempts = j.attempts - 1,
            started_at = CASE WHEN j.attempts = 1 THEN NULL ELSE j.started_at END,     -- ranks as one that never ran
            lease_until = NULL,
            lease_token = NULL
        WHERE j.id = ANY (claim.ids) AND j.status = 'running' AND j.lease_token = claim.token;
        GET DIAGNOSTICS released = ROW_COUNT;
        total := total + released;
    END LOOP;
    RETURN total;
END
$$;
