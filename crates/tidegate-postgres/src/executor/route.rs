//! On which connections a statement runs: who wrote its text decides.
//!
//! What a caller wrote runs on a connection that logged in as the caller's role. What Tidegate
//! generated, and what the tenant's owner stored, runs on connections that callers use in turn:
//!
//! - those of the owner and of the default user log in as that role, which is the same for all
//!   their callers;
//! - those of other users log in as an authenticator and switch to the caller's role for the
//!   transaction. Where code of one user could run for another there is no authenticator.

use std::fmt;
use std::sync::Arc;

use tidegate_sql::statement::{BoundStatement, Kind};
use tidegate_sql::{Author, BoxFuture, DatabaseName, Login, Result, RoleName, RoleUse};

use crate::authenticator::{Authenticators, SWITCH};
use crate::session::prefix::Switch;

/// Tells which login role acts for users, and how.
pub trait Authentication: Send + Sync {
    /// The authenticator on which statements of `role` may run; `None` where the role needs a login
    /// of its own.
    fn of<'a>(
        &'a self,
        database: &'a DatabaseName,
        role: &'a RoleName,
    ) -> BoxFuture<'a, Option<RoleName>>;

    /// Decides again before the next statement: a definition or a right may have changed.
    fn distrust(&self, database: &DatabaseName);

    /// Forgets a database that is dropped.
    fn forget(&self, database: &DatabaseName);

    /// Looks whether what was decided still holds. Called every second.
    fn refresh(&self) -> BoxFuture<'_, Result<()>>;

    /// A `SELECT` that switches to the role named by its one parameter until the transaction ends,
    /// and fails when that is not allowed, or not any more.
    fn switch(&self) -> &'static str;
}

impl Authentication for Authenticators {
    fn of<'a>(
        &'a self,
        database: &'a DatabaseName,
        role: &'a RoleName,
    ) -> BoxFuture<'a, Option<RoleName>> {
        Box::pin(Self::of(self, database, role))
    }

    fn distrust(&self, database: &DatabaseName) {
        Self::distrust(self, database);
    }

    fn forget(&self, database: &DatabaseName) {
        Self::forget(self, database);
    }

    fn refresh(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(Self::refresh(self))
    }

    fn switch(&self) -> &'static str {
        SWITCH
    }
}

/// On which connections a statement runs, and as whom.
#[derive(Clone)]
pub(super) struct Route {
    /// As what the connection logged in.
    pub(super) login: Login,
    /// The caller's role, where the connection switches to it.
    role: Option<(RoleName, &'static str)>,
}

impl Route {
    /// A connection that logged in as the caller, for texts of callers.
    pub(super) fn own(login: &Login) -> Self {
        Self {
            login: login.clone(),
            role: None,
        }
    }

    /// A connection that logged in as the caller's role, for trusted texts.
    fn trusted(login: &Login) -> Self {
        Self::shared(login, login.role.clone())
    }

    /// A connection of the authenticator, which switches to the caller's role by `text`.
    fn authenticator(login: &Login, authenticator: RoleName, text: &'static str) -> Self {
        Self {
            role: Some((login.role.clone(), text)),
            ..Self::shared(login, authenticator)
        }
    }

    fn shared(login: &Login, role: RoleName) -> Self {
        let anonymous = login.role_use.is_anonymous() && role == login.role;
        Self {
            login: Login {
                database: login.database.clone(),
                role,
                role_use: RoleUse::Trusted { anonymous },
            },
            role: None,
        }
    }

    /// The switch in front of its statements.
    pub(super) fn switch(&self) -> Option<Switch<'_>> {
        let (role, text) = self.role.as_ref()?;
        Some(Switch { role, text })
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("login", &self.login)
            .field("role", &self.role.as_ref().map(|(role, _)| role))
            .finish()
    }
}

/// The connections for statements of `author`.
pub(super) async fn route(
    authentication: Option<&Arc<dyn Authentication>>,
    login: &Login,
    (author, statements): (Author, &[&BoundStatement]),
) -> Route {
    let mut statements = statements.iter();
    if login.role_use.is_trusted() || !statements.all(|bound| may_share(author, bound)) {
        return Route::own(login);
    }
    if login.role_use.is_anonymous() || is_owner(login) {
        return Route::trusted(login);
    }
    let Some(authentication) = authentication else {
        return Route::own(login);
    };
    match authentication.of(&login.database, &login.role).await {
        Some(role) => Route::authenticator(login, role, authentication.switch()),
        None => Route::own(login),
    }
}

/// Whether the role is not one of the users that a tenant makes, which are called
/// `<database>/<name>`. Such a role has many callers and needs no authenticator. Users without an
/// authenticator keep their own logins for everything: a second kind of connection for each would
/// only take the place of others in the pool.
fn is_owner(login: &Login) -> bool {
    let database = login.database.as_str();
    let rest = login.role.as_str().strip_prefix(database);
    !rest.is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a statement may run where callers take turns.
fn may_share(author: Author, bound: &BoundStatement) -> bool {
    let is_plain = matches!(bound.statement.kind(), Kind::Read | Kind::Write);
    match author {
        Author::Caller => false,
        Author::Service => is_plain,
        Author::Owner => is_plain && !writes_settings(bound),
    }
}

/// Whether a statement may be an `UPDATE` of `pg_settings`, by whose rule it changes settings of the
/// session without any call in its text.
fn writes_settings(bound: &BoundStatement) -> bool {
    const VIEW: &[u8] = b"pg_settings";
    let text = bound.statement.text().as_bytes();
    let is_view = |part: &[u8]| part.eq_ignore_ascii_case(VIEW);
    bound.statement.kind() == Kind::Write
        && (text.windows(VIEW.len()).any(is_view) || has_escaped_name(text))
}

/// Whether a name is written with escapes (`U&"…"`).
fn has_escaped_name(text: &[u8]) -> bool {
    let is_one = |part: &[u8]| part.eq_ignore_ascii_case(b"u&\"");
    text.windows(3).any(is_one)
}
