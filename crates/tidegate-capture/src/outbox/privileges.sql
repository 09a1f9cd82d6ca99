-- Revokes the privileges on the outbox that come from default privileges of the database. Otherwise
-- the owner of an adopted database could change and create events, because it gets privileges on
-- everything that the administrator creates there.
DO $own$
DECLARE
    grantee pg_catalog.text;
BEGIN
    FOR grantee IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC'
            ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END
        FROM (
            SELECT nspacl AS acl, nspowner AS owner FROM pg_catalog.pg_namespace
            WHERE nspname OPERATOR(pg_catalog.=) 'tidegate_outbox'
            UNION ALL
            SELECT relacl, relowner FROM pg_catalog.pg_class
            WHERE relnamespace OPERATOR(pg_catalog.=) 'tidegate_outbox'::pg_catalog.regnamespace
            UNION ALL
            SELECT proacl, proowner FROM pg_catalog.pg_proc
            WHERE pronamespace OPERATOR(pg_catalog.=) 'tidegate_outbox'::pg_catalog.regnamespace
        ) o CROSS JOIN LATERAL pg_catalog.aclexplode(o.acl) a
        WHERE a.grantee OPERATOR(pg_catalog.<>) o.owner
    LOOP
        EXECUTE pg_catalog.concat('REVOKE ALL ON ALL TABLES IN SCHEMA tidegate_outbox FROM ', grantee, ' CASCADE');
        EXECUTE pg_catalog.concat('REVOKE ALL ON ALL SEQUENCES IN SCHEMA tidegate_outbox FROM ', grantee, ' CASCADE');
        EXECUTE pg_catalog.concat('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tidegate_outbox FROM ', grantee, ' CASCADE');
        EXECUTE pg_catalog.concat('REVOKE ALL ON SCHEMA tidegate_outbox FROM ', grantee, ' CASCADE');
    END LOOP;
END
$own$
