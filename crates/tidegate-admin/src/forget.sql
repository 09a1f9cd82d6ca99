-- Takes our event trigger out of a database that is served no more. What others have put into the
-- schema stays, and the schema with it.
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
