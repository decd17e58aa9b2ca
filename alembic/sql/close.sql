-- After migrating: whatever is new in the schema is closed to every role but its owner, whoever was given a share by
-- default privileges (as hosts do that offer an HTTP door to the database) or by PostgreSQL itself (functions).
-- Only what is new: a grant that somebody made on purpose since then stays.
DO $$
DECLARE
    known text[] := string_to_array(current_setting('wakebell.known'), ',');
    told record;
BEGIN
    FOR told IN
        SELECT c.oid::regclass AS name
        FROM pg_catalog.pg_class AS c
        WHERE c.relnamespace = to_regnamespace('wakebell')
          AND c.relkind IN ('r', 'p')
          AND NOT 'class:' || c.oid = ANY (known)
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', told.name);
    END LOOP;

    FOR told IN
        WITH objects (what, owner, privileges) AS (
            SELECT
                CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || c.oid::regclass,
                c.relowner,
                c.relacl
            FROM pg_catalog.pg_class AS c
            WHERE c.relnamespace = to_regnamespace('wakebell')
              AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
              AND NOT 'class:' || c.oid = ANY (known)
            UNION ALL
            SELECT
                'ROUTINE ' || p.oid::regprocedure,
                p.proowner,
                coalesce(p.proacl, acldefault('f', p.proowner))
            FROM pg_catalog.pg_proc AS p
            WHERE p.pronamespace = to_regnamespace('wakebell')
              AND NOT 'proc:' || p.oid = ANY (known)
            UNION ALL
            SELECT 'SCHEMA wakebell', n.nspowner, n.nspacl
            FROM pg_catalog.pg_namespace AS n
            WHERE n.nspname = 'wakebell'
              AND NOT 'schema' = ANY (known)
              AND pg_has_role(n.nspowner, 'USAGE')
        )
        SELECT DISTINCT
            o.what,
            CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END AS role
        FROM objects AS o
        CROSS JOIN LATERAL aclexplode(o.privileges) AS acl
        WHERE acl.grantee <> o.owner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s CASCADE', told.what, told.role);
    END LOOP;
END
$$;
