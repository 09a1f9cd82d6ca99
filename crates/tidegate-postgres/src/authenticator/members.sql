-- Selects the users of this database that may use an authenticator, with the authenticator's name
-- and the number of seconds for which they may log in (empty without a limit). A role switch does
-- not apply the rules of a login, such as an expired password or settings of the role. Therefore
-- users to which such rules apply are left out and log in themselves.
WITH granted (oid) AS (
    SELECT DISTINCT a.grantee
    FROM pg_catalog.pg_database d
    CROSS JOIN LATERAL pg_catalog.aclexplode(
        -- The || copies the array out of its TOAST table once. Otherwise aclexplode would copy it
        -- for each of its rows.
        coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba)) || '{}') a
    WHERE d.datname = pg_catalog.current_database() AND a.privilege_type = 'CONNECT'
), entitled (oid) AS MATERIALIZED (
    -- The roles that may connect by a grant to themselves, or because they inherit from a role with
    -- a grant, such as the role of all users. Since PostgreSQL 16 `inherit_option` of the
    -- membership decides whether the member inherits. Before, `rolinherit` of the member decides,
    -- and the name `inherit_option` refers to the NULL of `fallback`.
    SELECT g.oid FROM granted g
    UNION
    SELECT m.member
    FROM (SELECT NULL::pg_catalog.bool) fallback (inherit_option)
    CROSS JOIN LATERAL (
        SELECT m.roleid, m.member, inherit_option AS inherits FROM pg_catalog.pg_auth_members m) m
    JOIN granted g ON g.oid = m.roleid
    JOIN pg_catalog.pg_roles r ON r.oid = m.member
    WHERE coalesce(m.inherits, r.rolinherit) /* of new users */
), login AS NOT MATERIALIZED (
    SELECT r.* FROM pg_catalog.pg_roles r
    WHERE pg_catalog.starts_with(r.rolname::text, pg_catalog.current_database() || '/')
      AND r.rolcanlogin AND r.rolconnlimit <> 0
      AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls)
      AND (r.oid IN (SELECT e.oid FROM entitled e)
           OR EXISTS (SELECT FROM granted g WHERE g.oid = 0))
      AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_db_role_setting s
          JOIN pg_catalog.pg_database d ON s.setdatabase IN (0, d.oid)
          WHERE s.setrole = r.oid AND d.datname = pg_catalog.current_database())
), closed AS (
    SELECT n.oid FROM pg_catalog.pg_namespace n
    WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS (
        SELECT FROM pg_catalog.aclexplode(
            coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner)) || '{}') p
        WHERE p.grantee = 0 AND p.privilege_type = 'USAGE')
), incomplete (grantee, schema) AS MATERIALIZED (
    -- PostgreSQL checks USAGE on a schema only when it parses a statement, which then stays
    -- prepared for all users. Therefore users that have a privilege on a table but not on its
    -- schema must log in themselves. This part selects the grantees of such privileges.
    SELECT g.grantee, g.schema FROM (
        SELECT DISTINCT a.grantee, n.oid
        FROM closed n
        JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid
        CROSS JOIN LATERAL (
            -- aclexplode() rejects an empty array, which is the result of NULL || '{}'.
            SELECT c.relacl WHERE c.relacl IS NOT NULL UNION ALL
            SELECT t.attacl FROM pg_catalog.pg_attribute t
            WHERE t.attrelid = c.oid AND t.attacl IS NOT NULL) l (acl)
        CROSS JOIN LATERAL pg_catalog.aclexplode(l.acl || '{}') a
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.grantee <> c.relowner
    ) g (grantee, schema)
    WHERE CASE WHEN g.grantee = 0 THEN true
               ELSE NOT pg_catalog.has_schema_privilege(g.grantee, g.schema, 'USAGE') END
), place AS (
    SELECT pg_catalog.to_regnamespace('tidegate_catalog')::pg_catalog.oid AS schema,
           pg_catalog.to_regclass('tidegate_catalog.objections')::pg_catalog.oid AS objections
)
SELECT u.rolname::text, a.rolname::text,
       coalesce(pg_catalog.date_part('epoch', CASE WHEN pg_catalog.isfinite(u.rolvaliduntil)
           THEN u.rolvaliduntil - pg_catalog.now() END)::text, '')
FROM login a
JOIN pg_catalog.pg_auth_members m ON m.member = a.oid
-- OFFSET 0 makes PostgreSQL look up each member by an index. For a plain join it would expect few
-- rows, and compare each member with each user.
CROSS JOIN LATERAL (SELECT l.* FROM login l WHERE l.oid = m.roleid OFFSET 0) u
CROSS JOIN place p
WHERE pg_catalog.starts_with(a.rolname::text, pg_catalog.current_database() || '/$authenticator')
  AND pg_catalog.strpos(u.rolname::text, '/$') = 0
  AND NOT a.rolinherit AND coalesce(a.rolvaliduntil, 'infinity') = 'infinity'
  AND pg_catalog.starts_with(pg_catalog.shobj_description(a.oid, 'pg_authid'), :mark::pg_catalog.text)
  AND pg_catalog.has_schema_privilege(a.oid, p.schema, 'USAGE')
  AND pg_catalog.has_table_privilege(a.oid, p.objections, 'SELECT')
  -- Since PostgreSQL 16 a membership may lack this option.
  AND coalesce((pg_catalog.to_jsonb(m) ->> 'set_option')::pg_catalog.bool, true)
  AND (u.rolvaliduntil IS NULL OR u.rolvaliduntil > pg_catalog.now())
  AND NOT EXISTS (
      SELECT FROM incomplete i
      WHERE NOT pg_catalog.has_schema_privilege(u.oid, i.schema, 'USAGE')
        AND CASE WHEN i.grantee = 0 THEN true
                 ELSE pg_catalog.pg_has_role(u.oid, i.grantee, 'USAGE') END)
  /* new users */
