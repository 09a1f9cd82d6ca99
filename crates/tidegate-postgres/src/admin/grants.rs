//! Taking rights back before a role goes.
//!
//! `DROP OWNED` alone does not do: it takes back only what the object's owner granted, and for an
//! administrator that is no superuser it may mistake the role itself for the grantor.

use std::collections::BTreeMap;

use super::script::{Part, Script};
use super::session::Session;
use super::{Result, role};

/// The grants to roles ($1) and by roles ($3): who granted, whether that is the object's owner,
/// whether it is a role of ours, on what, and to whom; nobody's name is PUBLIC.
const GRANTS: &str = "
    SELECT DISTINCT r.rolname::text, o.grantor = o.owner,
           coalesce(pg_catalog.shobj_description(r.oid, 'pg_authid'), '') LIKE ($2::text || '%'),
           o.kind, o.name, g.rolname::text
    FROM (
        SELECT 'TABLE' AS kind, pg_catalog.format('%I.%I', n.nspname, c.relname) AS name,
               c.relowner AS owner, a.grantor, a.grantee
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
             pg_catalog.aclexplode(c.relacl) a
        UNION ALL
        SELECT 'TABLE', pg_catalog.format('%I.%I', n.nspname, c.relname), c.relowner,
               a.grantor, a.grantee
        FROM pg_catalog.pg_attribute t
        JOIN pg_catalog.pg_class c ON c.oid = t.attrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
             pg_catalog.aclexplode(t.attacl) a
        UNION ALL
        SELECT 'ROUTINE', pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
                                            pg_catalog.oidvectortypes(p.proargtypes)),
               p.proowner, a.grantor, a.grantee
        FROM pg_catalog.pg_proc p
        JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace,
             pg_catalog.aclexplode(p.proacl) a
        UNION ALL
        SELECT 'SCHEMA', pg_catalog.format('%I', n.nspname), n.nspowner, a.grantor, a.grantee
        FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a
        UNION ALL
        SELECT 'TYPE', pg_catalog.format('%I.%I', n.nspname, t.typname), t.typowner,
               a.grantor, a.grantee
        FROM pg_catalog.pg_type t
        JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace,
             pg_catalog.aclexplode(t.typacl) a
        UNION ALL
        SELECT 'LARGE OBJECT', l.oid::text, l.lomowner, a.grantor, a.grantee
        FROM pg_catalog.pg_largeobject_metadata l, pg_catalog.aclexplode(l.lomacl) a
        UNION ALL
        SELECT 'LANGUAGE', pg_catalog.format('%I', l.lanname), l.lanowner, a.grantor, a.grantee
        FROM pg_catalog.pg_language l, pg_catalog.aclexplode(l.lanacl) a
        UNION ALL
        SELECT 'FOREIGN DATA WRAPPER', pg_catalog.format('%I', w.fdwname), w.fdwowner,
               a.grantor, a.grantee
        FROM pg_catalog.pg_foreign_data_wrapper w, pg_catalog.aclexplode(w.fdwacl) a
        UNION ALL
        SELECT 'FOREIGN SERVER', pg_catalog.format('%I', s.srvname), s.srvowner,
               a.grantor, a.grantee
        FROM pg_catalog.pg_foreign_server s, pg_catalog.aclexplode(s.srvacl) a
    ) o
    JOIN pg_catalog.pg_roles r ON r.oid = o.grantor
    LEFT JOIN pg_catalog.pg_roles g ON g.oid = o.grantee
    WHERE o.grantor <> o.grantee AND (g.oid IS NOT NULL OR o.grantee = 0)
          AND (g.rolname = ANY ($1::text[]) OR r.rolname = ANY ($3::text[]))
    ORDER BY 6, 4, 5, 1";

struct Grant {
    grantor: String,
    by_owner: bool,
    by_ours: bool,
    kind: &'static str,
    object: String,
    /// Everybody when absent.
    grantee: Option<String>,
}

async fn of_roles(session: &Session, grantees: &[&str], grantors: &[&str]) -> Result<Vec<Grant>> {
    let rows = session
        .client
        .query(GRANTS, &[&grantees, &role::MARK, &grantors])
        .await?;
    let grant = |row: &tokio_postgres::Row| Grant {
        grantor: row.get(0),
        by_owner: row.get(1),
        by_ours: row.get(2),
        kind: match row.get(3) {
            "TABLE" => "REVOKE ALL ON TABLE ",
            "ROUTINE" => "REVOKE ALL ON ROUTINE ",
            "TYPE" => "REVOKE ALL ON TYPE ",
            "LARGE OBJECT" => "REVOKE ALL ON LARGE OBJECT ",
            "LANGUAGE" => "REVOKE ALL ON LANGUAGE ",
            "FOREIGN DATA WRAPPER" => "REVOKE ALL ON FOREIGN DATA WRAPPER ",
            "FOREIGN SERVER" => "REVOKE ALL ON FOREIGN SERVER ",
            _ => "REVOKE ALL ON SCHEMA ",
        },
        object: row.get(4),
        grantee: row.get(5),
    };
    Ok(rows.iter().map(grant).collect())
}

fn revoke(script: &mut Script, grant: &Grant) {
    script.push(&[
        Part::Syntax(grant.kind),
        Part::Quoted(&grant.object),
        Part::Syntax(" FROM "),
        match &grant.grantee {
            Some(grantee) => Part::Name(grantee),
            None => Part::Syntax("PUBLIC"),
        },
        Part::Syntax(" CASCADE"),
    ]);
}

/// For each user of ours that granted something to `grantees`, or is one of `grantors`, on objects
/// that are not the user's, what it must run to take that back. `session` is in the tenant's
/// database.
pub(super) async fn by_others(
    session: &Session,
    grantees: &[&str],
    grantors: &[&str],
) -> Result<BTreeMap<String, Script>> {
    let mut scripts = BTreeMap::<String, Script>::new();
    for grant in of_roles(session, grantees, grantors).await? {
        if grant.by_ours && !grant.by_owner {
            revoke(scripts.entry(grant.grantor.clone()).or_default(), &grant);
        }
    }
    Ok(scripts)
}

/// Drops roles of ours, in the transaction of the caller. What they own in the session's database
/// goes to `heir` first; without `reassign` a role that owns something is refused.
pub(super) async fn drop_roles(
    session: &Session,
    roles: &[&str],
    heir: &str,
    reassign: bool,
) -> Result<()> {
    if reassign {
        let mut script = Script::default();
        for role in roles {
            script.push(&[
                Part::Syntax("REASSIGN OWNED BY "),
                Part::Name(role),
                Part::Syntax(" TO "),
                Part::Name(heir),
            ]);
        }
        acting_for(session, roles, session.acting_for(heir, script).await?)
            .await?
            .run_each(session)
            .await?;
    }
    let mut script = Script::default();
    for grant in of_roles(session, roles, &[])
        .await?
        .iter()
        .filter(|grant| grant.by_owner)
    {
        revoke(&mut script, grant);
    }
    session
        .acting_for(heir, script)
        .await?
        .run_each(session)
        .await?;
    if !reassign {
        // A session that came after the first look may have made something; it would be lost.
        for role in roles {
            role::require_nothing_owned(session, role).await?;
        }
    }
    let mut script = Script::default();
    for role in roles {
        script.push(&[Part::Syntax("DROP OWNED BY "), Part::Name(role)]);
    }
    let mut script = acting_for(session, roles, script).await?;
    for role in roles {
        script.push(&[Part::Syntax("DROP ROLE "), Part::Name(role)]);
    }
    script.run_each(session).await
}

async fn acting_for(session: &Session, roles: &[&str], mut script: Script) -> Result<Script> {
    for role in roles {
        script = session.acting_for(role, script).await?;
    }
    Ok(script)
}
