-- Notifies all listening nodes. A notice also informs the service's session that ran the
-- definition, so that the caller's next request sees the change. Temporary objects belong to their
-- session and are not reported if the command names only such objects. The function runs with its
-- owner's privileges, and its search path has only schemas that no other role may write to. It
-- makes no statement fail except as described below.
--
-- The row in `objections` ends the sharing of connections in the transaction of the definition, so
-- that no node can act on an older decision. Grants to a new user, which the service makes with the
-- setting `tidegate.provisioning`, are not announced. They affect neither the decision nor the data
-- that nodes cache about other users. The setting only counts in a superuser's session.
--
-- A session of a tenant's user is treated differently. If the decision with the new definition
-- would still be to share (`harmless`, see decide.sql), nothing is written. Therefore users cannot
-- end the sharing by grants that change nothing. Otherwise the user's code must not run in a
-- transaction that has already switched to another user, for example one that waits for a lock of
-- this session:
--
-- - If a row is committed already, no role switch succeeds any more. The lock on the row prevents a
--   decision from removing it before this transaction ends. This is enough if no session of an
--   authenticator is in a transaction.
-- - Otherwise this function locks the table. It waits for the transactions that have switched,
--   because each of them has read the table, and new ones wait until this transaction ends. The
--   lock has a short timeout, because a transaction that it waits for may wait for this one.
CREATE OR REPLACE FUNCTION tidegate_catalog.announce() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET client_min_messages = notice AS $announce$
-- Version 5.
DECLARE
    defined pg_catalog.bool;
    provisioned pg_catalog.bool;
    is_user pg_catalog.bool;
    harmless pg_catalog.bool := false;
    excluded pg_catalog.bool := false;
    lock_limit pg_catalog.text;
BEGIN
    SELECT pg_catalog.bool_or(c.schema_name IS DISTINCT FROM 'pg_temp') INTO defined
    FROM pg_catalog.pg_event_trigger_ddl_commands() c;
    IF NOT defined THEN
        RETURN;
    END IF;
    -- For a command that only drops objects, `defined` is false or NULL.
    IF defined THEN
        SELECT r.rolsuper INTO provisioned FROM pg_catalog.pg_roles r
        WHERE r.rolname OPERATOR(pg_catalog.=) session_user
          AND coalesce(pg_catalog.current_setting('tidegate.provisioning', true), '')
              OPERATOR(pg_catalog.=) 'on';
        IF provisioned THEN
            RETURN;
        END IF;
        WITH RECURSIVE actor (oid) AS (
            SELECT r.oid FROM pg_catalog.pg_roles r
            WHERE r.rolname OPERATOR(pg_catalog.=) session_user
            UNION
            SELECT m.member FROM actor JOIN pg_catalog.pg_auth_members m
            ON m.roleid OPERATOR(pg_catalog.=) actor.oid
        )
        SELECT EXISTS (
            SELECT FROM actor WHERE pg_catalog.starts_with(
                pg_catalog.pg_get_userbyid(actor.oid)::pg_catalog.text,
                pg_catalog.concat(pg_catalog.current_database(), '/'))) INTO is_user;
        IF is_user THEN
            SELECT NOT EXISTS (/* decide.sql */) INTO harmless;
            -- Such a transaction does not see grants that others have made since it started.
            IF harmless AND pg_catalog.current_setting('transaction_isolation')
                OPERATOR(pg_catalog.<>) 'read committed' THEN
                RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
                    MESSAGE = 'a user''s definitions and grants need the isolation level READ COMMITTED';
            END IF;
        END IF;
    END IF;
    IF defined AND NOT harmless THEN
        BEGIN
            IF is_user THEN
                PERFORM FROM tidegate_catalog.objections o
                WHERE o.tx OPERATOR(pg_catalog.<>) pg_catalog.pg_current_xact_id()
                LIMIT 1 FOR KEY SHARE;
                IF NOT FOUND THEN
                    -- A decision may have replaced the row while this session waited for its lock.
                    -- The next snapshot contains the new row.
                    PERFORM FROM tidegate_catalog.objections o
                    WHERE o.tx OPERATOR(pg_catalog.<>) pg_catalog.pg_current_xact_id()
                    LIMIT 1 FOR KEY SHARE;
                END IF;
                IF FOUND THEN
                    PERFORM pg_catalog.pg_stat_clear_snapshot();
                    excluded := NOT EXISTS (
                        SELECT FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a
                        ON a.pid OPERATOR(pg_catalog.=) l.pid
                        WHERE l.locktype OPERATOR(pg_catalog.=) 'virtualxid'
                        AND l.mode OPERATOR(pg_catalog.=) 'ExclusiveLock'
                        AND a.pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
                        AND a.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
                        AND pg_catalog.starts_with(a.usename::pg_catalog.text, pg_catalog.concat(
                            pg_catalog.current_database(), '/$authenticator')));
                END IF;
                IF NOT excluded THEN
                    lock_limit := pg_catalog.current_setting('lock_timeout');
                    PERFORM pg_catalog.set_config('lock_timeout', '200ms', true);
                    LOCK TABLE ONLY tidegate_catalog.objections IN ACCESS EXCLUSIVE MODE;
                    PERFORM pg_catalog.set_config('lock_timeout', lock_limit, true);
                END IF;
            END IF;
            INSERT INTO tidegate_catalog.objections (tx) VALUES (pg_catalog.pg_current_xact_id())
            ON CONFLICT DO NOTHING;
        EXCEPTION WHEN undefined_table THEN
            -- If the table does not exist, no connection is shared.
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
