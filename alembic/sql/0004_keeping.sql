-- What is kept of failed tries, and what follows when a job is done.
ALTER TABLE wakebell.jobs
    -- [{"attempt", "at", "error", "traceback"}], newest last, the last 20.
    ADD COLUMN failures jsonb NOT NULL DEFAULT '[]',
    -- Put in by the transaction that writes `done`. Objects as `enqueue_many` takes them.
    ADD COLUMN then_jobs jsonb;

-- NOT VALID: nothing has to be read, since no row from before can be wrong; what is written from now on is checked.
ALTER TABLE wakebell.jobs
    ADD CONSTRAINT jobs_failures_check CHECK (jsonb_typeof(failures) = 'array') NOT VALID,
    ADD CONSTRAINT jobs_then_jobs_check CHECK (jsonb_typeof(then_jobs) = 'array') NOT VALID;


-- The failures of a job with one more.
CREATE FUNCTION wakebell.failures_with(failures jsonb, attempt integer, error text, traceback text)
RETURNS jsonb
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN jsonb_array_length(failures) >= 20 THEN failures - 0 ELSE failures END
        || jsonb_build_array(jsonb_build_object(
            'attempt', attempt,
            'at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
            'error', error,
            'traceback', traceback
        ))
$$;
