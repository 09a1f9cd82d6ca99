-- The outbox of one database. Everything belongs to the administrator; nobody else may read or
-- write it. Writers reach it through trigger functions that run as the administrator, so these
-- call nothing of a writer's: no cast, no operator, no function of another schema. `format` writes
-- a row by the output functions of its types, which only a superuser can make.

CREATE SCHEMA tidegate_outbox;
COMMENT ON SCHEMA tidegate_outbox IS 'Tidegate: the changes of tables with subscribers (version 1)';

-- The changes, in the order in which they were made. Which transactions have committed, and in
-- which order they are told, is in "commit".
CREATE TABLE tidegate_outbox.change (
    id bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) NOT NULL,
    xid xid8 NOT NULL,
    layout bigint NOT NULL,
    relation oid NOT NULL,
    -- I, U, D, T; G where a change cannot be told, and the layout is the number of the root
    operation "char" NOT NULL,
    -- the new row, or the old one of a DELETE
    image text
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    vacuum_truncate = false, toast.autovacuum_vacuum_scale_factor = 0,
    toast.autovacuum_vacuum_threshold = 20000, toast.vacuum_truncate = false
);
CREATE INDEX change_of ON tidegate_outbox.change (xid, id);

-- The transactions that have committed. Positions count bytes, so that they can be compared with
-- what may be kept.
CREATE TABLE tidegate_outbox.commit (
    position bigint PRIMARY KEY,
    xid xid8 NOT NULL,
    changes bigint NOT NULL,
    bytes bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- What the rows of a table looked like. Not unique: two writers may learn the same at once, and
-- neither must wait for the other.
CREATE TABLE tidegate_outbox.layout (
    relation oid NOT NULL,
    layout bigint NOT NULL,
    root oid NOT NULL,
    schema text NOT NULL,
    name text NOT NULL,
    columns text[] NOT NULL,
    types oid[] NOT NULL,
    generated boolean[] NOT NULL
);
CREATE INDEX layout_of ON tidegate_outbox.layout (relation, layout);

-- The tables that are captured, and from which position on without a gap; of partitioned ones the
-- partitions as they were last seen, and the position before which rows came or went with them.
CREATE TABLE tidegate_outbox.captured (
    relation oid PRIMARY KEY,
    since bigint,
    changed bigint,
    partitions text
);

CREATE TABLE tidegate_outbox.state (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    log uuid NOT NULL,
    origin text NOT NULL,
    -- where the next transaction will be told
    position bigint NOT NULL,
    -- from here on everything is kept
    earliest bigint NOT NULL,
    -- the transactions that were told, or had nothing to tell
    seen pg_catalog.pg_snapshot NOT NULL,
    -- transactions before this one may have written what was not captured
    renewed xid8 NOT NULL
) WITH (fillfactor = 10);

-- Until when, in seconds, writers fill the outbox: if nobody reads, it must not grow for ever.
-- A sequence, because every transaction sees its value of now, whatever its isolation.
CREATE SEQUENCE tidegate_outbox.lease;

-- Where this database is: a copy, or a server that went back in time, is another place.
CREATE FUNCTION tidegate_outbox.origin() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT (SELECT system_identifier FROM pg_control_system()) || '/'
        || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || '/'
        || (SELECT oid FROM pg_database WHERE datname = current_database())
$$;

INSERT INTO tidegate_outbox.state (log, origin, position, earliest, seen, renewed)
VALUES (pg_catalog.gen_random_uuid(), tidegate_outbox.origin(), 1, 1,
        pg_catalog.pg_current_snapshot(), '3');

-- Writes down what the rows of a table look like now.
CREATE FUNCTION tidegate_outbox.learn(relation oid, root oid, layout bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- Nobody makes events of a table of which theirs is no partition.
    IF root <> relation AND root IS DISTINCT FROM pg_partition_root(relation)::oid THEN
        root := relation;
    END IF;
    INSERT INTO tidegate_outbox.layout
    SELECT learn.relation, learn.layout, learn.root, n.nspname, c.relname,
        array_agg(a.attname::text ORDER BY a.attnum), array_agg(a.atttypid ORDER BY a.attnum),
        array_agg(a.attgenerated <> '' ORDER BY a.attnum)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = learn.relation AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.oid = learn.root GROUP BY n.nspname, c.relname;
END $$;

-- Whether this transaction sees another definition of a table than its rows have: from REPEATABLE
-- READ on it sees the catalog as of its beginning. These functions answer as of now. A column that
-- was only added is found by whoever reads: then there are too many values.
CREATE FUNCTION tidegate_outbox.is_stale(relation oid) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = is_stale.relation
                       AND c.relfilenode = pg_relation_filenode(c.oid))
    OR EXISTS (SELECT FROM pg_attribute a
               WHERE a.attrelid = is_stale.relation AND a.attnum > 0 AND NOT a.attisdropped
               AND a.attname::text IS DISTINCT FROM
                   (pg_identify_object_as_address(1259, a.attrelid, a.attnum)).object_names[3])
$$;

-- The trigger of rows. Its argument is the number of the table that is subscribed to, of which
-- the trigger's own may be a partition.
CREATE FUNCTION tidegate_outbox.note() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET DateStyle = 'ISO, MDY' SET TimeZone = 'UTC' SET IntervalStyle = 'postgres'
SET extra_float_digits = 1 SET bytea_output = 'hex' SET quote_all_identifiers = off
AS $$
DECLARE
    this_layout bigint;
    is_live boolean;
    is_known boolean;
    what "char" := left(TG_OP, 1);
    wide boolean;
    this_image text;
BEGIN
    IF TG_WHEN <> 'AFTER' OR TG_LEVEL <> 'ROW' THEN
        RAISE EXCEPTION 'this function serves AFTER triggers of rows';
    END IF;
    SELECT s.last_value > extract(epoch FROM clock_timestamp())::bigint, l.layout,
        EXISTS (SELECT FROM tidegate_outbox.layout k
                WHERE k.relation = TG_RELID AND k.layout = l.layout)
    INTO is_live, this_layout, is_known
    FROM tidegate_outbox.lease s, (
        SELECT (sum(hashtextextended(a.attname::text,
            (a.atttypid::bigint << 13) + (a.attnum << 1) + (a.attgenerated <> '')::int))
            % 9223372036854775807)::bigint # TG_ARGV[0]::bigint AS layout
        FROM pg_attribute a WHERE a.attrelid = TG_RELID AND a.attnum > 0) l;
    IF NOT is_live THEN
        RETURN NULL;
    END IF;
    IF this_layout IS NULL OR current_setting('transaction_isolation') IN
        ('repeatable read', 'serializable') AND tidegate_outbox.is_stale(TG_RELID) THEN
        what := 'G';
    ELSE
        wide := CASE TG_OP WHEN 'DELETE' THEN pg_column_size(OLD) > 262144
                ELSE pg_column_size(NEW) > 262144 END;
        IF wide THEN
            -- A text ends at 1 GB; what is longer must not fail the writer.
            BEGIN
                IF TG_OP = 'DELETE' THEN
                    this_image := format('%s', OLD);
                ELSE
                    this_image := format('%s', NEW);
                END IF;
            EXCEPTION WHEN OTHERS THEN
                what := 'G';
            END;
        ELSIF TG_OP = 'DELETE' THEN
            this_image := format('%s', OLD);
        ELSE
            this_image := format('%s', NEW);
        END IF;
    END IF;
    IF what = 'G' THEN
        this_layout := TG_ARGV[0];
    ELSIF NOT is_known THEN
        PERFORM tidegate_outbox.learn(TG_RELID, TG_ARGV[0]::oid, this_layout);
    END IF;
    INSERT INTO tidegate_outbox.change (xid, layout, relation, operation, image)
    VALUES (pg_current_xact_id(), this_layout, TG_RELID, what, this_image);
    RETURN NULL;
END $$;

-- The trigger of TRUNCATE.
CREATE FUNCTION tidegate_outbox.note_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (SELECT last_value > extract(epoch FROM clock_timestamp())::bigint
        FROM tidegate_outbox.lease) THEN
        INSERT INTO tidegate_outbox.change (xid, layout, relation, operation)
        VALUES (pg_current_xact_id(), TG_RELID::bigint, TG_RELID, 'T');
    END IF;
    RETURN NULL;
END $$;

-- Between which numbers transactions stand that have ended since a snapshot. What an open
-- transaction has written is not looked through again and again, however much it is.
CREATE FUNCTION tidegate_outbox.ended(seen pg_catalog.pg_snapshot)
RETURNS TABLE (above xid8, below xid8)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH edge AS (
        SELECT pg_snapshot_xmax(seen)::text::bigint - 1 AS number
        UNION SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint
        UNION SELECT x::text::bigint FROM pg_snapshot_xip(pg_current_snapshot()) x
            WHERE x >= pg_snapshot_xmax(seen)
    ), gap AS (
        SELECT lag(number) OVER (ORDER BY number) AS above, number AS below FROM edge
        UNION ALL
        SELECT x::text::bigint - 1, x::text::bigint + 1 FROM pg_snapshot_xip(seen) x
            WHERE pg_visible_in_snapshot(x, pg_current_snapshot())
    )
    SELECT above::text::xid8, below::text::xid8 FROM gap WHERE above < below - 1
$$;

-- Gives the transactions that have committed since the last time their positions; returns where
-- the next one will be told. Of those that are new, the one that wrote its last change first comes
-- first: what depends on another wrote something after the other had committed.
CREATE FUNCTION tidegate_outbox.advance() RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    s tidegate_outbox.state;
BEGIN
    SELECT * INTO s FROM tidegate_outbox.state;
    IF NOT EXISTS (
        SELECT FROM tidegate_outbox.ended(s.seen) e JOIN LATERAL (
            SELECT FROM tidegate_outbox.change h
            WHERE h.xid > e.above AND h.xid < e.below LIMIT 1) h ON true) THEN
        RETURN s.position;
    END IF;
    -- The next statement sees everything that the one who had the lock before has seen.
    SELECT * INTO s FROM tidegate_outbox.state FOR UPDATE;
    WITH fresh AS MATERIALIZED (
        SELECT h.xid, max(h.id) AS last, count(*) AS changes,
            sum(64 + coalesce(octet_length(h.image), 0)) AS bytes
        FROM tidegate_outbox.ended(s.seen) e JOIN LATERAL (
            SELECT c.xid, c.id, c.image FROM tidegate_outbox.change c
            WHERE c.xid > e.above AND c.xid < e.below) h ON true
        GROUP BY h.xid
    ), told AS (
        INSERT INTO tidegate_outbox.commit (position, xid, changes, bytes)
        SELECT s.position + coalesce(sum(bytes) OVER (
                ORDER BY last ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0),
            xid, changes, bytes FROM fresh
        RETURNING bytes
    )
    UPDATE tidegate_outbox.state t
    SET position = t.position + coalesce((SELECT sum(bytes) FROM told), 0),
        seen = pg_current_snapshot()
    RETURNING t.position INTO s.position;
    RETURN s.position;
END $$;

-- Looks whether captured tables still have their triggers, which their owners may drop or disable.
-- Where one is missing, nothing counts as captured, and streams begin anew.
CREATE FUNCTION tidegate_outbox.inspect() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM tidegate_outbox.captured d
    WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = d.relation);
    UPDATE tidegate_outbox.captured d SET since = NULL
    WHERE d.since IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_trigger t WHERE t.tgrelid = d.relation AND t.tgenabled = 'A'
        AND t.tgfoid = 'tidegate_outbox.note()'::regprocedure);
    IF FOUND THEN
        UPDATE tidegate_outbox.state SET renewed = pg_snapshot_xmax(pg_current_snapshot());
        RETURN true;
    END IF;
    RETURN false;
END $$;

-- Has writers fill the outbox for so many seconds more. Returns whether they may have stopped
-- since the last time: then nothing is captured without a gap any more.
CREATE FUNCTION tidegate_outbox.renew(seconds bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    until bigint := (SELECT last_value FROM tidegate_outbox.lease);
    today bigint := extract(epoch FROM clock_timestamp());
BEGIN
    IF until <= today + 1 THEN
        UPDATE tidegate_outbox.captured SET since = NULL;
    END IF;
    IF until < today + seconds / 2 THEN
        PERFORM setval('tidegate_outbox.lease', today + seconds);
    END IF;
    IF until <= today + 1 THEN
        UPDATE tidegate_outbox.state SET renewed = pg_snapshot_xmax(pg_current_snapshot());
    END IF;
    RETURN until <= today + 1;
END $$;

-- Forgets everything, because this is another place than before. What is written meanwhile stays
-- and is told.
CREATE FUNCTION tidegate_outbox.restart() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE tidegate_outbox.captured SET since = NULL;
    DELETE FROM tidegate_outbox.commit;
    WITH gone AS (DELETE FROM tidegate_outbox.change)
    UPDATE tidegate_outbox.state SET log = gen_random_uuid(), origin = tidegate_outbox.origin(),
        seen = pg_current_snapshot(), earliest = position + 1, position = position + 1;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tidegate_outbox FROM PUBLIC;
