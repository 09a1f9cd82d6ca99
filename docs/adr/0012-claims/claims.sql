-- tidegate.user_id(), tidegate.claims(), tidegate.claim(text): prototype for issue 20.
-- Run by the service's role; no superuser (CREATE on the database is enough). PostgreSQL 13 to 18.
-- psql variables: key_a, key_b (64 random bits each, signed, not 0), generation (such as 1).
--
-- A request of a member runs on a connection that logged in as the member's group, behind PREFIX in
-- the same transaction:
--
--   SELECT pg_catalog.set_config('tidegate.identity', pg_catalog.textcat(pg_catalog.encode(pg_catalog.sha256(
--            pg_catalog.byteacat($1::bytea, pg_catalog.timestamptz_send(pg_catalog.now()))), 'hex'), $2::text), true) IS NULL,
--          pg_catalog.set_config('tidegate.claims', $3::text, true) IS NULL
--
--   $3 claims  a JSON object
--   $2 head    = SHA-256(claims) in hex || user id
--   $1 token   = SHA-384(key_a || key_b || pid '|' head): keys as 8 bytes each, big endian; pid in
--                decimal, that of the backend (BackendKeyData)
--   seal       = SHA-256(token || now() as 8 bytes), in hex
--
-- user_id() reads the head only, so that it costs the same however large the claims are.
-- The token is a parameter of a statement and nothing else: SQL cannot read it. The seal is worth
-- nothing in another transaction or backend. SHA-384 is a truncated SHA-512, so that a key in front
-- of the message is a sound MAC (no length extension).
BEGIN;
CREATE SCHEMA IF NOT EXISTS tidegate_private;
CREATE SCHEMA IF NOT EXISTS tidegate;
GRANT USAGE ON SCHEMA tidegate TO PUBLIC;

-- The key: sequences, because pg_sequence_last_value() reads one without running a query (0.15 us;
-- a query costs 4 us), after a check of the reader's right.
SELECT pg_catalog.concat('key_', :'generation', '_a') AS seq_a, pg_catalog.concat('key_', :'generation', '_b') AS seq_b \gset
CREATE SEQUENCE tidegate_private.:"seq_a" MINVALUE -9223372036854775808 START 1;
CREATE SEQUENCE tidegate_private.:"seq_b" MINVALUE -9223372036854775808 START 1;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA tidegate_private FROM PUBLIC;
SELECT pg_catalog.setval(pg_catalog.format('tidegate_private.%I', :'seq_a')::regclass, :'key_a'::int8) IS NULL,
       pg_catalog.setval(pg_catalog.format('tidegate_private.%I', :'seq_b')::regclass, :'key_b'::int8) IS NULL \g /dev/null

-- Users with a role whose id is not the name behind the slash or who have claims, the default user
-- (no id), the owner.
CREATE TABLE IF NOT EXISTS tidegate_private.identities (
    role pg_catalog.name PRIMARY KEY,
    user_id pg_catalog.text,
    claims pg_catalog.jsonb NOT NULL DEFAULT '{}'
);
REVOKE ALL ON TABLE tidegate_private.identities FROM PUBLIC;

-- The role as which the session's user acts, where users act as roles. Code of a caller cannot change
-- session_user; an authenticator's sessions run no code of callers (ADR 0004).
CREATE OR REPLACE FUNCTION tidegate_private.user_role() RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $f$
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
$f$;
CREATE OR REPLACE FUNCTION tidegate_private.role_user_id() RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $f$
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
$f$;
CREATE OR REPLACE FUNCTION tidegate_private.role_claims() RETURNS pg_catalog.jsonb
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $f$
DECLARE
    caller CONSTANT pg_catalog.text := tidegate_private.user_role();
BEGIN
    RETURN coalesce((SELECT i.claims FROM tidegate_private.identities i
        WHERE i.role OPERATOR(pg_catalog.=) caller::pg_catalog.name), '{}'::pg_catalog.jsonb);
END
$f$;
REVOKE ALL ON FUNCTION tidegate_private.user_role(), tidegate_private.role_user_id(), tidegate_private.role_claims() FROM PUBLIC;

-- A key that is missing (a sequence without a value, as a dump of the schema alone restores it) makes
-- the seal NULL, because byteacat and int8send are strict: never put the key into concat().
-- One expression each and no SET search_path: PostgreSQL initialises each expression again in each
-- transaction, and a SET costs as much as the check. So every name is qualified, operators too.
SELECT pg_catalog.format($q$
CREATE OR REPLACE FUNCTION tidegate.%1$s() RETURNS pg_catalog.%2$s
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER COST 100 AS $f$
BEGIN
    RETURN CASE WHEN pg_catalog.starts_with(pg_catalog.current_setting('tidegate.identity', true),
        pg_catalog.encode(pg_catalog.sha256(pg_catalog.byteacat(
            pg_catalog.sha384(pg_catalog.byteacat(pg_catalog.byteacat(
                pg_catalog.int8send(pg_catalog.pg_sequence_last_value('tidegate_private.%3$I'::pg_catalog.regclass)),
                pg_catalog.int8send(pg_catalog.pg_sequence_last_value('tidegate_private.%4$I'::pg_catalog.regclass))),
                pg_catalog.convert_to(pg_catalog.concat(pg_catalog.pg_backend_pid(), '|',
                    pg_catalog.substr(pg_catalog.current_setting('tidegate.identity', true), 65)), 'UTF8'))),
            pg_catalog.timestamptz_send(pg_catalog.now()))), 'hex'))%6$s
    THEN %5$s
    ELSE tidegate_private.role_%1$s() END;
END
$f$ $q$, n, t, :'seq_a', :'seq_b', result, digest)
FROM (VALUES
    ('user_id', 'text', $$pg_catalog.substr(pg_catalog.current_setting('tidegate.identity', true), 129)$$, ''),
    ('claims', 'jsonb', $$pg_catalog.current_setting('tidegate.claims', true)::pg_catalog.jsonb$$, $$
        AND pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(
            pg_catalog.current_setting('tidegate.claims', true), 'UTF8')), 'hex')
        OPERATOR(pg_catalog.=) pg_catalog.substr(pg_catalog.current_setting('tidegate.identity', true), 65, 64)$$)
) f (n, t, result, digest) \gexec

-- PostgreSQL puts the body in place of a call when it plans.
CREATE OR REPLACE FUNCTION tidegate.claim(name pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE sql STABLE PARALLEL RESTRICTED AS $f$
    SELECT tidegate.claims() OPERATOR(pg_catalog.->>) $1
$f$;
COMMIT;
