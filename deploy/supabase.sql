-- Supabase rings: pg_cron says when, pg_net sends it. For the SQL editor; run it again to change it.
-- docs/guides/hosts/supabase.md
--
-- No secret is in here. Keep these two in the Vault first (Integrations, Vault, Add new secret):
--   wakebell_url           the service's own address, https://, without a path
--   wakebell_cron_secret   the CRON_SECRET of the service

CREATE EXTENSION IF NOT EXISTS pg_cron;
CREATE EXTENSION IF NOT EXISTS pg_net;

-- Of the same name there is one job: a second run of this replaces it. Times are UTC.
SELECT cron.schedule(
    'wakebell-tick',
    '7,22,37,52 * * * *',
    $job$
    SELECT net.http_post(
        url := (
            SELECT rtrim(decrypted_secret, E'/ \r\n') || '/api/cron/tick'
            FROM vault.decrypted_secrets
            WHERE name = 'wakebell_url'
        ),
        headers := (
            SELECT jsonb_build_object(
                'Content-Type', 'application/json',
                'Authorization', 'Bearer ' || btrim(decrypted_secret, E' \r\n')
            )
            FROM vault.decrypted_secrets
            WHERE name = 'wakebell_cron_secret'
        ),
        -- Without it pg_net hangs up after 5 seconds, and a host that wakes needs longer.
        timeout_milliseconds := 120000
    )
    $job$
);
