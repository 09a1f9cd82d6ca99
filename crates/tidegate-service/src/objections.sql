-- The reasons why users of the database may not share connections; they may if the table is empty.
-- A row without a reason stands for a definition or a grant since the last decision. Initially the
-- table has such a row, because nothing has been decided yet.
DO $objections$
BEGIN
    IF pg_catalog.to_regclass('tidegate_catalog.objections') IS NULL THEN
        CREATE TABLE tidegate_catalog.objections (
            tx pg_catalog.xid8 PRIMARY KEY,
            reason pg_catalog.text
        ) WITH (autovacuum_vacuum_threshold = 20, autovacuum_vacuum_scale_factor = 0);
        INSERT INTO tidegate_catalog.objections (tx) VALUES (pg_catalog.pg_current_xact_id());
    END IF;
END
$objections$;
