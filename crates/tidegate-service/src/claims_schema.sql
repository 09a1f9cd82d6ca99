-- The schemas of tidegate.user_id(), tidegate.claims() and tidegate.claim(text), the sequences with
-- the key of generation {generation}, and the identities of users with a role. CREATE SCHEMA IF NOT
-- EXISTS is not used, because it needs CREATE on the database even if the schema exists.
DO $schemas$
BEGIN
    IF pg_catalog.to_regnamespace('tidegate_private') IS NULL THEN
        CREATE SCHEMA tidegate_private;
    END IF;
    IF pg_catalog.to_regnamespace('tidegate') IS NULL THEN
        CREATE SCHEMA tidegate;
    END IF;
END
$schemas$;
-- The key is in sequences because pg_sequence_last_value() reads one without running a query, after
-- a check of the reader's right: 0.15 us instead of 4 us.
CREATE SEQUENCE IF NOT EXISTS tidegate_private.key_{generation}_a MINVALUE -9223372036854775808 START 1;
CREATE SEQUENCE IF NOT EXISTS tidegate_private.key_{generation}_b MINVALUE -9223372036854775808 START 1;
-- The users that have claims, or an id other than the name after the slash. The default user has no
-- id.
CREATE TABLE IF NOT EXISTS tidegate_private.identities (
    role pg_catalog.name PRIMARY KEY,
    user_id pg_catalog.text,
    claims pg_catalog.jsonb NOT NULL DEFAULT '{}'
);
