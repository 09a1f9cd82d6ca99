-- The outbox of one database. The administrator owns everything in it, and no other role may read
-- or write it. Writers reach it through trigger functions that run as the administrator. Therefore
-- these functions call no code of a writer: no cast, no operator, no function of another schema.
-- `format` writes a row with the output functions of its types, which only a superuser can create.

CREATE SCHEMA tidegate_outbox;
COMMENT ON SCHEMA tidegate_outbox IS 'Tidegate: the changes of tables with subscribers (version 1)';

-- The changes, in the order in which they were made. The table "commit" lists the committed
-- transactions in the order in which they are reported.
CREATE TABLE tidegate_outbox.change (
    id bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) NOT NULL,
    xid xid8 NOT NULL,
    layout bigint NOT NULL,
    relation oid NOT NULL,
    -- I, U, D, T, or G for a change that cannot be reported. For G, `layout` is the oid of the
    -- root.
    operation "char" NOT NULL,
    -- The new row; for DELETE, the old row.
    image text
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    vacuum_truncate = false, toast.autovacuum_vacuum_scale_factor = 0,
    toast.autovacuum_vacuum_threshold = 20000, toast.vacuum_truncate = false
);
CREATE INDEX change_of ON tidegate_outbox.change (xid, id);

-- The committed transactions. Positions count bytes, so that they can be compared with the maximum
-- size of the outbox.
CREATE TABLE tidegate_outbox.commit (
    position bigint PRIMARY KEY,
    xid xid8 NOT NULL,
    changes bigint NOT NULL,
    bytes bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- The columns of a table's rows at the time of a change. There is no unique constraint, because two
-- writers may store the same layout concurrently, and neither may wait for the other.
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

-- The captured tables. `since` is the position from which on no change is missing. For a
-- partitioned table, `partitions` lists its partitions when they were last read, and `changed` is
-- the position before which attaching or detaching a partition added or removed rows.
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
    -- The position of the next transaction.
    position bigint NOT NULL,
    -- The position from which on everything is kept.
    earliest bigint NOT NULL,
    -- The transactions that are in "commit" or have no changes.
    seen pg_catalog.pg_snapshot NOT NULL,
    -- Transactions before this one may have made changes that were not captured.
    renewed xid8 NOT NULL
) WITH (fillfactor = 10);

-- The time, in seconds since 1970, until which writers fill the outbox. It limits the growth of an
-- outbox that no node reads. It is a sequence because every transaction sees the current value of a
-- sequence, at every isolation level.
CREATE SEQUENCE tidegate_outbox.lease;

-- Identifies the database and the timeline of its server. It differs in a copy of the database, and
-- after the server was restored to an earlier time.
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

-- Stores the current columns of a table.
CREATE FUNCTION tidegate_outbox.learn(relation oid, root oid, layout bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- The owner of a table must not create events of another table. Therefore `root` only counts if
    -- the table is a partition of it.
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

-- Whether this transaction sees an older definition of a table than that of its rows. From
-- REPEATABLE READ on, a transaction sees the catalogs as of its start, but the functions here use
-- the current catalogs. A column that was only added is not found here. The reader detects it,
-- because the row then has too many values.
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

-- The trigger for rows. Its argument is the oid of the captured table. The table of the trigger is
-- this table or a partition of it.
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
            -- A text has at most 1 GB. A longer row must not make the writer fail.
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

-- The trigger for TRUNCATE.
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

-- Ranges of ids (both ends exclusive) that contain the transactions that have ended since a
-- snapshot. Open transactions are outside of the ranges, so their changes are not read again each
-- time.
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

-- Assigns positions to the transactions that have committed since the last call, and returns the
-- position of the next transaction. New transactions are ordered by their last change, because a
-- transaction that depends on another writes after the other has committed.
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
    -- The next statement sees everything that the previous holder of the lock has seen.
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

-- Checks whether captured tables still have their triggers, which their owners may drop or disable.
-- If a trigger is missing, its table no longer counts as captured. Returns whether one was missing.
-- Streams must then be restarted.
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

-- Extends the time during which writers fill the outbox to `seconds` from now. Returns whether they
-- may have stopped since the last call. In this case changes may be missing, and no table counts as
-- captured.
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

-- Deletes all changes and starts a new log, because the database has another origin than before.
-- Changes that are written during the call stay and are reported.
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
