-- Drops the service's event trigger in a database that is no longer served. If the schema
-- tidegate_catalog contains objects of others, keeps the schema with all its objects.
DO $forget$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_event_trigger e
               WHERE e.evtname OPERATOR(pg_catalog.=) 'tidegate_catalog'
               AND pg_catalog.pg_has_role(e.evtowner, 'USAGE')) THEN
        DROP EVENT TRIGGER tidegate_catalog;
        BEGIN
            DROP FUNCTION IF EXISTS tidegate_catalog.announce();
            DROP TABLE IF EXISTS tidegate_catalog.objections;
            DROP SCHEMA IF EXISTS tidegate_catalog;
        EXCEPTION WHEN dependent_objects_still_exist THEN
            NULL;
        END;
    END IF;
END
$forget$
;
-- Drops the functions of claims too, unless a policy or another object of the database depends on
-- one of them and would fail without it. Functions that are kept return NULL and no claims.
DO $forget_claims$
BEGIN
    IF (SELECT pg_catalog.count(*) FROM pg_catalog.pg_namespace n
        JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) n.nspowner
        JOIN pg_catalog.pg_roles m ON m.rolname OPERATOR(pg_catalog.=) current_user
        WHERE n.nspname OPERATOR(pg_catalog.=) ANY (ARRAY['tidegate', 'tidegate_private']::pg_catalog.name[])
        AND (r.oid OPERATOR(pg_catalog.=) m.oid OR m.rolsuper AND r.rolsuper)) OPERATOR(pg_catalog.=) 2 THEN
        IF pg_catalog.to_regclass('tidegate_private.identities') IS NOT NULL THEN
            DELETE FROM tidegate_private.identities;
        END IF;
        BEGIN
            DROP FUNCTION IF EXISTS tidegate.claim(pg_catalog.text), tidegate.claims(), tidegate.user_id();
            DROP SCHEMA tidegate;
            DROP SCHEMA tidegate_private CASCADE;
        EXCEPTION WHEN dependent_objects_still_exist THEN
            NULL;
        END;
    END IF;
END
$forget_claims$
