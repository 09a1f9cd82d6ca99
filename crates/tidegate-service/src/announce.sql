-- Makes a database notify nodes when a definition or a privilege has changed (PostgreSQL, "Event
-- Triggers").
--
-- Fails if the schema exists already. The owner of an existing schema could replace the code that
-- the trigger calls.
BEGIN;
CREATE SCHEMA tidegate_catalog;
