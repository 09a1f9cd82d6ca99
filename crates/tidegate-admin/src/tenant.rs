//! Creates and drops the databases of tenants, and the roles of their users.

use SqlPart::{Name, Syntax};
use tidegate_wire::version;

use super::role::{self, OutsideDatabase, RoleOrigin};
use super::script::{Script, SqlPart, identifier};
use super::session::Session;
use super::{
    Error, Result, RolePasswords, all_users_role, claims, handover, restricted, revocation,
};

pub(super) async fn database_exists(session: &Session, database: &str) -> Result<bool> {
    let found = session
        .client
        .query_opt(
            "SELECT 1 FROM pg_catalog.pg_database WHERE datname = $1",
            &[&database],
        )
        .await?;
    Ok(found.is_some())
}

/// The reason why a name is reserved; `None` if it is not reserved. A tenant's database cannot have
/// a reserved name, and neither can the control database.
pub(super) fn reserved(database: &str) -> Option<&'static str> {
    match database {
        "" => Some("it has no name"),
        "postgres" => Some("it is the cluster's own"),
        "template0" | "template1" => Some("it is a template for new databases"),
        _ => None,
    }
}

/// Fails if the control database cannot have this name.
pub(super) fn require_not_reserved(name: &str) -> Result<()> {
    match reserved(name) {
        None => Ok(()),
        Some(reason) => Err(Error::Occupied {
            name: name.to_owned(),
            reason,
        }),
    }
}

/// Fails with [`Error::Occupied`] if an existing database cannot be the control database, because
/// it belongs to a tenant or contains other tables. `session` is in that database.
pub(super) async fn require_control(session: &Session, name: &str) -> Result<()> {
    let row = session
        .client
        .query_one(
            "SELECT (pg_catalog.to_regnamespace('tidegate') IS NULL \
                 OR EXISTS (SELECT FROM pg_catalog.pg_proc p \
                     JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
                     WHERE n.nspname = 'tidegate' AND p.proname = 'user_id')) AND (EXISTS (\
                 SELECT FROM pg_catalog.pg_database d, pg_catalog.aclexplode(d.datacl) a \
                 WHERE d.datname = pg_catalog.current_database() AND pg_catalog.starts_with(\
                     pg_catalog.shobj_description(a.grantee, 'pg_authid'), $1)) \
                 OR EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'p') \
                 AND c.relnamespace NOT IN (SELECT n.oid FROM pg_catalog.pg_namespace n \
                     WHERE n.nspname LIKE 'pg\\_%' OR n.nspname = 'information_schema') \
                 AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d \
                     WHERE d.objid = c.oid AND d.deptype = 'e')))",
            &[&role::MARK],
        )
        .await?;
    if row.get(0) {
        let (name, reason) = (
            name.to_owned(),
            "it is a tenant's, or others keep tables there",
        );
        return Err(Error::Occupied { name, reason });
    }
    Ok(())
}

/// The objects that an attempt to create a tenant has created so far. They are dropped if the
/// attempt fails.
#[derive(Default)]
pub(super) struct CreatedObjects {
    role: bool,
    users_role: bool,
    database: bool,
}

/// Creates the owner's role, the role of all users, and the database. Records in `made` which of
/// these it has created, even if it fails later. `session` is in the administrator's own database.
pub(super) async fn create(
    session: &Session,
    database: &str,
    passwords: &RolePasswords,
    made: &mut CreatedObjects,
) -> Result<()> {
    if database_exists(session, database).await? {
        return Err(Error::DatabaseExists(database.to_owned()));
    }
    let was_there = role::origin(session, database).await? != RoleOrigin::Missing;
    role::make(session, database, passwords)
        .await?
        .run(session)
        .await?;
    made.role = !was_there;
    let users_role = all_users_role::name(database);
    if let Some(role) = &users_role {
        let script = all_users_role::make(session, role).await?;
        script.run(session).await?;
        made.users_role = !script.is_empty();
    }
    let mut script = Script::default();
    script.push(&[
        Syntax("CREATE DATABASE "),
        Name(database),
        Syntax(template(session)),
        Syntax(" ENCODING 'UTF8'"),
    ]);
    script.run_each(session).await?;
    made.database = true;
    let mut script = Script::default();
    script.push(&[
        Syntax("REVOKE CONNECT, TEMPORARY ON DATABASE "),
        Name(database),
        Syntax(" FROM PUBLIC"),
    ]);
    script.append(owner_rights(database, database));
    if let Some(role) = &users_role {
        script.append(all_users_role::grant_connect(database, role));
    }
    script.run_each(session).await
}

/// The template of a new database. Usually it is `template0`, because no role can add anything to
/// `template0`, such as large objects. Before PostgreSQL 15, the schema `public` of `template0`
/// belongs to a superuser. An administrator that is not a superuser could not give this schema to
/// the tenant's owner, and therefore uses `template1`.
fn template(session: &Session) -> &'static str {
    if session.superuser || version::database_owner_owns_public(session.version) {
        " TEMPLATE template0"
    } else {
        " TEMPLATE template1"
    }
}

/// Returns the statement that grants the owner its privileges on the database.
pub(super) fn owner_rights(database: &str, owner: &str) -> Script {
    let mut script = Script::default();
    script.push(&[
        Syntax("GRANT CONNECT, CREATE, TEMPORARY ON DATABASE "),
        Name(database),
        Syntax(" TO "),
        Name(owner),
    ]);
    script
}

/// Gives the schema `public` to the tenant's owner, and revokes CREATE on it from PUBLIC. Grants
/// USAGE on it to the role of all users. Restricts dangerous functions to the owner. `session` is
/// in the new database.
pub(super) async fn hand_over(session: &Session, owner: &str) -> Result<()> {
    let public = session.owner_of_public().await?;
    if !session
        .has_privileges_of(public.as_ref().unwrap_or(&session.role))
        .await?
    {
        return Err(Error::MissingRight {
            role: session.role.clone(),
            sql: vec![
                "\\connect template1".to_owned(),
                format!(
                    "ALTER SCHEMA public OWNER TO {};",
                    identifier(&session.role)
                ),
            ],
        });
    }
    let mut script = Script::default();
    script.push(&[Syntax("REVOKE CREATE ON SCHEMA public FROM PUBLIC")]);
    if let Some(role) = all_users_role::name(owner) {
        script.append(all_users_role::grant_usage(&role));
    }
    script.push(&[Syntax("ALTER SCHEMA public OWNER TO "), Name(owner)]);
    session
        .with_privileges_of(owner, script)
        .await?
        .run(session)
        .await?;
    restricted::restrict(session, owner).await
}

/// Drops the objects that a failed creation has created, and logs failures.
pub(super) async fn abandon(session: &Session, database: &str, made: &CreatedObjects) {
    if let Err(error) = undo_create(session, database, made).await {
        tracing::warn!(database, %error, "could not remove a tenant after a failed creation");
    }
}

async fn undo_create(session: &Session, database: &str, made: &CreatedObjects) -> Result<()> {
    if made.database {
        drop_database(session, database).await?;
    }
    if let Some(role) = all_users_role::name(database).filter(|_| made.users_role) {
        drop_roles(session, &[role]).await?;
    }
    if made.role {
        drop_roles(session, &[database.to_owned()]).await?;
    }
    Ok(())
}

/// Fails if a role must not be dropped. Without `reassign`, the role must not own objects. With
/// `reassign`, its objects will go to `owner`. They must not contain code that would then run with
/// the owner's privileges. The role must not be used in other databases.
pub(super) async fn may_drop_user(
    session: &Session,
    (database, (role, owner)): (&str, (&str, &str)),
    reassign: bool,
) -> Result<()> {
    if reassign {
        let given = (&[role][..], owner);
        handover::require_data_only(session, given, handover::HandoverStep::Before).await?;
    } else {
        role::require_nothing_owned(session, role).await?;
    }
    let elsewhere = OutsideDatabase::InDatabases;
    role::require_nothing_outside(session, &[role], database, elsewhere).await
}

/// Drops the role of a user, and deletes the identity that is stored for it. `session` is in the
/// tenant's database, `home` in the administrator's own database. With `reassign`, the tenant's
/// owner gets the objects that the role owns in the tenant's database.
pub(super) async fn drop_user(
    (home, session): (&Session, &Session),
    (database, (role, owner)): (&str, (&str, &str)),
    reassign: bool,
) -> Result<()> {
    may_drop_user(session, (database, (role, owner)), reassign).await?;
    role::end_sessions(home, role).await?;
    session.begin().await?;
    let mut dropped = revocation::drop_roles(session, &[role], owner, reassign).await;
    if dropped.is_ok() {
        dropped = claims::delete_identity(session, role).await;
    }
    session.end(dropped).await
}

/// Drops a database, and terminates the connections to it. `session` is in another database.
pub(super) async fn drop_database(session: &Session, database: &str) -> Result<()> {
    let mut script = Script::default();
    script.push(&[
        Syntax("DROP DATABASE IF EXISTS "),
        Name(database),
        Syntax(" WITH (FORCE)"),
    ]);
    script.run_each(session).await
}

/// Drops the roles that Tidegate created, in one transaction, and keeps the others. The roles must
/// not own objects.
pub(super) async fn drop_roles(session: &Session, roles: &[String]) -> Result<()> {
    let mut script = Script::default();
    for role in roles {
        if role::origin(session, role).await? == RoleOrigin::Tidegate {
            script.push(&[Syntax("DROP ROLE "), Name(role)]);
        }
    }
    script.run(session).await
}
