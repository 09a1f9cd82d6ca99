//! As whom a request runs.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use tidegate_oauth::{Claims, StoreError};
use tidegate_sql::{DatabaseName, Login, Principal, RoleName, Sharing};

use crate::app::App;
use crate::error::Failure;

const DATABASE: HeaderName = HeaderName::from_static("tidegate-database");

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// As whom its statements run.
    pub principal: Principal,
    /// Whether it showed no token, so that it might do better with one.
    pub anonymous: bool,
}

impl Caller {
    pub(crate) fn login(&self) -> Option<&Login> {
        match &self.principal {
            Principal::Role(login) => Some(login),
            Principal::Control | Principal::Catalog(_) => None,
        }
    }
}

/// The caller by its token, or without one the default user of the database in the header
/// `Tidegate-Database` or of the configured one.
///
/// # Errors
///
/// 401 for a token that is not accepted (it never becomes a stranger's request), and when there is
/// no token and no default user.
pub(crate) async fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Failure> {
    if let Some(token) = bearer(headers)? {
        return by_token(app, token).map(Caller::from);
    }
    nobody(app, named_database(headers)).await
}

/// The database that the header `Tidegate-Database` names.
pub(crate) fn named_database(headers: &HeaderMap) -> Option<&str> {
    let name = headers.get(DATABASE)?;
    Some(name.to_str().unwrap_or_default())
}

/// Who shows no token: the default user of the database that is named, or of the configured one.
///
/// # Errors
///
/// 401 when there is no such user.
pub(crate) async fn nobody(app: &App, named: Option<&str>) -> Result<Caller, Failure> {
    let Some(database) = named.or_else(|| app.anonymous_database().map(DatabaseName::as_str))
    else {
        return Err(Failure::missing_token("a token is needed here"));
    };
    let text = "a token is needed here, as the database has no default user";
    default_user(app, database)
        .await?
        .ok_or_else(|| Failure::missing_token(text))
}

/// A user who showed a token, where nothing else will do.
#[derive(Clone, Debug)]
pub(crate) struct User {
    /// As whom its statements run.
    pub login: Login,
    /// What the token says.
    pub claims: Arc<Claims>,
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
pub(crate) fn user(app: &App, headers: &HeaderMap) -> Result<User, Failure> {
    let token = bearer(headers)?.ok_or_else(|| Failure::missing_token("a token is needed here"))?;
    by_token(app, token)
}

/// The user whose token it is.
///
/// # Errors
///
/// 401 when it is not accepted.
pub(crate) fn by_token(app: &App, token: &str) -> Result<User, Failure> {
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
pub(crate) async fn stranger(app: &App, database: &str) -> Result<Caller, Failure> {
    default_user(app, database)
        .await?
        .ok_or_else(Failure::no_default_user)
}

async fn default_user(app: &App, database: &str) -> Result<Option<Caller>, Failure> {
    let login = app
        .default_users()
        .of(database)
        .await
        .map_err(|error| match error {
            gone @ StoreError::Unavailable(_) => Failure::from_bearer(gone.into()),
            failed @ StoreError::Failed(_) => Failure::internal(failed),
        })?;
    Ok(login.map(|login| Caller {
        principal: Principal::Role(login),
        anonymous: true,
    }))
}

/// The bearer token (RFC 6750, section 2.1); `None` when there are no credentials at all.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
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
