-- Takes from everybody else what default privileges of the database gave on what is ours: whoever
-- could make things in the schema would have them among ours. Changes nothing where nothing is so.
DO $own$
DECLARE
    grantee pg_catalog.text;
BEGIN
    FOR grantee IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC'
                        ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END
        FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a
        WHERE n.nspname OPERATOR(pg_catalog.=) 'tidegate_catalog'
        AND a.grantee OPERATOR(pg_catalog.<>) n.nspowner
    LOOP
        EXECUTE 'REVOKE ALL ON SCHEMA tidegate_catalog FROM ' OPERATOR(pg_catalog.||) grantee OPERATOR(pg_catalog.||) ' CASCADE';
    END LOOP;
    FOR grantee IN
        SELECT DISTINCT pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee))
        FROM pg_catalog.pg_proc p
        JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace,
        pg_catalog.aclexplode(p.proacl) a
        WHERE n.nspname OPERATOR(pg_catalog.=) 'tidegate_catalog'
        AND p.proname OPERATOR(pg_catalog.=) 'announce'
        AND a.grantee OPERATOR(pg_catalog.<>) 0::pg_catalog.oid
        AND a.grantee OPERATOR(pg_catalog.<>) p.proowner
    LOOP
        EXECUTE 'REVOKE ALL ON FUNCTION tidegate_catalog.announce() FROM ' OPERATOR(pg_catalog.||) grantee OPERATOR(pg_catalog.||) ' CASCADE';
    END LOOP;
END
$own$
