-- Why users of this database may not share connections, most important first, with what sets it
-- right; no row when they may. On a shared connection, code that a statement reaches could become
-- another user (`set_config('role', …)`), so that no code may come from anybody who is not trusted
-- with the data of all users: from any role that a caller other than the owner can act as. Roles that
-- no caller reaches are trusted.
WITH RECURSIVE caller (oid) AS (
    SELECT r.oid FROM pg_catalog.pg_roles r
    WHERE pg_catalog.starts_with(r.rolname::text, pg_catalog.current_database() || '/')
), reach (oid) AS (
    SELECT c.oid FROM caller c
    UNION
    SELECT m.roleid FROM reach JOIN pg_catalog.pg_auth_members m ON m.member = reach.oid
), role AS (
    SELECT r.oid, r.rolname, pg_catalog.quote_ident(r.rolname) AS quoted,
           r.oid IN (SELECT c.oid FROM caller c) AS is_caller,
           r.rolsuper OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls AS elevated,
           r.rolname LIKE 'pg\_%' AND r.rolname NOT IN ('pg_monitor', 'pg_read_all_settings',
               'pg_read_all_stats', 'pg_stat_scan_tables', 'pg_read_all_data', 'pg_signal_backend',
               'pg_checkpoint') AS predefined
    FROM reach JOIN pg_catalog.pg_roles r ON r.oid = reach.oid
), leave (oid, remedy) AS (
    SELECT m.roleid, pg_catalog.string_agg(DISTINCT pg_catalog.format('REVOKE %I FROM %I;',
               pg_catalog.pg_get_userbyid(m.roleid), pg_catalog.pg_get_userbyid(m.member)), ' ')
    FROM pg_catalog.pg_auth_members m JOIN reach ON reach.oid = m.member GROUP BY m.roleid
), grantee (oid, quoted) AS (
    SELECT r.oid, r.quoted FROM role r UNION ALL SELECT 0::pg_catalog.oid, 'PUBLIC'
), here (oid, owner, acl) AS (
    -- The || copies a list of rights out of its TOAST table: aclexplode would for each of its rows.
    SELECT d.oid, d.datdba, coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba)) || '{}'
    FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()
), objection (reason, remedy) AS (
    SELECT 'the event trigger tidegate_catalog is missing, disabled or altered',
           'ALTER EVENT TRIGGER tidegate_catalog ENABLE ALWAYS;'
    WHERE NOT EXISTS (
        SELECT FROM pg_catalog.pg_event_trigger e
        JOIN pg_catalog.pg_proc p ON p.oid = e.evtfoid
        JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace AND n.nspowner = p.proowner
        JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relowner = n.nspowner
        JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner
        WHERE e.evtname = 'tidegate_catalog' AND e.evtevent = 'ddl_command_end'
          AND e.evtenabled = 'A' AND e.evttags IS NULL AND n.nspname = 'tidegate_catalog'
          AND p.prosecdef AND p.prosrc = :source::pg_catalog.text AND c.relname = 'objections' AND c.relkind = 'r'
          AND o.rolsuper)
    UNION ALL
    SELECT pg_catalog.format('users can act as the owner''s role %s', r.quoted), l.remedy
    FROM role r JOIN leave l ON l.oid = r.oid WHERE r.rolname::text = :owner::pg_catalog.text
    UNION ALL
    SELECT pg_catalog.format('the role %s, as which users can act, has SUPERUSER, CREATEROLE, '
               'REPLICATION or BYPASSRLS', r.quoted),
           CASE WHEN r.is_caller THEN pg_catalog.format('ALTER ROLE %s NOSUPERUSER NOCREATEROLE '
               'NOREPLICATION NOBYPASSRLS;', r.quoted) ELSE l.remedy END
    FROM role r LEFT JOIN leave l ON l.oid = r.oid WHERE r.elevated
    UNION ALL
    SELECT pg_catalog.format('users are members of the role %s', r.quoted), l.remedy
    FROM role r LEFT JOIN leave l ON l.oid = r.oid WHERE r.predefined
    UNION ALL
    SELECT pg_catalog.format('users can act as the database''s owner %s', r.quoted), l.remedy
    FROM role r JOIN here h ON h.owner = r.oid LEFT JOIN leave l ON l.oid = r.oid
    UNION ALL
    SELECT pg_catalog.format('the role %s, as which users can act, owns %s object(s), such as %s',
               r.quoted, pg_catalog.count(*), pg_catalog.min(pg_catalog.pg_describe_object(
                   d.classid, d.objid, d.objsubid))),
           CASE WHEN r.is_caller THEN pg_catalog.format(
               '-- once you have read it: REASSIGN OWNED BY %s TO %I;', r.quoted, :owner::pg_catalog.text)
           ELSE l.remedy END
    FROM pg_catalog.pg_shdepend d
    JOIN here h ON h.oid = d.dbid
    JOIN role r ON r.oid = d.refobjid
    LEFT JOIN leave l ON l.oid = r.oid
    CROSS JOIN LATERAL pg_catalog.pg_identify_object(d.classid, d.objid, d.objsubid) i
    WHERE d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND d.deptype = 'o'
      -- None of these is code, and no event trigger fires for large objects.
      AND d.classid NOT IN ('pg_catalog.pg_default_acl'::pg_catalog.regclass,
                            'pg_catalog.pg_user_mapping'::pg_catalog.regclass,
                            'pg_catalog.pg_largeobject'::pg_catalog.regclass)
      -- Temporary objects belong to one session.
      AND coalesce(i.schema, '') !~ '^pg_(toast_)?temp'
    GROUP BY r.quoted, r.is_caller, l.remedy
    UNION ALL
    SELECT pg_catalog.format('%s may make objects in the schema %I', g.quoted, n.nspname),
           pg_catalog.format('REVOKE CREATE ON SCHEMA %I FROM %s;', n.nspname, g.quoted)
    FROM pg_catalog.pg_namespace n
    CROSS JOIN LATERAL pg_catalog.aclexplode(
        coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner)) || '{}') a
    JOIN grantee g ON g.oid = a.grantee
    WHERE a.privilege_type = 'CREATE' AND n.nspname !~ '^pg_(toast_)?temp_'
    UNION ALL
    SELECT pg_catalog.format('%s may make schemas in the database', g.quoted),
           pg_catalog.format('REVOKE CREATE ON DATABASE %I FROM %s;',
                             pg_catalog.current_database(), g.quoted)
    FROM here h CROSS JOIN LATERAL pg_catalog.aclexplode(h.acl) a
    JOIN grantee g ON g.oid = a.grantee WHERE a.privilege_type = 'CREATE'
    UNION ALL
    -- A trigger's condition is code too, so that TRIGGER is enough.
    SELECT pg_catalog.format('%s may make triggers on %I.%I', g.quoted, n.nspname, c.relname),
           pg_catalog.format('REVOKE TRIGGER ON %I.%I FROM %s;', n.nspname, c.relname, g.quoted)
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
    JOIN grantee g ON g.oid = a.grantee
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.privilege_type = 'TRIGGER'
      AND c.relpersistence <> 't'
    UNION ALL
    -- It stays when the right to make it is revoked, and does not say who made it.
    SELECT DISTINCT pg_catalog.format('the condition of the %s calls the function %s',
               pg_catalog.pg_describe_object('pg_catalog.pg_trigger'::pg_catalog.regclass, t.oid, 0),
               p.oid::pg_catalog.regprocedure),
           pg_catalog.format('-- once you have read it: DROP TRIGGER %I ON %I.%I;',
                             t.tgname, n.nspname, c.relname)
    FROM pg_catalog.pg_trigger t
    JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL pg_catalog.regexp_matches(t.tgqual::text, ':funcid (\d+)', 'g') f (match)
    JOIN pg_catalog.pg_proc p ON p.oid = (f.match)[1]::pg_catalog.oid
    WHERE NOT t.tgisinternal AND p.provolatile = 'v'
    UNION ALL
    SELECT pg_catalog.format('%s may write to the table of objections', g.quoted),
           pg_catalog.format('REVOKE ALL ON tidegate_catalog.objections FROM %s;', g.quoted)
    FROM pg_catalog.pg_class c
    CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
    JOIN grantee g ON g.oid = a.grantee
    WHERE c.oid = pg_catalog.to_regclass('tidegate_catalog.objections')
      AND a.privilege_type <> 'SELECT'
)
SELECT o.reason, o.remedy FROM objection o LIMIT 5
