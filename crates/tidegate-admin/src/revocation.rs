//! Drops roles together with the grants that depend on them, in one transaction.
//!
//! Only the grantor can revoke a grant on another role's object, and only while the grantor holds
//! the GRANT OPTION. Even a superuser has to act as the grantor to revoke the grant (`SET ROLE`).
//! It is not enough to revoke the grantor's own privilege with CASCADE: if the grantor also holds
//! the GRANT OPTION through a membership, PostgreSQL keeps the grants that the grantor made, even
//! when the membership ends later.

use std::collections::BTreeSet;

use SqlPart::{Name, Quoted, Syntax};

use super::grants::{self, ActingRole, Object, ObjectGrant, TemporaryGrant};
use super::script::{Script, SqlPart};
use super::session::Session;
use super::{Result, group, handover, role};

/// Drops roles that Tidegate created, in the running transaction. With `reassign`, the objects that
/// they own in the session's database are first given to `heir`. Without `reassign`, dropping a
/// role that owns objects is refused.
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
                Syntax("REASSIGN OWNED BY "),
                Name(role),
                Syntax(" TO "),
                Name(heir),
            ]);
        }
        let script = session.with_privileges_of(heir, script).await?;
        let script = with_privileges_of(session, roles, script).await?;
        script.run_each(session).await?;
        let given = (roles, heir);
        handover::require_data_only(session, given, handover::HandoverStep::Reassigned).await?;
    }
    // `DROP ROLE` would end the memberships too. They are ended first, because REVOKE … CASCADE
    // keeps the grants of a grantor that still holds the GRANT OPTION through a membership.
    let memberships = group::leave_all(session, roles).await?;
    memberships.run_each(session).await?;
    revoke_grants(session, roles, heir).await?;
    if !reassign {
        // A session that started after the first check may have created an object, and `DROP OWNED`
        // would drop it. So ownership is checked again.
        for role in roles {
            role::require_nothing_owned(session, role).await?;
        }
    }
    let mut script = Script::default();
    for role in roles {
        script.push(&[Syntax("DROP OWNED BY "), Name(role)]);
    }
    let mut script = with_privileges_of(session, roles, script).await?;
    for role in roles {
        script.push(&[Syntax("DROP ROLE "), Name(role)]);
    }
    script.run_each(session).await
}

async fn with_privileges_of(
    session: &Session,
    roles: &[&str],
    mut script: Script,
) -> Result<Script> {
    for role in roles {
        script = session.with_privileges_of(role, script).await?;
    }
    Ok(script)
}

/// Revokes the grants that `roles` received or made. Skips a grant that the administrator cannot
/// revoke; PostgreSQL names it in the error of `DROP ROLE`.
async fn revoke_grants(session: &Session, roles: &[&str], heir: &str) -> Result<()> {
    let mut writer = RevocationWriter::of(session.superuser);
    let grants = grants::of_roles(session, roles).await?;
    for grant in &grants {
        if !grant.by_owner() {
            writer.as_grantor(grant);
        } else if session.superuser || !grant.grantor.assumable {
            writer.as_administrator(grant, heir);
        } else {
            writer.as_grantor(grant);
        }
    }
    writer.act_as(None);
    let required_memberships: Vec<_> = writer.required_memberships.into_iter().collect();
    let script = with_privileges_of(session, &required_memberships, writer.script).await?;
    script.run_each(session).await
}

/// Builds a script of REVOKE statements and the role switches that they need.
struct RevocationWriter<'a> {
    script: Script,
    superuser: bool,
    /// The roles that the administrator must be a member of while the statements run.
    required_memberships: BTreeSet<&'a str>,
    /// The role that runs the statements; `None` for the administrator.
    role: Option<&'a str>,
}

impl<'a> RevocationWriter<'a> {
    fn of(superuser: bool) -> Self {
        Self {
            script: Script::default(),
            superuser,
            required_memberships: BTreeSet::new(),
            role: None,
        }
    }

    fn act_as(&mut self, role: Option<&'a str>) {
        if self.role == role {
            return;
        }
        self.role = role;
        match role {
            Some(role) => {
                self.required_memberships.insert(role);
                self.script.push(&[Syntax("SET LOCAL ROLE "), Name(role)]);
            }
            None => self.script.push(&[Syntax("RESET ROLE")]),
        }
    }

    /// Acts as the owner of an object. A superuser needs no role switch, because PostgreSQL lets it
    /// act for every owner, even in schemas that the owner may not use. An administrator that is
    /// not a superuser switches to the role of the owner, because PostgreSQL could otherwise choose
    /// a wrong grantor: another role that the administrator is a member of.
    fn act_as_owner(&mut self, owner: &'a str) {
        self.act_as(Some(owner).filter(|_| !self.superuser));
    }

    /// Adds the statement with which the administrator revokes a grant that the object's owner
    /// made. If the owner is `heir`, the administrator must be a member of `heir` while the
    /// statements run.
    fn as_administrator(&mut self, grant: &'a ObjectGrant, heir: &str) {
        if grant.grantor.role == heir {
            self.required_memberships.insert(&grant.grantor.role);
        }
        self.act_as(None);
        let revoke = revoke(grant, grant.grantee.as_deref(), RevokedPart::Privilege);
        self.script.push(&revoke);
    }

    /// Adds the statements that revoke a grant as its grantor. If the grantor lacks privileges for
    /// the REVOKE, they are granted before it and revoked after it. Adds nothing if
    /// [`missing_privileges`] returns `None`, or if the administrator cannot act as the grantor.
    fn as_grantor(&mut self, grant: &'a ObjectGrant) {
        let grantor = &grant.grantor;
        let Some(missing_privileges) = missing_privileges(grant).filter(|_| grantor.assumable)
        else {
            return;
        };
        for privilege in &missing_privileges {
            self.act_as_owner(&privilege.owner.role);
            self.script.push(&privilege.grant);
        }
        self.act_as(Some(&grantor.role));
        let revoke = revoke(grant, grant.grantee.as_deref(), RevokedPart::Privilege);
        self.script.push(&revoke);
        for privilege in missing_privileges.iter().rev() {
            self.act_as_owner(&privilege.owner.role);
            self.script.push(&privilege.revoke);
        }
    }
}

/// A privilege that the grantor lacks, and without which it cannot revoke its grant.
struct MissingPrivilege<'a> {
    /// The owner of the object or schema, who can grant the privilege.
    owner: &'a ActingRole,
    /// The statement that grants the privilege to the grantor.
    grant: Vec<SqlPart<'a>>,
    /// The statement that revokes the privilege from the grantor again.
    revoke: Vec<SqlPart<'a>>,
}

/// The privileges that the grantor needs to revoke its grant, but does not have. `None` if the
/// administrator cannot grant them, or if revoking them later would take a privilege from a role
/// that remains.
fn missing_privileges(grant: &ObjectGrant) -> Option<Vec<MissingPrivilege<'_>>> {
    let mut missing_privileges = Vec::new();
    let grantor = grant.grantor.role.as_str();
    if let Some((schema, owner)) = grant
        .object
        .schema
        .as_ref()
        .filter(|_| !grant.may_use_schema)
    {
        let on = [Syntax("USAGE ON SCHEMA "), Quoted(schema)];
        missing_privileges.push(MissingPrivilege {
            owner,
            grant: [
                &[Syntax("GRANT ")],
                &on[..],
                &[Syntax(" TO "), Name(grantor)],
            ]
            .concat(),
            revoke: [
                &[Syntax("REVOKE ")],
                &on[..],
                &[Syntax(" FROM "), Name(grantor)],
            ]
            .concat(),
        });
    }
    if !grant.has_grant_option && !grant.by_owner() {
        let mut statement = vec![Syntax("GRANT ")];
        statement.extend(privileges_on_object(grant));
        statement.extend([Syntax(" TO "), Name(grantor), Syntax(" WITH GRANT OPTION")]);
        let part = match grant.temporary {
            TemporaryGrant::Privilege => RevokedPart::Privilege,
            TemporaryGrant::GrantOptionOnly => RevokedPart::GrantOptionOnly,
            TemporaryGrant::Harmful => return None,
        };
        missing_privileges.push(MissingPrivilege {
            owner: &grant.object.owner,
            grant: statement,
            revoke: revoke(grant, Some(grantor), part),
        });
    }
    missing_privileges
        .iter()
        .all(|privilege| privilege.owner.assumable)
        .then_some(missing_privileges)
}

#[derive(Clone, Copy)]
enum RevokedPart {
    Privilege,
    GrantOptionOnly,
}

fn revoke<'a>(
    grant: &'a ObjectGrant,
    from: Option<&'a str>,
    part: RevokedPart,
) -> Vec<SqlPart<'a>> {
    let mut parts = vec![match part {
        RevokedPart::Privilege => Syntax("REVOKE "),
        RevokedPart::GrantOptionOnly => Syntax("REVOKE GRANT OPTION FOR "),
    }];
    parts.extend(privileges_on_object(grant));
    parts.push(Syntax(" FROM "));
    parts.push(from.map_or(Syntax("PUBLIC"), Name));
    parts.push(Syntax(" CASCADE"));
    parts
}

/// The SQL between GRANT or REVOKE and the role: the privileges and the object of a grant.
fn privileges_on_object(grant: &ObjectGrant) -> Vec<SqlPart<'_>> {
    let Object {
        kind, name, column, ..
    } = &grant.object;
    let mut parts = Vec::new();
    for privilege in &grant.privileges {
        if !parts.is_empty() {
            parts.push(Syntax(", "));
        }
        parts.push(Quoted(privilege));
        if let Some(column) = column {
            parts.extend([Syntax(" ("), Quoted(column), Syntax(")")]);
        }
    }
    parts.extend([Syntax(" ON "), Syntax(kind), Syntax(" "), Quoted(name)]);
    parts
}
