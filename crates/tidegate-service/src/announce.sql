-- Lets a database tell that a definition or a right has changed (PostgreSQL, "Event Triggers").
--
-- The schema is made here or not at all: in one that somebody else made before, that somebody could
-- put code of his own behind the trigger.
BEGIN;
CREATE SCHEMA tidegate_catalog;
