//! As whom a request runs.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use tidegate_identity::{AnonymousSql, StoreError};
use tidegate_oauth::Claims;
use tidegate_sql::{DatabaseName, Login, Principal, RoleName, Sharing};

use crate::app::App;
use crate::error::Failure;
use crate::memory::Holder;

const DATABASE: HeaderName = HeaderName::from_static("tidegate-database");

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    /// As whom its statements run.
    pub principal: Principal,
    /// Whether it showed no token, so that a token might give it more rights.
    pub anonymous: bool,
}

impl Caller {
    /// The login as which its statements run.
    pub fn login(&self) -> Option<&Login> {
        match &self.principal {
            Principal::Role(login) => Some(login),
            Principal::Control | Principal::Catalog(_) => None,
        }
    }

    /// Whose memory its requests take.
    pub fn holder(&self) -> Holder {
        holder(self.login())
    }

    /// The login, when it is a default user's. Anybody can get a token of the default user (the
    /// guest grant needs no secret), so that what holds for anonymous callers holds for it too.
    pub fn default_user(&self) -> Option<&Login> {
        self.login()
            .filter(|login| login.sharing == Sharing::Strangers)
    }
}

/// The caller by its token, or without one the default user of the database in the header
/// `Tidegate-Database` or of the configured one.
///
/// # Errors
///
/// 401 for a token that is not accepted (the request never becomes an anonymous one), and when there
/// is no token and no default user; 400 for more than one `Tidegate-Database`.
pub async fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Failure> {
    if let Some(token) = bearer(headers)? {
        return by_token(app, token).map(Caller::from);
    }
    anonymous(app, named_database(headers)?).await
}

/// The database that the header `Tidegate-Database` names.
///
/// # Errors
///
/// 400 for more than one: a proxy may have checked another of them than the one that would count.
pub fn named_database(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    let mut names = headers.get_all(DATABASE).iter();
    match (names.next(), names.next()) {
        (name, None) => Ok(name.map(|name| name.to_str().unwrap_or_default())),
        (_, Some(_)) => Err(Failure::input(
            "`Tidegate-Database`: expected one header, found several",
        )),
    }
}

/// Who shows no token: the default user of the database that is named, or of the configured one.
///
/// # Errors
///
/// 401 when there is no such user.
pub async fn anonymous(app: &App, named: Option<&str>) -> Result<Caller, Failure> {
    let Some(database) = named.or_else(|| app.anonymous_database().map(DatabaseName::as_str))
    else {
        return Err(Failure::missing_token(
            "a token is required; a request without one runs as the default user of the \
             database that the header `Tidegate-Database` names",
        ));
    };
    let text = "a token is required: the database has no default user; the header \
                `Tidegate-Database` names another database";
    known_default_user(app, database)
        .await?
        .ok_or_else(|| Failure::missing_token(text))
}

/// A user who showed a token, where nothing else will do.
#[derive(Clone, Debug)]
pub struct User {
    /// As whom its statements run.
    pub login: Login,
    /// What the token says.
    pub claims: Arc<Claims>,
}

/// Whose memory the requests of a login take, and those without one.
pub fn holder(login: Option<&Login>) -> Holder {
    let Some(login) = login else {
        return Holder::Anonymous(None);
    };
    let database = login.database.clone();
    match login.sharing {
        Sharing::Strangers => Holder::Anonymous(Some(database)),
        Sharing::One(_) | Sharing::Trusted { .. } => Holder::Tenant(database),
    }
}

impl From<User> for Caller {
    fn from(user: User) -> Self {
        Self {
            principal: Principal::Role(user.login),
            anonymous: false,
        }
    }
}

/// The user by its token.
///
/// # Errors
///
/// 401 without a token, and for one that is not accepted.
pub fn user(app: &App, headers: &HeaderMap) -> Result<User, Failure> {
    let token = bearer(headers)?.ok_or_else(|| Failure::missing_token("a token is required"))?;
    by_token(app, token)
}

/// The user whose token it is.
///
/// # Errors
///
/// 401 when it is not accepted.
pub fn by_token(app: &App, token: &str) -> Result<User, Failure> {
    let claims = app.issuer().verify(token).map_err(Failure::from_bearer)?;
    Ok(User {
        login: login(&claims),
        claims,
    })
}

/// The default user of the database that the path names; a token sent along means nothing.
///
/// # Errors
///
/// 404 when there is no such database, or it has no default user.
pub async fn default_user(app: &App, database: &str) -> Result<Caller, Failure> {
    known_default_user(app, database)
        .await?
        .ok_or_else(Failure::no_default_user)
}

async fn known_default_user(app: &App, database: &str) -> Result<Option<Caller>, Failure> {
    let login = app
        .default_users()
        .of(database)
        .await
        .map_err(store_failure)?
        .login;
    Ok(login.map(|login| Caller {
        principal: Principal::Role(login),
        anonymous: true,
    }))
}

/// What the caller's database lets its default user do with raw SQL.
///
/// # Errors
///
/// 503 when the store is away, and nothing is known.
pub async fn anonymous_sql(app: &App, database: &DatabaseName) -> Result<AnonymousSql, Failure> {
    let found = app.default_users().of(database.as_str()).await;
    Ok(found.map_err(store_failure)?.sql)
}

fn store_failure(error: StoreError) -> Failure {
    match error {
        gone @ StoreError::Unavailable(_) => Failure::from_bearer(gone),
        failed @ StoreError::Failed(_) => Failure::internal(failed),
    }
}

/// The bearer token (RFC 6750, section 2.1); `None` when there are no credentials at all.
pub fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    match (token, values.next()) {
        (Some(token), None) if !token.is_empty() => Ok(Some(token)),
        _ => Err(Failure::invalid_token(
            "`Authorization` must be `Bearer` and one token",
        )),
    }
}

fn login(claims: &Claims) -> Login {
    let session = u128::from_be_bytes(*claims.session.as_bytes());
    Login {
        database: DatabaseName::new(&claims.database),
        role: RoleName::new(&claims.role),
        sharing: if claims.shared {
            Sharing::Strangers
        } else {
            Sharing::One(session)
        },
    }
}
