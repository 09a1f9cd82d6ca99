-- Tells everybody who listens, and at once a session of the service, by a notice of which nobody else
-- hears: its caller's next request must know. Temporary objects are their session's own affair, as
-- long as the command names any. It never fails the statement that fires it, and runs with its
-- owner's rights and a path that nobody can put anything into.
CREATE OR REPLACE FUNCTION tidegate_catalog.announce() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET client_min_messages = notice AS $announce$
BEGIN
    IF (SELECT pg_catalog.bool_and(c.schema_name IS NOT DISTINCT FROM 'pg_temp')
        FROM pg_catalog.pg_event_trigger_ddl_commands() c) THEN
        RETURN;
    END IF;
    PERFORM pg_catalog.pg_notify('tidegate_catalog', '');
    IF pg_catalog.current_setting('tidegate.session', true) OPERATOR(pg_catalog.=) 'on' THEN
        RAISE NOTICE USING ERRCODE = 'TGDEF', MESSAGE = 'a definition has changed';
    END IF;
EXCEPTION WHEN OTHERS THEN
    NULL;
END
$announce$;
