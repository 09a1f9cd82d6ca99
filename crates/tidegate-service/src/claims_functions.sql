-- The functions that policies call. ADR 0012 explains them.
--
-- A request of a member runs on a connection that logged in as the member's group. Before its
-- statements, in the same transaction, the service sets two settings:
--
--   tidegate.identity = head: SHA-256 of the claims in hex, then the user's id
--   tidegate.claims   = seal, then the claims as JSON
--
--   seal  = SHA-256 of (token, start of the transaction as 8 bytes), in hex
--   token = SHA-384 of (key, backend pid as 4 bytes, head); the service computes it
--
-- The token is a parameter of a statement, which SQL cannot read, and the seal is valid for one
-- transaction of one backend. SHA-384 is a truncated SHA-512, which has no length extension, so the
-- hash of the key and the message is a secure MAC.
--
-- The functions that policies call have one expression each and no SET search_path, because
-- PostgreSQL initialises each expression again in each transaction, and a SET costs as much as the
-- check. Therefore every name is qualified, including operators.

-- The role as which the statements of a user with a role run. A caller's code cannot change
-- session_user, and sessions of an authenticator run no code of callers (ADR 0004). Fails in a
-- session of a group, which always needs a seal. If claims without a seal were NULL instead, they
-- would satisfy a policy such as tidegate.claim('blocked') IS NULL.
CREATE OR REPLACE FUNCTION tidegate_private.user_role() RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $tidegate$
DECLARE
    tenant CONSTANT pg_catalog.text := pg_catalog.current_database();
BEGIN
    IF pg_catalog.starts_with(session_user, pg_catalog.concat(tenant, '/group/')) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = 'the claims of this transaction are missing or were not set by Tidegate';
    END IF;
    IF pg_catalog.starts_with(session_user, pg_catalog.concat(tenant, '/$authenticator')) THEN
        RETURN pg_catalog.current_setting('role');
    END IF;
    RETURN session_user;
END
$tidegate$;
CREATE OR REPLACE FUNCTION tidegate_private.role_user_id() RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $tidegate$
DECLARE
    caller CONSTANT pg_catalog.text := tidegate_private.user_role();
    prefix CONSTANT pg_catalog.text := pg_catalog.concat(pg_catalog.current_database(), '/');
    found_id pg_catalog.text;
BEGIN
    SELECT i.user_id INTO found_id FROM tidegate_private.identities i
    WHERE i.role OPERATOR(pg_catalog.=) caller::pg_catalog.name;
    IF FOUND THEN
        RETURN found_id;
    END IF;
    IF pg_catalog.starts_with(caller, prefix) THEN
        RETURN pg_catalog.substr(caller, pg_catalog.length(prefix) OPERATOR(pg_catalog.+) 1);
    END IF;
    RETURN NULL;
END
$tidegate$;
CREATE OR REPLACE FUNCTION tidegate_private.role_claims() RETURNS pg_catalog.jsonb
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $tidegate$
DECLARE
    caller CONSTANT pg_catalog.text := tidegate_private.user_role();
BEGIN
    RETURN coalesce((SELECT i.claims FROM tidegate_private.identities i
        WHERE i.role OPERATOR(pg_catalog.=) caller::pg_catalog.name), '{}'::pg_catalog.jsonb);
END
$tidegate$;

-- If the key is missing, the seal is NULL, because byteacat and int8send are strict. The key is
-- missing if its sequences have no value, for example after a restore of definitions without data.
-- Never pass the key to concat(), which ignores NULL.
CREATE OR REPLACE FUNCTION tidegate.user_id() RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER COST 100 AS $tidegate$
-- Version 1, generation {generation}.
BEGIN
    RETURN CASE WHEN pg_catalog.starts_with(pg_catalog.current_setting('tidegate.claims', true),
        pg_catalog.encode(pg_catalog.sha256(pg_catalog.byteacat(
            pg_catalog.sha384(pg_catalog.byteacat(pg_catalog.byteacat(
                pg_catalog.int8send(pg_catalog.pg_sequence_last_value('tidegate_private.key_{generation}_a'::pg_catalog.regclass)),
                pg_catalog.int8send(pg_catalog.pg_sequence_last_value('tidegate_private.key_{generation}_b'::pg_catalog.regclass))),
                pg_catalog.byteacat(pg_catalog.int4send(pg_catalog.pg_backend_pid()),
                    pg_catalog.convert_to(pg_catalog.current_setting('tidegate.identity', true), 'UTF8')))),
            pg_catalog.timestamptz_send(pg_catalog.now()))), 'hex'))
    THEN pg_catalog.substr(pg_catalog.current_setting('tidegate.identity', true), 65)
    ELSE tidegate_private.role_user_id() END;
END
$tidegate$;
CREATE OR REPLACE FUNCTION tidegate.claims() RETURNS pg_catalog.jsonb
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER COST 100 AS $tidegate$
-- Version 1, generation {generation}.
BEGIN
    RETURN CASE WHEN pg_catalog.starts_with(pg_catalog.current_setting('tidegate.claims', true),
        pg_catalog.encode(pg_catalog.sha256(pg_catalog.byteacat(
            pg_catalog.sha384(pg_catalog.byteacat(pg_catalog.byteacat(
                pg_catalog.int8send(pg_catalog.pg_sequence_last_value('tidegate_private.key_{generation}_a'::pg_catalog.regclass)),
                pg_catalog.int8send(pg_catalog.pg_sequence_last_value('tidegate_private.key_{generation}_b'::pg_catalog.regclass))),
                pg_catalog.byteacat(pg_catalog.int4send(pg_catalog.pg_backend_pid()),
                    pg_catalog.convert_to(pg_catalog.current_setting('tidegate.identity', true), 'UTF8')))),
            pg_catalog.timestamptz_send(pg_catalog.now()))), 'hex'))
        AND pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(
            pg_catalog.substr(pg_catalog.current_setting('tidegate.claims', true), 65), 'UTF8')), 'hex')
            OPERATOR(pg_catalog.=) pg_catalog.substr(pg_catalog.current_setting('tidegate.identity', true), 1, 64)
    THEN pg_catalog.substr(pg_catalog.current_setting('tidegate.claims', true), 65)::pg_catalog.jsonb
    ELSE tidegate_private.role_claims() END;
END
$tidegate$;
-- The planner replaces a call by the body of this function.
CREATE OR REPLACE FUNCTION tidegate.claim(name pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE sql STABLE PARALLEL RESTRICTED AS $tidegate$
    SELECT tidegate.claims() OPERATOR(pg_catalog.->>) $1
$tidegate$;
