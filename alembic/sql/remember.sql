-- Before migrating: what is there already, for `close.sql` at the end of the same transaction.
-- In a local setting and not a temporary table: nothing is left behind on a pooled connection.
SELECT set_config('wakebell.known', coalesce(string_agg(known.id, ','), ''), true)
FROM (
    SELECT 'class:' || c.oid AS id
    FROM pg_catalog.pg_class AS c
    WHERE c.relnamespace = to_regnamespace('wakebell')
    UNION ALL
    SELECT 'proc:' || p.oid
    FROM pg_catalog.pg_proc AS p
    WHERE p.pronamespace = to_regnamespace('wakebell')
    UNION ALL
    SELECT 'schema' WHERE to_regclass('wakebell.alembic_version') IS NOT NULL
) AS known;
