-- Revokes the privileges of other roles on the service's schema, which come from default privileges
-- of the database. Otherwise another role could create objects in the schema that look like the
-- service's own. Only authenticators may read the objections. Changes nothing if there are no such
-- privileges.
DO $own$
DECLARE
    statement pg_catalog.text;
BEGIN
    FOR statement IN
        SELECT DISTINCT pg_catalog.concat('REVOKE ALL ON ', o.name, ' FROM ',
            CASE a.grantee WHEN 0 THEN 'PUBLIC'
            ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END, ' CASCADE')
        FROM pg_catalog.pg_namespace n
        CROSS JOIN LATERAL (
            SELECT 'SCHEMA tidegate_catalog' AS name, n.nspacl AS acl, n.nspowner AS owner, 'USAGE' AS needed
            UNION ALL
            SELECT 'TABLE tidegate_catalog.objections', c.relacl, c.relowner, 'SELECT'
            FROM pg_catalog.pg_class c
            WHERE c.relnamespace OPERATOR(pg_catalog.=) n.oid
            AND c.relname OPERATOR(pg_catalog.=) 'objections'
            UNION ALL
            -- PUBLIC keeps EXECUTE: only PostgreSQL can call an event trigger function.
            SELECT 'FUNCTION tidegate_catalog.announce()', p.proacl, p.proowner, 'EXECUTE'
            FROM pg_catalog.pg_proc p
            WHERE p.pronamespace OPERATOR(pg_catalog.=) n.oid
            AND p.proname OPERATOR(pg_catalog.=) 'announce'
        ) o
        CROSS JOIN LATERAL pg_catalog.aclexplode(o.acl) a
        WHERE n.nspname OPERATOR(pg_catalog.=) 'tidegate_catalog'
        AND a.grantee OPERATOR(pg_catalog.<>) o.owner
        AND NOT (o.needed OPERATOR(pg_catalog.=) 'EXECUTE'
                 AND a.grantee OPERATOR(pg_catalog.=) 0::pg_catalog.oid)
        AND NOT (a.privilege_type OPERATOR(pg_catalog.=) o.needed AND NOT a.is_grantable
                 AND pg_catalog.starts_with(pg_catalog.pg_get_userbyid(a.grantee)::pg_catalog.text,
                     pg_catalog.concat(pg_catalog.current_database(), '/$authenticator')))
    LOOP
        EXECUTE statement;
    END LOOP;
END
$own$
