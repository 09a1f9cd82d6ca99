//! Creates the role of a new user with its memberships, in one transaction.
//!
//! The transaction changes only roles and memberships. If it changed the privileges of a database
//! or schema, all sessions would read these again and plan their statements again.

use SqlPart::{Name, Syntax};
use tidegate_wire::version;

use super::authenticator::{self, AuthenticatorRoom};
use super::role::{self, RoleOrigin};
use super::script::{Script, SqlPart, list};
use super::session::Session;
use super::{Admin, Error, Result, all_users_role, group};

pub(super) struct NewUser<'a> {
    pub(super) database: &'a str,
    pub(super) role: &'a str,
    /// The roles of the user's groups.
    pub(super) groups: &'a [&'a str],
}

/// Creates the role of a user, or completes a role that an earlier attempt left behind. Returns
/// whether the user may still need an authenticator. `home` is in the administrator's own database.
///
/// # Errors
///
/// [`Error::RoleExists`], [`Error::StaysMember`].
pub(super) async fn create(admin: &Admin, home: &Session, new: &NewUser<'_>) -> Result<bool> {
    let Some(users_role) = all_users_role::name(new.database) else {
        return create_with_own_grants(admin, home, new).await;
    };
    let mut names = vec![new.role, users_role.as_str()];
    names.extend(new.groups);
    let found = role::origins(home, &names).await?;
    if let Some(place) = found.iter().position(|found| *found == RoleOrigin::Other) {
        return Err(Error::RoleExists(names[place].to_owned()));
    }
    if found[1] == RoleOrigin::Missing {
        let session = admin.open(new.database).await?;
        all_users_role::provide(admin, &session, new.database).await?;
    }
    let mut script = make(admin, new.role, found[0]);
    if found[0] == RoleOrigin::Tidegate {
        script.append(all_users_role::join(home, &users_role, &[new.role]));
        script.run(home).await?;
        if !new.groups.is_empty() {
            group::set(home, (new.database, new.role), new.groups).await?;
        }
        return Ok(true);
    }
    for (group, found) in new.groups.iter().zip(&found[2..]) {
        if *found == RoleOrigin::Missing {
            script.append(group::create(group));
        }
    }
    script.push(&membership(home, new.role, &names[1..]));
    let room = authenticator::find_room(home, new.database).await?;
    if let AuthenticatorRoom::In(authenticator) = &room {
        let users = [new.role.to_owned()];
        script.append(authenticator::join(home, authenticator, &users));
    }
    script.run(home).await?;
    Ok(matches!(room, AuthenticatorRoom::Full))
}

fn make(admin: &Admin, role: &str, origin: RoleOrigin) -> Script {
    let verifier = admin.passwords.verifier(role);
    match origin {
        RoleOrigin::Missing => role::create(role, Some(&verifier)),
        RoleOrigin::Tidegate | RoleOrigin::Other => role::password(role, &verifier),
    }
}

/// Returns the parts of the statement that makes `role` a member of the roles `of`.
fn membership<'a>(session: &Session, role: &'a str, of: &[&'a str]) -> Vec<SqlPart<'a>> {
    let mut parts = vec![Syntax("GRANT ")];
    parts.extend(list(of.iter().map(|name| Name(name))));
    parts.extend([Syntax(" TO "), Name(role)]);
    parts.push(Syntax(version::group_membership(session.version)));
    parts
}

/// Does what [`create`] does for a tenant whose name is too long for a role of all users. Grants
/// CONNECT and USAGE to the user's role itself.
async fn create_with_own_grants(admin: &Admin, home: &Session, new: &NewUser<'_>) -> Result<bool> {
    let session = admin.open(new.database).await?;
    let origin = role::origin(&session, new.role).await?;
    if origin == RoleOrigin::Other {
        return Err(Error::RoleExists(new.role.to_owned()));
    }
    let mut script = authenticator::provisioning_script();
    script.append(make(admin, new.role, origin));
    script.append(all_users_role::grant_connect(new.database, new.role));
    if let Some(public) = session.owner_of_public().await? {
        let usage = all_users_role::grant_usage(new.role);
        script.append(session.with_privileges_of(&public, usage).await?);
    }
    script.run(&session).await?;
    if !new.groups.is_empty() {
        group::set(home, (new.database, new.role), new.groups).await?;
    }
    Ok(true)
}
