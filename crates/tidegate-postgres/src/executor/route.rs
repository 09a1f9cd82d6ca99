//! Chooses the kind of connection (the *route*) for a statement, depending on its author.
//!
//! A statement that a caller wrote runs on a connection that logged in as the caller's role. Most
//! statements that Tidegate or the tenant's owner wrote run on shared connections:
//!
//! - Shared connections of the owner log in as the owner's role, and those of the default user as
//!   the default user's role.
//! - Shared connections of other users log in as an authenticator and switch to the caller's role
//!   for the transaction. In a database where code of one user could run for another, users have
//!   no authenticator.
//! - Shared connections of members log in as the members' group and seal the member's claims for
//!   the transaction. A statement that a caller wrote never runs as a member.

use std::fmt;
use std::sync::Arc;

use tidegate_sql::statement::{BoundStatement, Kind};
use tidegate_sql::{
    Author, BoxFuture, ConnectionLimit, DatabaseName, Error, Login, Member, Result, RoleName,
    RoleUse, SharedBy,
};
use tokio::time::Instant;

use super::caller_limit::{CallerPermit, LimitedCaller};
use crate::authenticator::{Authenticators, SWITCH};
use crate::claims_key::ClaimsKey;
use crate::metadata::MetadataCache;
use crate::statement::{CallerSwitch, Seal, StatementTask, TransactionPosition};

/// Decides which role logs in on connections for users, and how these connections switch to the
/// user's role.
pub trait Authentication: Send + Sync {
    /// The authenticator for statements of `role`; `None` if the role needs a login of its own.
    fn of<'a>(
        &'a self,
        database: &'a DatabaseName,
        role: &'a RoleName,
    ) -> BoxFuture<'a, Option<RoleName>>;

    /// Invalidates the decision about a database, because a definition or a privilege may have
    /// changed. The next statement then renews the decision or makes a new one.
    fn invalidate(&self, database: &DatabaseName);

    /// Reports that PostgreSQL refuses the login of an authenticator.
    fn login_refused(&self, database: &DatabaseName, authenticator: &RoleName);

    /// Forgets the decision about a database that was dropped.
    fn forget(&self, database: &DatabaseName);

    /// Checks whether the decisions are still valid. Called after roles may have changed.
    fn refresh(&self) -> BoxFuture<'_, Result<()>>;

    /// A `SELECT` that switches to the role in `$1` until the transaction ends. It fails if the
    /// switch is no longer allowed.
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

    fn login_refused(&self, database: &DatabaseName, authenticator: &RoleName) {
        Self::login_refused(self, database, authenticator);
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

/// The kind of connection on which a statement runs.
#[derive(Clone)]
pub(super) struct Route {
    /// The login of the connection.
    pub(super) login: Login,
    switch: RouteSwitch,
}

/// How the connection acts for the caller.
#[derive(Clone)]
enum RouteSwitch {
    /// The connection logged in as the caller's role.
    None,
    /// The connection switches to the caller's role. The fields are the role, and the text of the
    /// statement that switches.
    Role(RoleName, &'static str),
    /// The connection has logged in as the group of the member. It seals the member's claims with
    /// this key.
    Claims(Arc<Member>, ClaimsKey),
}

impl Route {
    /// A connection that logged in as the caller, for statements that may not run on a shared
    /// connection. Connections for members need a key: see [`Self::member`].
    pub(super) fn own(login: &Login) -> Self {
        Self {
            login: login.clone(),
            switch: RouteSwitch::None,
        }
    }

    /// A connection that logged in as the group of a member. If `shares` is true, the connection is
    /// shared and runs only statements that Tidegate or the owner wrote. Otherwise it is reset
    /// fully after the statement.
    pub(super) fn member(login: &Login, shares: bool, member: Arc<Member>, key: ClaimsKey) -> Self {
        let route = if shares {
            Self::shared(login, login.role.clone(), SharedBy::Members)
        } else {
            Self::own(login)
        };
        Self {
            switch: RouteSwitch::Claims(member, key),
            ..route
        }
    }

    /// A shared connection that logged in as the caller's role, for statements that Tidegate or the
    /// owner wrote.
    fn trusted(login: &Login) -> Self {
        let by = match login.role_use {
            RoleUse::Anonymous => SharedBy::Anonymous,
            _ => SharedBy::Users,
        };
        Self::shared(login, login.role.clone(), by)
    }

    /// A connection that logged in as `authenticator`. The statement `text` switches to the
    /// caller's role.
    fn authenticator(login: &Login, authenticator: RoleName, text: &'static str) -> Self {
        Self {
            switch: RouteSwitch::Role(login.role.clone(), text),
            ..Self::shared(login, authenticator, SharedBy::Users)
        }
    }

    fn shared(login: &Login, role: RoleName, by: SharedBy) -> Self {
        Self {
            login: Login {
                database: login.database.clone(),
                role,
                role_use: RoleUse::Trusted(by),
            },
            switch: RouteSwitch::None,
        }
    }

    /// The switch to the caller that precedes the statements; `None` if the connection logged in as
    /// the caller.
    pub(super) fn switch(&self) -> Option<CallerSwitch<'_>> {
        match &self.switch {
            RouteSwitch::None => None,
            RouteSwitch::Role(role, text) => Some(CallerSwitch::Role { role, text }),
            RouteSwitch::Claims(member, key) => Some(CallerSwitch::Claims(Seal { member, key })),
        }
    }

    /// The caller that occupies the connection, for `CallerLimit`. `None` if the connection logged
    /// in as the role of the request, because the pool already limits the connections of that role.
    pub(super) fn caller(&self, limit: ConnectionLimit) -> Option<LimitedCaller> {
        let Login { database, role, .. } = &self.login;
        match (&self.switch, limit) {
            (RouteSwitch::Role(role, _), _) => Some(LimitedCaller::user(database, role)),
            (RouteSwitch::Claims(..), ConnectionLimit::Subscriptions(table)) => {
                Some(LimitedCaller::subscriptions(database, role, table))
            }
            (RouteSwitch::Claims(member, _), ConnectionLimit::Caller) => {
                Some(LimitedCaller::member(database, member))
            }
            (RouteSwitch::None, _) => None,
        }
    }

    /// Whether the connection logged in as an authenticator.
    pub(super) fn is_authenticator(&self) -> bool {
        matches!(self.switch, RouteSwitch::Role(..))
    }

    /// A copy of this route and its key, for a second attempt with another key. `None` if the route
    /// seals no claims.
    pub(super) fn sealed(&self) -> Option<(Self, ClaimsKey)> {
        match self.switch {
            RouteSwitch::Claims(_, key) => Some((self.clone(), key)),
            RouteSwitch::None | RouteSwitch::Role(..) => None,
        }
    }

    /// The same route with another key. A route that seals no claims stays unchanged.
    pub(super) fn with_key(mut self, other: ClaimsKey) -> Self {
        if let RouteSwitch::Claims(_, key) = &mut self.switch {
            *key = other;
        }
        self
    }
}

/// The data that a statement needs in addition to the checked-out connection.
pub(super) struct CheckedOut {
    pub(super) route: Route,
    pub(super) metadata: Arc<MetadataCache>,
    pub(super) deadline: Option<Instant>,
    /// The caller's permit to occupy a connection; `None` if [`Route::caller`] names no caller.
    #[expect(dead_code, reason = "held until it is dropped")]
    pub(super) permit: Option<CallerPermit>,
}

impl CheckedOut {
    /// The task for a statement outside of an explicit transaction.
    pub(super) fn task<'a>(&'a self, bound: &'a BoundStatement) -> StatementTask<'a> {
        self.task_at(TransactionPosition::Alone, bound)
    }

    /// The task for a statement at a position in a transaction.
    pub(super) fn task_at<'a>(
        &'a self,
        position: TransactionPosition,
        bound: &'a BoundStatement,
    ) -> StatementTask<'a> {
        StatementTask {
            bound,
            login: &self.route.login,
            switch: self.route.switch(),
            metadata: &self.metadata,
            deadline: self.deadline,
            position,
        }
    }
}

/// Refuses a statement that a member wrote. The members of a group share sessions, so such a
/// statement could read data that a statement of another member left in the session. Code that
/// calls the executor must already have refused such a request, so the error is an internal one.
pub(super) fn check_author(login: &Login, author: Author) -> Result<()> {
    match (&login.role_use, author) {
        (RoleUse::Member(_), Author::Caller) => {
            Err(Error::internal("a member has no text of its own"))
        }
        _ => Ok(()),
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("login", &self.login)
            .field("switch", &self.switch())
            .finish()
    }
}

/// Chooses the kind of connection for statements of `author` that run together.
pub(super) async fn route(
    authentication: Option<&Arc<dyn Authentication>>,
    login: &Login,
    author: Author,
    statements: &[&BoundStatement],
) -> Route {
    let mut statements = statements.iter();
    if login.role_use.is_trusted() || !statements.all(|bound| may_share(author, bound)) {
        return Route::own(login);
    }
    if login.role_use == RoleUse::Anonymous || is_owner(login) {
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

/// Whether the login's role is the role of the tenant's owner; roles of other users are called
/// `<database>/<name>`. The owner's role acts for many callers and needs no authenticator.
///
/// For a user without an authenticator, [`route`] returns [`Route::own`]. Shared connections that
/// log in as this user would serve no other user, and only occupy the pool.
fn is_owner(login: &Login) -> bool {
    let database = login.database.as_str();
    let rest = login.role.as_str().strip_prefix(database);
    !rest.is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a statement may run on a shared connection.
pub(super) fn may_share(author: Author, bound: &BoundStatement) -> bool {
    let is_plain = matches!(bound.statement.kind(), Kind::Read | Kind::Write);
    match author {
        Author::Caller => false,
        Author::Service => is_plain,
        // On a shared connection `session_user` is not the caller's role, so a statement with
        // `session_user` needs the caller's own login.
        Author::Owner => is_plain && !bound.statement.names_login() && !writes_settings(bound),
    }
}

/// Whether a statement may be an `UPDATE` of the view `pg_settings`. A rule of this view changes
/// settings of the session, although the statement's text calls no function.
fn writes_settings(bound: &BoundStatement) -> bool {
    const VIEW: &[u8] = b"pg_settings";
    let text = bound.statement.text().as_bytes();
    let is_view = |part: &[u8]| part.eq_ignore_ascii_case(VIEW);
    bound.statement.kind() == Kind::Write
        && (text.windows(VIEW.len()).any(is_view) || has_escaped_name(text))
}

/// Whether the text has a name with Unicode escapes (`U&"…"`).
fn has_escaped_name(text: &[u8]) -> bool {
    let is_one = |part: &[u8]| part.eq_ignore_ascii_case(b"u&\"");
    text.windows(3).any(is_one)
}
