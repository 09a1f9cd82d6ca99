-- Tells everybody who listens, and at once a session of the service, by a notice of which nobody else
-- hears: its caller's next request must know. Temporary objects are their session's own affair, as
-- long as the command names any. It runs with its owner's rights and a path that nobody can put
-- anything into, and fails the statement that fires it only when the objection cannot be written.
--
-- The objection withdraws the trust in shared connections in the definition's own transaction, so
-- that no node can act on an older decision. Grants to a new user, which the service makes with
-- `tidegate.provisioning`, change nothing that the decision depends on, nor anything that a node
-- knows of other users: they are not announced. Only a superuser's session is trusted with that.
CREATE OR REPLACE FUNCTION tidegate_catalog.announce() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET client_min_messages = notice AS $announce$
DECLARE
    defined pg_catalog.bool;
    provisioned pg_catalog.bool;
BEGIN
    SELECT pg_catalog.bool_or(c.schema_name IS DISTINCT FROM 'pg_temp') INTO defined
    FROM pg_catalog.pg_event_trigger_ddl_commands() c;
    IF NOT defined THEN
        RETURN;
    END IF;
    -- Nothing was made, or not known, where a command only drops.
    IF defined THEN
        SELECT r.rolsuper INTO provisioned FROM pg_catalog.pg_roles r
        WHERE r.rolname OPERATOR(pg_catalog.=) session_user
          AND coalesce(pg_catalog.current_setting('tidegate.provisioning', true), '')
              OPERATOR(pg_catalog.=) 'on';
        IF provisioned THEN
            RETURN;
        END IF;
        BEGIN
            INSERT INTO tidegate_catalog.objections (tx) VALUES (pg_catalog.pg_current_xact_id())
            ON CONFLICT DO NOTHING;
        EXCEPTION WHEN undefined_table THEN
            -- Without the table no connection is shared.
            NULL;
        END;
    END IF;
    BEGIN
        PERFORM pg_catalog.pg_notify('tidegate_catalog', '');
        IF pg_catalog.current_setting('tidegate.session', true) OPERATOR(pg_catalog.=) 'on' THEN
            RAISE NOTICE USING ERRCODE = 'TGDEF', MESSAGE = 'a definition has changed';
        END IF;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
END
$announce$;
