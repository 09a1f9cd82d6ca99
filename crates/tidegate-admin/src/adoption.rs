//! Adopts an existing database, which becomes the database of a tenant. Releases the database of a
//! tenant.

use std::collections::BTreeSet;

use SqlPart::{Name, Qualified, Quoted, Syntax};
use tidegate_sql::RoleName;

use super::database_content::{DatabaseContent, Object};
use super::right::Right;
use super::script::{Script, SqlPart, comment, identifier, list};
use super::session::Session;
use super::{Error, Result, RolePasswords, revocation, role, tenant};

/// A privilege that an adoption revoked from PUBLIC, or granted to a role outside of the tenant.
/// Releasing the database undoes the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RightsChange {
    /// PUBLIC, from which the privilege was revoked, or the role to which it was granted.
    pub grantee: Grantee,
    /// The privilege that was changed.
    pub right: Right,
}

/// The grantee of a changed privilege.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grantee {
    /// PUBLIC; the privilege was revoked.
    Public,
    /// A role; the privilege was granted.
    Role(String),
}

/// The plan of an adoption: the SQL to run, and what to record so that it can be undone.
#[derive(Clone, Debug)]
pub struct Adoption {
    /// The SQL of the adoption, which runs in the database in one transaction.
    pub script: Script,
    /// The changes that releasing the database must undo. Privileges of the tenant's own roles are
    /// not included, because they end with the roles.
    pub changes: Vec<RightsChange>,
    /// The role of the tenant's owner.
    pub(super) owner: RoleName,
}

/// The privileges that the tenant's owner gets on tables: all except TRIGGER and MAINTAIN. With
/// TRIGGER, the owner could act with the privileges of other roles, because a trigger runs as the
/// role that writes to the table.
const TABLE_RIGHTS: &str = "SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES";

const SEQUENCE_RIGHTS: &str = "USAGE, SELECT, UPDATE";

/// Plans an adoption. `session` is in the database to be adopted.
pub(super) async fn plan(
    session: &Session,
    database: &str,
    owner: &str,
    passwords: &RolePasswords,
) -> Result<Adoption> {
    let content = DatabaseContent::inspect(session, owner).await?;
    if content.is_template {
        return Err(Error::Reserved {
            name: database.to_owned(),
            reason: "it is a template for new databases",
        });
    }
    check_rights(session, &content).await?;
    let mut script = Script::default();
    script.note(format!("The tenant's owner is the role {owner}."));
    script.append(role::make(session, owner, passwords).await?);
    script.append(tenant::owner_rights(database, owner));
    grant_objects(&mut script, &content, owner);
    default_privileges(&mut script, &content, owner);
    let changes = move_public_rights(&mut script, &content, database);
    Ok(Adoption {
        script,
        changes,
        owner: RoleName::new(owner),
    })
}

/// Checks that the administrator may act for the owner of each object. If it may not, PostgreSQL
/// would only warn and grant no privileges on the object.
async fn check_rights(session: &Session, content: &DatabaseContent) -> Result<()> {
    let mut sql = Vec::new();
    for owner in content.object_creators() {
        if !session.has_privileges_of(owner).await? {
            let quote = identifier;
            if session.is_superuser(owner).await? {
                sql.push(format!(
                    "-- {} is a superuser, and so is every role that may act for it: rather adopt as a \
                     superuser, or give what it owns here to another role first.",
                    comment(owner)
                ));
            }
            sql.push(format!(
                "GRANT {} TO {};",
                quote(owner),
                quote(&session.role)
            ));
        }
    }
    if sql.is_empty() {
        return Ok(());
    }
    Err(Error::MissingRight {
        role: session.role.clone(),
        sql,
    })
}

fn grant_objects(script: &mut Script, content: &DatabaseContent, owner: &str) {
    script.note("What exists, with the right to pass it on to the tenant's users.");
    for schema in &content.schemas {
        let name = schema.name.as_str();
        let mut grant = |rights: &'static str, kind: &'static str, objects: &[Object]| {
            if objects.is_empty() {
                return;
            }
            let names = objects.iter().map(|object| match object {
                Object::Relation(relation) => Qualified(name, relation),
                Object::Routine(routine) => Quoted(routine),
            });
            let mut parts = vec![Syntax("GRANT "), Syntax(rights), Syntax(kind)];
            parts.extend(list(names));
            parts.extend([Syntax(" TO "), Name(owner), Syntax(" WITH GRANT OPTION")]);
            script.push(&parts);
        };
        grant(TABLE_RIGHTS, " ON TABLE ", &schema.tables);
        grant(SEQUENCE_RIGHTS, " ON SEQUENCE ", &schema.sequences);
        grant("EXECUTE", " ON ROUTINE ", &schema.routines);
        if schema.owned {
            continue;
        }
        script.push(&[
            Syntax("GRANT USAGE, CREATE ON SCHEMA "),
            Name(name),
            Syntax(" TO "),
            Name(owner),
            Syntax(" WITH GRANT OPTION"),
        ]);
    }
}

fn default_privileges(script: &mut Script, content: &DatabaseContent, owner: &str) {
    script.note("What those who own something here make later.");
    for maker in content.object_creators() {
        for (rights, objects) in [
            (TABLE_RIGHTS, " ON TABLES TO "),
            (SEQUENCE_RIGHTS, " ON SEQUENCES TO "),
            ("EXECUTE", " ON ROUTINES TO "),
            ("USAGE, CREATE", " ON SCHEMAS TO "),
        ] {
            script.push(&[
                Syntax("ALTER DEFAULT PRIVILEGES FOR ROLE "),
                Name(maker),
                Syntax(" GRANT "),
                Syntax(rights),
                Syntax(objects),
                Name(owner),
                Syntax(" WITH GRANT OPTION"),
            ]);
        }
    }
}

/// Revokes the privileges in [`DatabaseContent::public_rights`] from PUBLIC, because otherwise the
/// users of every tenant would have them. Before that, grants them to the existing login roles.
fn move_public_rights(
    script: &mut Script,
    content: &DatabaseContent,
    database: &str,
) -> Vec<RightsChange> {
    let mut changes = Vec::new();
    if content.public_rights.is_empty() {
        return changes;
    }
    script.note("Grant the privileges of PUBLIC to the existing roles instead.");
    for right in &content.public_rights {
        for role in content.logins_without(*right) {
            let [what, on] = right.parts(database);
            script.push(&[Syntax("GRANT "), what, on, Syntax(" TO "), Name(role)]);
            let grantee = Grantee::Role(role.to_owned());
            changes.push(RightsChange {
                grantee,
                right: *right,
            });
        }
    }
    for right in &content.public_rights {
        let [what, on] = right.parts(database);
        script.push(&[Syntax("REVOKE "), what, on, Syntax(" FROM PUBLIC")]);
        changes.push(RightsChange {
            grantee: Grantee::Public,
            right: *right,
        });
    }
    changes
}

/// Releases a database: drops its users' roles, gives their objects to the database's owner, and
/// undoes `changes`. `session` is in that database, `home` in the administrator's own database.
pub(super) async fn release(
    (home, session): (&Session, &Session),
    database: &str,
    roles: &[String],
    changes: &[RightsChange],
) -> Result<()> {
    let mut ours = Vec::new();
    for name in roles {
        if role::origin(session, name).await? == role::RoleOrigin::Tidegate {
            role::end_sessions(home, name).await?;
            ours.push(name.as_str());
        }
    }
    let heir = DatabaseContent::database_owner(session).await?;
    let restored = restore(database, changes, &DatabaseContent::logins(session).await?);
    session.begin().await?;
    let mut done = revocation::drop_roles(session, &ours, &heir, true).await;
    if done.is_ok() {
        done = restored.run_each(session).await;
    }
    if done.is_ok() {
        done = session
            .client
            .batch_execute(FORGET)
            .await
            .map_err(Into::into);
    }
    session.end(done).await
}

/// The SQL that drops the service's event trigger and the functions of claims, with their schemas,
/// in a database that is released.
const FORGET: &str = include_str!("forget.sql");

/// Returns the statements that undo `changes`. `logins` are the login roles that exist; a role that
/// was dropped needs no statement.
fn restore(database: &str, changes: &[RightsChange], logins: &BTreeSet<String>) -> Script {
    let mut script = Script::default();
    for RightsChange { grantee, right } in changes {
        let [what, on] = right.parts(database);
        match grantee {
            Grantee::Public => script.push(&[Syntax("GRANT "), what, on, Syntax(" TO PUBLIC")]),
            Grantee::Role(role) if logins.contains(role) => {
                script.push(&[Syntax("REVOKE "), what, on, Syntax(" FROM "), Name(role)]);
            }
            Grantee::Role(_) => {}
        }
    }
    script
}
