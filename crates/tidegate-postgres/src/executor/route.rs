//! Chooses the kind of connection for a statement, by the author of its text.
//!
//! Text of a caller runs on a connection that logged in as the caller's role. Text of Tidegate or
//! of the tenant's owner runs on shared connections:
//!
//! - Those of the owner and of the default user log in as that role, which is the same for all
//!   their callers.
//! - Those of other users log in as an authenticator and switch to the caller's role for the
//!   transaction. If code of one user could run for another, there is no authenticator.

use std::fmt;
use std::sync::Arc;

use tidegate_sql::statement::{BoundStatement, Kind};
use tidegate_sql::{Author, BoxFuture, DatabaseName, Login, Result, RoleName, RoleUse};

use crate::authenticator::{Authenticators, SWITCH};
use crate::statement::RoleSwitch;

/// Decides which login role acts for users, and how.
pub trait Authentication: Send + Sync {
    /// The authenticator for statements of `role`; `None` if the role needs a login of its own.
    fn of<'a>(
        &'a self,
        database: &'a DatabaseName,
        role: &'a RoleName,
    ) -> BoxFuture<'a, Option<RoleName>>;

    /// Requires a new decision before the next statement: a definition or a privilege may have
    /// changed.
    fn invalidate(&self, database: &DatabaseName);

    /// Forgets a database that was dropped.
    fn forget(&self, database: &DatabaseName);

    /// Checks whether the decisions are still valid. Called every second.
    fn refresh(&self) -> BoxFuture<'_, Result<()>>;

    /// A `SELECT` that switches to the role in its only parameter until the transaction ends. It
    /// fails if the switch is not, or no longer, allowed.
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

    fn invalidate(&self, database: &DatabaseName) {
        Self::invalidate(self, database);
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

/// The kind of connection for a statement.
#[derive(Clone)]
pub(super) struct Route {
    /// The login of the connection.
    pub(super) login: Login,
    /// The caller's role, if the connection switches to it, and the text of the switch.
    role: Option<(RoleName, &'static str)>,
}

impl Route {
    /// A connection that logged in as the caller, for text of callers.
    pub(super) fn own(login: &Login) -> Self {
        Self {
            login: login.clone(),
            role: None,
        }
    }

    /// A connection that logged in as the caller's role, for trusted text.
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

    /// The role switch before its statements.
    pub(super) fn switch(&self) -> Option<RoleSwitch<'_>> {
        let (role, text) = self.role.as_ref()?;
        Some(RoleSwitch { role, text })
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

/// Chooses the connections for statements of `author`.
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

/// Whether the role is not a tenant's user, whose role is called `<database>/<name>`. Many callers
/// share such a role, and it needs no authenticator. Users without an authenticator use their own
/// logins for all statements: a second kind of connection would only take room in the pool.
fn is_owner(login: &Login) -> bool {
    let database = login.database.as_str();
    let rest = login.role.as_str().strip_prefix(database);
    !rest.is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a statement may run on a shared connection.
fn may_share(author: Author, bound: &BoundStatement) -> bool {
    let is_plain = matches!(bound.statement.kind(), Kind::Read | Kind::Write);
    match author {
        Author::Caller => false,
        Author::Service => is_plain,
        Author::Owner => is_plain && !writes_settings(bound),
    }
}

/// Whether a statement may be an `UPDATE` of `pg_settings`, whose rule changes settings of the
/// session without a call in the statement's text.
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
