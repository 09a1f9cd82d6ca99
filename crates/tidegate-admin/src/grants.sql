-- Selects the grants that the roles $1 received or made, and all other grants on the same objects.
-- The other grants determine the order in which the grants of the roles $1 are revoked. $2 is the
-- comment that marks Tidegate's roles. $3 is the privilege (of pg_has_role) with which a member of
-- a role can switch to that role. $4 is true if the administrator can make itself a member of one
-- of Tidegate's roles only with the ADMIN OPTION.
WITH gone AS (
    SELECT oid FROM pg_catalog.pg_roles WHERE rolname = ANY ($1::text[])
), who AS (
    SELECT r.oid, r.rolname,
           pg_catalog.pg_has_role(current_user, r.oid, 'USAGE')
           AND pg_catalog.pg_has_role(current_user, r.oid, $3::text)
           OR coalesce(pg_catalog.shobj_description(r.oid, 'pg_authid'), '')
              LIKE ($2::text || '%')
              AND (NOT $4::bool
                   OR pg_catalog.pg_has_role(current_user, r.oid, 'USAGE WITH ADMIN OPTION'))
               AS reached
    FROM pg_catalog.pg_roles r
), objects AS (
    SELECT 'TABLE' AS kind, pg_catalog.format('%I.%I', n.nspname, c.relname) AS name, c.oid,
           0 AS sub, NULL AS part, n.oid AS schema, c.relowner AS owner, c.relacl AS acl
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    UNION ALL
    SELECT 'TABLE', pg_catalog.format('%I.%I', n.nspname, c.relname), c.oid,
           t.attnum, pg_catalog.format('%I', t.attname), n.oid, c.relowner, t.attacl
    FROM pg_catalog.pg_attribute t
    JOIN pg_catalog.pg_class c ON c.oid = t.attrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE NOT t.attisdropped
    UNION ALL
    SELECT 'ROUTINE', pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
                                        pg_catalog.oidvectortypes(p.proargtypes)),
           p.oid, 0, NULL, n.oid, p.proowner, p.proacl
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    UNION ALL
    SELECT 'TYPE', pg_catalog.format('%I.%I', n.nspname, t.typname), t.oid, 0, NULL, n.oid,
           t.typowner, t.typacl
    FROM pg_catalog.pg_type t
    JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    UNION ALL
    SELECT 'SCHEMA', pg_catalog.format('%I', nspname), oid, 0, NULL, NULL, nspowner, nspacl
    FROM pg_catalog.pg_namespace
    UNION ALL
    SELECT 'DATABASE', pg_catalog.format('%I', datname), oid, 0, NULL, NULL, datdba, datacl
    FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()
    UNION ALL
    SELECT 'LARGE OBJECT', oid::text, oid, 0, NULL, NULL, lomowner, lomacl
    FROM pg_catalog.pg_largeobject_metadata
    UNION ALL
    SELECT 'LANGUAGE', pg_catalog.format('%I', lanname), oid, 0, NULL, NULL, lanowner, lanacl
    FROM pg_catalog.pg_language
    UNION ALL
    SELECT 'FOREIGN DATA WRAPPER', pg_catalog.format('%I', fdwname), oid, 0, NULL, NULL,
           fdwowner, fdwacl
    FROM pg_catalog.pg_foreign_data_wrapper
    UNION ALL
    SELECT 'FOREIGN SERVER', pg_catalog.format('%I', srvname), oid, 0, NULL, NULL, srvowner, srvacl
    FROM pg_catalog.pg_foreign_server
), grants AS (
    SELECT o.kind, o.name, o.oid, o.sub, o.part, o.schema, o.owner,
           a.grantor, a.grantee, a.privilege_type AS privilege, a.is_grantable,
           a.grantor IN (SELECT oid FROM gone) OR a.grantee IN (SELECT oid FROM gone) AS touches
    -- The || copies the list out of its TOAST table once. Otherwise aclexplode would copy it for
    -- each of its rows.
    FROM objects o, pg_catalog.aclexplode(o.acl || '{}') a
    WHERE o.acl IS NOT NULL AND a.grantor <> a.grantee
), touched AS (
    SELECT DISTINCT kind, oid FROM grants WHERE touches
)
SELECT g.kind, g.name, g.part, g.privilege, g.is_grantable, g.touches,
       r.rolname::text AS grantor, r.reached,
       e.rolname::text AS grantee,
       w.rolname::text AS owner, w.reached AS owner_reached,
       pg_catalog.quote_ident(n.nspname) AS schema,
       s.rolname::text AS schema_owner, s.reached AS schema_reached,
       coalesce(pg_catalog.has_schema_privilege(g.grantor, g.schema, 'USAGE'), true) AS sees
FROM grants g
JOIN touched t ON t.kind = g.kind AND t.oid = g.oid
JOIN who r ON r.oid = g.grantor
JOIN who w ON w.oid = g.owner
LEFT JOIN pg_catalog.pg_roles e ON e.oid = g.grantee
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = g.schema
LEFT JOIN who s ON s.oid = n.nspowner
WHERE e.oid IS NOT NULL OR g.grantee = 0
ORDER BY g.kind, g.name, g.sub, r.rolname, e.rolname, g.privilege
