-- Lets a database tell that a definition or a right has changed (PostgreSQL, "Event Triggers").
--
-- The schema is made here or not at all: in one that somebody else made before, that somebody could
-- put code of his own behind the trigger. The function never fails the statement that fires it, and
-- runs with its owner's rights and a path that nobody can put anything into.
BEGIN;
CREATE SCHEMA tidegate_catalog;
CREATE FUNCTION tidegate_catalog.announce() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $announce$
BEGIN
    PERFORM pg_catalog.pg_notify('tidegate_catalog', '');
EXCEPTION WHEN OTHERS THEN
    NULL;
END
$announce$;
CREATE EVENT TRIGGER tidegate_catalog ON ddl_command_end
    EXECUTE FUNCTION tidegate_catalog.announce();
