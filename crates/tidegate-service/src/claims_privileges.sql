-- Lets every role call the functions in the schema tidegate. Revokes all other privileges on the
-- two schemas from other roles than the service's, including those that come from default
-- privileges of the database. Changes nothing if the privileges are right already.
GRANT USAGE ON SCHEMA tidegate TO PUBLIC;
GRANT EXECUTE ON FUNCTION tidegate.user_id(), tidegate.claims(), tidegate.claim(pg_catalog.text) TO PUBLIC;
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
            SELECT pg_catalog.concat('SCHEMA ', n.nspname) AS name, n.nspowner AS owner, n.nspacl AS acl
            UNION ALL
            SELECT pg_catalog.format('%s %I.%I', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
                n.nspname, c.relname), c.relowner, c.relacl
            FROM pg_catalog.pg_class c
            WHERE c.relnamespace OPERATOR(pg_catalog.=) n.oid
            AND c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'S']::pg_catalog."char"[])
            UNION ALL
            SELECT pg_catalog.format('FUNCTION %I.%I(%s)', n.nspname, p.proname,
                pg_catalog.pg_get_function_identity_arguments(p.oid)), p.proowner,
                coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))
            FROM pg_catalog.pg_proc p
            WHERE p.pronamespace OPERATOR(pg_catalog.=) n.oid
        ) o
        CROSS JOIN LATERAL pg_catalog.aclexplode(o.acl) a
        WHERE n.nspname OPERATOR(pg_catalog.=) ANY (ARRAY['tidegate', 'tidegate_private']::pg_catalog.name[])
        AND a.grantee OPERATOR(pg_catalog.<>) o.owner
        AND NOT (n.nspname OPERATOR(pg_catalog.=) 'tidegate'
                 AND a.grantee OPERATOR(pg_catalog.=) 0::pg_catalog.oid
                 AND a.privilege_type OPERATOR(pg_catalog.=) ANY (ARRAY['USAGE', 'EXECUTE']))
    LOOP
        EXECUTE statement;
    END LOOP;
END
$own$;
