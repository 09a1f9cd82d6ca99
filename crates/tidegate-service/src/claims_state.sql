-- The state of the claims functions in a database. The service's role runs this query. The columns
-- of its row:
--
--   foreign_object  the first object in the schemas that another role owns, with its owner
--   there           whether both schemas exist
--   may_make        whether the service may create the schemas
--   current         whether the table and all functions exist, with generation $1 and at least this
--                   version
--   key_a, key_b    the sequences with the two halves of the key
--   is_open         whether another role has a privilege that only the service may have
WITH schema (oid, nspname, owner, acl) AS (
    SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_catalog.pg_namespace n
    WHERE n.nspname OPERATOR(pg_catalog.=) ANY (ARRAY['tidegate', 'tidegate_private']::pg_catalog.name[])
), object (name, owner, acl, shared) AS (
    SELECT pg_catalog.concat('schema ', s.nspname), s.owner, s.acl,
           s.nspname OPERATOR(pg_catalog.=) 'tidegate' FROM schema s
    UNION ALL
    SELECT pg_catalog.concat('relation ', s.nspname, '.', c.relname), c.relowner, c.relacl, false
    FROM pg_catalog.pg_class c JOIN schema s ON s.oid OPERATOR(pg_catalog.=) c.relnamespace
    UNION ALL
    SELECT pg_catalog.concat('function ', s.nspname, '.', p.proname), p.proowner,
           coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner)),
           s.nspname OPERATOR(pg_catalog.=) 'tidegate'
    FROM pg_catalog.pg_proc p JOIN schema s ON s.oid OPERATOR(pg_catalog.=) p.pronamespace
), me (oid, super) AS (
    SELECT r.oid, r.rolsuper FROM pg_catalog.pg_roles r
    WHERE r.rolname OPERATOR(pg_catalog.=) current_user
), alien (name) AS (
    -- If the service's role is a superuser, objects of other superusers count as its own.
    SELECT pg_catalog.concat(o.name, ' of ', r.rolname) FROM object o
    JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) o.owner CROSS JOIN me
    WHERE r.oid OPERATOR(pg_catalog.<>) me.oid AND NOT (me.super AND r.rolsuper)
    ORDER BY o.name LIMIT 1
), made (name, current) AS (
    -- This does not use to_regprocedure() and similar functions, which fail if the service may not
    -- use a schema.
    SELECT pg_catalog.concat(s.nspname, '.', p.proname),
           CASE WHEN p.prosecdef THEN
               pg_catalog.substring(p.prosrc, '-- Version ([0-9]+), generation ')::pg_catalog.int4
                   OPERATOR(pg_catalog.>=) 1
               AND pg_catalog.substring(p.prosrc, ', generation ([0-9]+)')::pg_catalog.int4
                   OPERATOR(pg_catalog.=) $1
           ELSE p.proname OPERATOR(pg_catalog.<>) ALL (ARRAY['user_id', 'claims']::pg_catalog.name[]) END
    FROM pg_catalog.pg_proc p JOIN schema s ON s.oid OPERATOR(pg_catalog.=) p.pronamespace
    UNION ALL
    SELECT pg_catalog.concat(s.nspname, '.', c.relname), true
    FROM pg_catalog.pg_class c JOIN schema s ON s.oid OPERATOR(pg_catalog.=) c.relnamespace
), key (name, oid) AS (
    SELECT c.relname, c.oid
    FROM pg_catalog.pg_class c JOIN schema s ON s.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE s.nspname OPERATOR(pg_catalog.=) 'tidegate_private'
      AND c.relkind OPERATOR(pg_catalog.=) 'S'::pg_catalog."char"
)
SELECT (SELECT a.name FROM alien a) AS foreign_object,
       (SELECT pg_catalog.count(*) FROM schema s) OPERATOR(pg_catalog.=) 2 AS there,
       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') AS may_make,
       NOT EXISTS (
           SELECT FROM pg_catalog.unnest(ARRAY['tidegate.user_id', 'tidegate.claims', 'tidegate.claim',
               'tidegate_private.user_role', 'tidegate_private.role_user_id',
               'tidegate_private.role_claims', 'tidegate_private.identities']) needed (name)
           WHERE NOT EXISTS (
               SELECT FROM made m WHERE m.name OPERATOR(pg_catalog.=) needed.name AND m.current)) AS current,
       (SELECT k.oid FROM key k WHERE k.name OPERATOR(pg_catalog.=) pg_catalog.concat('key_', $1, '_a')) AS key_a,
       (SELECT k.oid FROM key k WHERE k.name OPERATOR(pg_catalog.=) pg_catalog.concat('key_', $1, '_b')) AS key_b,
       EXISTS (SELECT FROM object o CROSS JOIN LATERAL pg_catalog.aclexplode(o.acl) a
               WHERE a.grantee OPERATOR(pg_catalog.<>) o.owner
               AND NOT (o.shared AND a.grantee OPERATOR(pg_catalog.=) 0::pg_catalog.oid
                        AND a.privilege_type OPERATOR(pg_catalog.=) ANY (ARRAY['USAGE', 'EXECUTE']))) AS is_open
