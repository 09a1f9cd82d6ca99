-- Notifies everybody who listens, and by a notice the service's own session that ran the definition:
-- the caller's next request must know. Temporary objects are their session's own, as long as the
-- command names any. It runs with its owner's rights and with a path of schemas that only the service may write to.
-- Apart from what is said below it fails no statement.
--
-- The row in `objections` ends the sharing of connections in the definition's own transaction, so
-- that no node can act on an older decision. Grants to a new user, which the service makes with
-- `tidegate.provisioning`, change nothing that the decision depends on, nor anything that a node
-- knows of other users: they are not announced. The setting counts only in a superuser's session.
--
-- A session of a tenant's user is treated apart. If, with what it has defined, the decision would be
-- to share (`harmless`, see decide.sql), nothing is written, so that users cannot end the sharing for
-- others by grants that change nothing. Otherwise its code must not run in a transaction that has
-- switched to another user already, such as one that waits for a lock that this session holds:
--
-- - Where a row is committed, no switch succeeds any more. The lock on the row keeps a decision from
--   removing it before this transaction ends. Nothing else is needed once no authenticator has a
--   transaction that may have begun before.
-- - Otherwise the lock on the table waits for the transactions that have switched, because each has
--   read the table, and holds up new ones until this transaction ends. It fails soon: the
--   transaction that it waits for may wait for this one.
CREATE OR REPLACE FUNCTION tidegate_catalog.announce() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET client_min_messages = notice AS $announce$
-- Version 3.
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
    -- Nothing was made, or not known, where a command only drops.
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
            -- Such a transaction does not see what others have granted since it began.
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
                    -- A decision may have replaced the row while this waited for it. The new one
                    -- is in the next snapshot.
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
