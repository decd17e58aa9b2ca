-- name: rights
-- What this role cannot do with the tables of the schema; no row where the schema is not there. Row level security
-- without a policy hides every row from whoever does not own the table, and tells nobody.
SELECT
    CAST(current_user AS text) AS role,
    has_schema_privilege(n.oid, 'USAGE') AS enters,
    ARRAY(
        SELECT 'wakebell.' || c.relname
        FROM pg_catalog.pg_class AS c
        WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p') AND c.relname <> 'alembic_version'
          AND NOT (
              has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
              AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
          )
        ORDER BY c.relname
    ) AS closed,
    ARRAY(
        SELECT 'wakebell.' || c.relname
        FROM pg_catalog.pg_class AS c
        WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p') AND row_security_active(c.oid)
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_policy AS p WHERE p.polrelid = c.oid)
        ORDER BY c.relname
    ) AS hidden
FROM pg_catalog.pg_namespace AS n
WHERE n.nspname = 'wakebell';

-- name: last_ring
-- The latest tick, and how those of a day lie; no row where nobody has rung yet.
SELECT now() AS now, last.trigger, last.started_at, last.status, day.rings, day.longest_gap_seconds
FROM (SELECT trigger, started_at, status FROM wakebell.ticks ORDER BY started_at DESC LIMIT 1) AS last
CROSS JOIN (
    SELECT count(*) AS rings, CAST(max(extract(epoch FROM gap.gap)) AS double precision) AS longest_gap_seconds
    FROM (
        SELECT started_at - lag(started_at) OVER (ORDER BY started_at) AS gap
        FROM wakebell.ticks
        WHERE started_at > now() - interval '1 day'
    ) AS gap
) AS day;
