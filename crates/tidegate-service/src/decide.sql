-- The reasons why users of this database may not share connections, most important first, with the
-- SQL that removes each reason. No row if they may. On a shared connection, code that a statement
-- calls could become another user (`set_config('role', …)`). Therefore all code must come from
-- roles that are trusted with the data of all users. A role is not trusted if a caller other than
-- the owner can act as it. Roles that no caller can act as are trusted.
WITH RECURSIVE caller (oid) AS (
    SELECT r.oid FROM pg_catalog.pg_roles r
    WHERE pg_catalog.starts_with(r.rolname::text, pg_catalog.current_database() || '/')
), barrier (oid) AS (
    -- A user that can act as one of these roles is an objection in itself. The privileges and
    -- memberships of these roles are no objections, because the remedy must not revoke privileges
    -- of the owner.
    SELECT r.oid FROM pg_catalog.pg_roles r
    WHERE r.rolname::text = :owner::pg_catalog.text OR r.rolsuper AND NOT pg_catalog.starts_with(
        r.rolname::text, pg_catalog.current_database() || '/')
    UNION
    SELECT d.datdba FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()
), reach (oid) AS (
    SELECT c.oid FROM caller c
    UNION
    SELECT m.roleid FROM reach JOIN pg_catalog.pg_auth_members m ON m.member = reach.oid
    WHERE reach.oid NOT IN (SELECT b.oid FROM barrier b)
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
    FROM pg_catalog.pg_auth_members m JOIN reach ON reach.oid = m.member
    WHERE m.member NOT IN (SELECT b.oid FROM barrier b) GROUP BY m.roleid
), grantee (oid, quoted) AS (
    SELECT r.oid, r.quoted FROM role r WHERE r.oid NOT IN (SELECT b.oid FROM barrier b)
    UNION ALL SELECT 0::pg_catalog.oid, 'PUBLIC'
), authenticator (oid, quoted) AS (
    SELECT r.oid, r.quoted FROM role r WHERE pg_catalog.starts_with(
        r.rolname::text, pg_catalog.current_database() || '/$authenticator')
), code (class, id, part, body) AS (
    -- The code that a statement can call and that users of the server have created (PostgreSQL,
    -- "FirstNormalObjectId"). pg_proc has no `prosqlbody` before PostgreSQL 14; there the name
    -- refers to that of `fallback`.
    SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid, 0,
           pg_catalog.concat(p.polqual::text, p.polwithcheck::text)
    FROM pg_catalog.pg_policy p
    UNION ALL
    SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass, d.oid, 0, d.adbin::text
    FROM pg_catalog.pg_attrdef d
    UNION ALL
    SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, w.oid, 0,
           pg_catalog.concat(w.ev_qual::text, w.ev_action::text)
    FROM pg_catalog.pg_rewrite w WHERE w.oid >= 16384
    UNION ALL
    SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass, t.oid, 0, t.tgqual::text
    FROM pg_catalog.pg_trigger t WHERE t.tgqual IS NOT NULL
    UNION ALL
    SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, k.oid, 0, k.conbin::text
    FROM pg_catalog.pg_constraint k WHERE k.oid >= 16384 AND k.conbin IS NOT NULL
    UNION ALL
    SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, y.oid, 0, y.typdefaultbin::text
    FROM pg_catalog.pg_type y WHERE y.oid >= 16384 AND y.typdefaultbin IS NOT NULL
    UNION ALL
    SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, f.oid, 0,
           pg_catalog.concat(f.sqlbody::text, f.proargdefaults::text)
    FROM (SELECT NULL::text) fallback (prosqlbody)
    CROSS JOIN LATERAL (SELECT p.oid, p.proargdefaults, prosqlbody AS sqlbody
                        FROM pg_catalog.pg_proc p WHERE p.oid >= 16384) f
), login_name (class, id, part) AS (
    -- Code that uses session_user: 12 is SVFOP_SESSION_USER in primnodes.h.
    SELECT c.class, c.id, c.part FROM code c
    WHERE pg_catalog.strpos(c.body, '{SQLVALUEFUNCTION :op 12 ') > 0
       OR pg_catalog.strpos(c.body, pg_catalog.concat('{FUNCEXPR :funcid ',
              pg_catalog.to_regproc('pg_catalog.system_user')::pg_catalog.oid, ' ')) > 0
    UNION
    SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 0
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_catalog.pg_roles o ON o.oid = p.proowner
    WHERE p.oid >= 16384 AND p.prorettype <> 'pg_catalog.event_trigger'::pg_catalog.regtype
      AND p.prosrc ~* CASE
          WHEN pg_catalog.to_regproc('pg_catalog.system_user') IS NULL
          THEN '[[:<:]]session_(user|authorization)[[:>:]]'
          ELSE '[[:<:]](session_(user|authorization)|system_user)[[:>:]]' END
      -- The service's own functions handle sessions of authenticators correctly.
      AND NOT (o.rolsuper AND n.nspname IN ('tidegate', 'tidegate_private', 'tidegate_catalog'))
), here (oid, owner, acl) AS (
    -- The || copies an ACL out of its TOAST table once. Otherwise aclexplode would copy it for each
    -- of its rows.
    SELECT d.oid, d.datdba, coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba)) || '{}'
    FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()
), watch (is_on) AS (
    -- The event trigger with the function of this release or a later one, because nodes of two
    -- releases may run at the same time. Only a superuser can have created it.
    SELECT e.evtenabled = 'A'
    FROM pg_catalog.pg_event_trigger e
    JOIN pg_catalog.pg_proc p ON p.oid = e.evtfoid
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace AND n.nspowner = p.proowner
    JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relowner = n.nspowner
    JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner
    WHERE e.evtname = 'tidegate_catalog' AND e.evtevent = 'ddl_command_end'
      AND e.evttags IS NULL AND n.nspname = 'tidegate_catalog' AND p.prosecdef AND o.rolsuper
      AND c.relname = 'objections' AND c.relkind = 'r'
      AND (p.prosrc = :source::pg_catalog.text
           OR pg_catalog.substring(p.prosrc, '-- Version ([0-9]{1,9})')::pg_catalog.int4
              > pg_catalog.substring(:source::pg_catalog.text, '-- Version ([0-9]{1,9})')::pg_catalog.int4)
), objection (reason, remedy) AS (
    SELECT 'the event trigger tidegate_catalog is missing, disabled or altered',
           CASE WHEN EXISTS (SELECT FROM watch) THEN 'ALTER EVENT TRIGGER tidegate_catalog ENABLE ALWAYS;'
           ELSE 'DROP SCHEMA tidegate_catalog CASCADE; -- tidegate user repair, with --all, makes it again' END
    WHERE NOT EXISTS (SELECT FROM watch w WHERE w.is_on)
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
      -- Objects of these kinds contain no code. No event trigger fires for large objects.
      AND d.classid NOT IN ('pg_catalog.pg_default_acl'::pg_catalog.regclass,
                            'pg_catalog.pg_user_mapping'::pg_catalog.regclass,
                            'pg_catalog.pg_largeobject'::pg_catalog.regclass)
      -- Temporary objects belong to one session.
      AND coalesce(i.schema, '') !~ '^pg_(toast_)?temp'
      AND r.oid NOT IN (SELECT b.oid FROM barrier b)
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
    -- The condition of a trigger is code too. Therefore the privilege TRIGGER suffices as a reason.
    SELECT pg_catalog.format('%s may make triggers on %I.%I', g.quoted, n.nspname, c.relname),
           pg_catalog.format('REVOKE TRIGGER ON %I.%I FROM %s;', n.nspname, c.relname, g.quoted)
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
    JOIN grantee g ON g.oid = a.grantee
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.privilege_type = 'TRIGGER'
      AND c.relpersistence <> 't'
    UNION ALL
    -- A trigger stays after the privilege to create it was revoked, and it does not record its
    -- creator.
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
    UNION ALL
    -- An authenticator needs only CONNECT and SELECT on the objections.
    SELECT pg_catalog.format('the authenticator %s has a right of its own on %s', a.quoted,
               pg_catalog.pg_describe_object(d.classid, d.objid, 0)),
           CASE WHEN k.kind IS NULL THEN '-- REVOKE this right'
           ELSE pg_catalog.format('REVOKE ALL ON %s %s FROM %s;', k.kind, i.identity, a.quoted) END
    FROM authenticator a
    JOIN pg_catalog.pg_shdepend d ON d.refobjid = a.oid
    CROSS JOIN here h
    CROSS JOIN LATERAL pg_catalog.pg_identify_object(d.classid, d.objid, 0) i
    CROSS JOIN LATERAL (SELECT CASE d.classid
        WHEN 'pg_catalog.pg_class'::pg_catalog.regclass THEN 'TABLE'
        WHEN 'pg_catalog.pg_namespace'::pg_catalog.regclass THEN 'SCHEMA'
        WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass THEN 'ROUTINE'
        WHEN 'pg_catalog.pg_type'::pg_catalog.regclass THEN 'TYPE' END) k (kind)
    WHERE d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND d.deptype = 'a'
      AND d.dbid = h.oid
      AND NOT (d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
               AND d.objid = coalesce(pg_catalog.to_regclass('tidegate_catalog.objections'), 0))
      AND NOT (d.classid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
               AND d.objid = coalesce(pg_catalog.to_regnamespace('tidegate_catalog'), 0))
    GROUP BY 1, 2
    UNION ALL
    SELECT pg_catalog.format('the authenticator %s is a member of the role %I', a.quoted, g.rolname),
           pg_catalog.format('REVOKE %I FROM %s;', g.rolname, a.quoted)
    FROM authenticator a
    JOIN pg_catalog.pg_auth_members m ON m.member = a.oid
    JOIN pg_catalog.pg_roles g ON g.oid = m.roleid
    WHERE pg_catalog.starts_with(g.rolname::text, 'pg_')
    UNION ALL
    -- A member of an authenticator can act as each of its users. A superuser can do so anyway.
    SELECT DISTINCT pg_catalog.format('the role %I is a member of the authenticator %s, so it can act '
               'as each of its users', g.rolname, a.quoted),
           pg_catalog.format('REVOKE %s FROM %I;', a.quoted, g.rolname)
    FROM authenticator a
    JOIN pg_catalog.pg_auth_members m ON m.roleid = a.oid
    JOIN pg_catalog.pg_roles g ON g.oid = m.member
    WHERE NOT g.rolsuper
    UNION ALL
    -- On a shared connection, session_user is the authenticator, which is the same for all of its
    -- users.
    SELECT pg_catalog.format('session_user is not the caller on a shared connection, and the %s names it',
               pg_catalog.pg_describe_object(l.class, l.id, l.part)),
           '-- name current_user there, or in a function with SECURITY DEFINER tidegate.user_id()'
    FROM login_name l
    CROSS JOIN LATERAL pg_catalog.pg_identify_object(l.class, l.id, l.part) i
    -- Temporary objects belong to one session. The event trigger passes no owner and skips this
    -- check, because a definition of a user can use session_user only in an object of the user's
    -- own.
    WHERE i.identity !~ '(^| )pg_temp(_[0-9]+)?[.]' AND :owner::pg_catalog.text IS NOT NULL
)
SELECT o.reason, o.remedy FROM objection o LIMIT 5
