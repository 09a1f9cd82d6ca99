//! Authentication: determines the identity that a request has.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use tidegate_identity::{AnonymousSql, StoreError, group_role};
use tidegate_oauth::{Claims, MemberClaims, Scopes};
use tidegate_sql::{DatabaseName, Login, Member, Principal, RoleName, RoleUse};

use crate::app::App;
use crate::error::ApiError;
use crate::external::ExternalUser;
use crate::memory::Holder;

pub use tidegate_oauth::Scope;

const DATABASE: HeaderName = HeaderName::from_static("tidegate-database");

/// A client together with its identity.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The database and role that the caller's statements run as.
    pub principal: Principal,
    /// Whether the caller is anonymous: the request had no token, or the path names the database
    /// and a token is ignored. If so, errors about privileges say that a token is required.
    pub anonymous: bool,
    /// The scopes of the caller's token. They are unrestricted for a caller without a token.
    pub scopes: Scopes,
}

impl Caller {
    /// The login that the caller's statements use; `None` if they run as the service itself.
    pub fn login(&self) -> Option<&Login> {
        match &self.principal {
            Principal::Role(login) => Some(login),
            Principal::Control | Principal::Catalog(_) => None,
        }
    }

    /// Checks that the token has at least one of these scopes. Every token passes if the list is
    /// empty.
    ///
    /// # Errors
    ///
    /// 403.
    pub fn require(&self, needed: &[Scope]) -> Result<(), ApiError> {
        require(self.scopes, needed)
    }

    /// Checks that the caller does not share the role of a group. A statement that a member writes
    /// could read what another member's statement left in the session. Therefore members run only
    /// statements that Tidegate or the owner wrote.
    ///
    /// # Errors
    ///
    /// 403.
    pub fn require_own_role(&self) -> Result<(), ApiError> {
        self.login().map_or(Ok(()), require_own_role)
    }

    /// The account of the memory budget that the caller's requests are charged to.
    pub fn holder(&self) -> Holder {
        holder(self.login())
    }

    /// Whether the caller is a member of a group, without a role of its own.
    pub fn is_member(&self) -> bool {
        let role_use = self.login().map(|login| &login.role_use);
        matches!(role_use, Some(RoleUse::Member(_)))
    }

    /// The caller's login if the caller runs as a default user, with or without a token; otherwise
    /// `None`. Anyone can get a token of a default user, because the guest grant needs no secret.
    /// Therefore limits on anonymous callers also apply to callers with a token of a default user.
    pub fn default_user(&self) -> Option<&Login> {
        self.login()
            .filter(|login| login.role_use == RoleUse::Anonymous)
    }
}

/// The caller of a request. With a token, this is the token's user. Without a token, it is the
/// default user of the database in the header `Tidegate-Database`, or else of the configured
/// database. A token must have one of the `needed` scopes. If `needed` is empty, the operation must
/// check the scopes.
///
/// # Errors
///
/// - 401: the token is invalid (such a request never runs as anonymous), or there is neither a
///   token nor a default user.
/// - 403: the token has none of the scopes, or it is of an external issuer and names no user or
///   group.
/// - 400: there are several headers `Tidegate-Database`, and no token of the service's own issuer.
/// - 503: the store or an external issuer is down.
pub async fn caller(app: &App, headers: &HeaderMap, needed: &[Scope]) -> Result<Caller, ApiError> {
    if let Some(token) = bearer(headers)? {
        let caller = Caller::from(by_token(app, token, || named_database(headers)).await?);
        caller.require(needed)?;
        return Ok(caller);
    }
    anonymous(app, named_database(headers)?).await
}

/// The database in the header `Tidegate-Database`.
///
/// # Errors
///
/// 400 if the request has the header more than once. A proxy may have checked only one of the
/// headers, and this service might use another one.
pub fn named_database(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut names = headers.get_all(DATABASE).iter();
    match (names.next(), names.next()) {
        (name, None) => Ok(name.map(|name| name.to_str().unwrap_or_default())),
        (_, Some(_)) => Err(ApiError::input(
            "`Tidegate-Database`: expected one header, found several",
        )),
    }
}

/// The database in the header `Tidegate-Database`, or in the query parameter `database`. The
/// parameter exists because browsers cannot set headers for sockets and event streams.
///
/// # Errors
///
/// 400 if the request has both, or has the header more than once.
pub fn named_database_or<'a>(
    headers: &'a HeaderMap,
    parameter: Option<&'a str>,
) -> Result<Option<&'a str>, ApiError> {
    match (named_database(headers)?, parameter) {
        (Some(_), Some(_)) => Err(ApiError::input(
            "`database`: expected it in the address or in `Tidegate-Database`, found both",
        )),
        (header, parameter) => Ok(header.or(parameter)),
    }
}

/// The caller of a request without a token: the default user of the database `named`, or else of
/// the configured database.
///
/// # Errors
///
/// 401 if there is no default user; 503 if the store is down.
pub async fn anonymous(app: &App, named: Option<&str>) -> Result<Caller, ApiError> {
    let Some(database) = named.or_else(|| app.anonymous_database().map(DatabaseName::as_str))
    else {
        return Err(ApiError::missing_token(
            "a token is required; a request without one runs as the default user of the \
             database that the header `Tidegate-Database` names",
        ));
    };
    let text = "a token is required: the database has no default user; the header \
                `Tidegate-Database` names another database";
    known_default_user(app, database)
        .await?
        .ok_or_else(|| ApiError::missing_token(text))
}

/// A user with a valid token.
#[derive(Clone, Debug)]
pub struct User {
    /// The database and role that the user's statements run as.
    pub login: Login,
    /// The claims of the token.
    pub claims: Arc<Claims>,
    /// The identity and the token of a user of an external issuer; `None` for a token of this
    /// service.
    external: Option<ExternalUser>,
}

impl User {
    /// Checks that the user does not share the role of a group; see [`Caller::require_own_role`].
    ///
    /// # Errors
    ///
    /// 403.
    pub fn require_own_role(&self) -> Result<(), ApiError> {
        require_own_role(&self.login)
    }
}

fn require_own_role(login: &Login) -> Result<(), ApiError> {
    match login.role_use {
        RoleUse::Member(_) => Err(ApiError::insufficient_privileges(
            "members of a group, who have no role of their own, run no SQL of their own and define \
             no methods; they use GraphQL and the methods of the owner",
        )),
        RoleUse::User(_) | RoleUse::Anonymous | RoleUse::Trusted(_) => Ok(()),
    }
}

/// The account of the memory budget that requests of a login are charged to. Requests without a
/// login are charged to the account of unauthenticated callers.
pub fn holder(login: Option<&Login>) -> Holder {
    let Some(login) = login else {
        return Holder::Anonymous(None);
    };
    let database = login.database.clone();
    match login.role_use {
        RoleUse::Anonymous => Holder::Anonymous(Some(database)),
        RoleUse::User(_) | RoleUse::Member(_) | RoleUse::Trusted(_) => Holder::Tenant(database),
    }
}

impl From<User> for Caller {
    fn from(user: User) -> Self {
        Self {
            principal: Principal::Role(user.login),
            anonymous: false,
            scopes: user.claims.scopes,
        }
    }
}

/// The user of a request's token. The token must have the scope `needed`.
///
/// # Errors
///
/// 401 without a token and for an invalid token; 403 for a token without the scope; otherwise as
/// [`by_token`].
pub async fn user(app: &App, headers: &HeaderMap, needed: Scope) -> Result<User, ApiError> {
    let token = bearer(headers)?.ok_or_else(|| ApiError::missing_token("a token is required"))?;
    let user = by_token(app, token, || named_database(headers)).await?;
    require(user.claims.scopes, &[needed])?;
    Ok(user)
}

fn require(scopes: Scopes, needed: &[Scope]) -> Result<(), ApiError> {
    if needed.is_empty() || needed.iter().any(|scope| scopes.allows(*scope)) {
        Ok(())
    } else {
        Err(ApiError::insufficient_scope(needed))
    }
}

/// The user with this token. The scopes of the token are not checked. `database` returns the
/// database that the request names. It is called only for a token that this service has not issued.
///
/// # Errors
///
/// 401 if the token is invalid; 403 if a token of an external issuer names no user or group of the
/// tenant; 503 if the check needs the store and the store is down, or if the keys of an external
/// issuer cannot be loaded; the error of `database` if it fails.
pub async fn by_token<'a>(
    app: &App,
    token: &str,
    database: impl FnOnce() -> Result<Option<&'a str>, ApiError>,
) -> Result<User, ApiError> {
    let error = match app.issuer().authenticate_token(token).await {
        Ok(claims) => {
            return Ok(User {
                login: login(&claims)?,
                claims,
                external: None,
            });
        }
        Err(error) => error,
    };
    if let (Some(external), true) = (app.external_tokens(), is_unknown(&error)) {
        let user = Box::pin(external.user(app.issuer(), token, database()?)).await?;
        return Ok(User {
            login: match &user.member {
                Some(member) => member.clone(),
                None => login(&user.claims)?,
            },
            claims: Arc::clone(&user.claims),
            external: Some(user),
        });
    }
    Err(ApiError::from_bearer(error))
}

/// Whether an error shows that the service's own issuer did not issue the token. If so, an external
/// issuer may have issued it.
fn is_unknown(error: &tidegate_oauth::Error) -> bool {
    use tidegate_oauth::TokenError::{TooLong, UnknownHeader};
    matches!(
        error,
        tidegate_oauth::Error::InvalidToken(UnknownHeader | TooLong)
    )
}

/// Checks again whether the token of a user is valid. The check needs no I/O, except every few
/// seconds for a token of an external issuer.
///
/// # Errors
///
/// 401 if the token has expired or its session has ended. For an external token also the errors of
/// [`by_token`], and 401 if its issuer is not accepted or it names another role or other claims.
pub async fn recheck(app: &App, user: &User) -> Result<(), ApiError> {
    if let (Some(user), Some(external)) = (&user.external, app.external_tokens()) {
        return external.recheck(app.issuer(), user).await;
    }
    let checked = app.issuer().recheck(&user.claims);
    checked.map_err(ApiError::from_bearer)
}

/// The default user of a database, as an anonymous caller. A token of the request is ignored.
///
/// # Errors
///
/// 404 if there is no such database, or it has no default user; 503 if the store is down.
pub async fn default_user(app: &App, database: &str) -> Result<Caller, ApiError> {
    known_default_user(app, database)
        .await?
        .ok_or_else(ApiError::no_default_user)
}

async fn known_default_user(app: &App, database: &str) -> Result<Option<Caller>, ApiError> {
    let login = app
        .default_users()
        .of(database)
        .await
        .map_err(store_failure)?
        .login;
    Ok(login.map(|login| Caller {
        principal: Principal::Role(login),
        anonymous: true,
        scopes: Scopes::UNRESTRICTED,
    }))
}

/// The kind of SQL statements that anonymous callers of a tenant may send.
///
/// # Errors
///
/// 503 if the store is down and nothing is cached.
pub async fn anonymous_sql(app: &App, database: &DatabaseName) -> Result<AnonymousSql, ApiError> {
    let found = app.default_users().of(database.as_str()).await;
    Ok(found.map_err(store_failure)?.sql)
}

fn store_failure(error: StoreError) -> ApiError {
    match error {
        gone @ StoreError::Unavailable(_) => ApiError::from_bearer(gone),
        failed @ StoreError::Failed(_) => ApiError::internal(failed),
    }
}

/// The bearer token of a request (RFC 6750, section 2.1); `None` without the header
/// `Authorization`. 401 if the header is repeated or contains no bearer token.
pub fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    // `HeaderValue::to_str` checks the bytes one by one, which is slow for long tokens.
    let value = value.as_bytes();
    let text = std::str::from_utf8(value).ok().filter(|_| value.is_ascii());
    let token = text.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    match (token, values.next()) {
        (Some(token), None) if !token.is_empty() => Ok(Some(token)),
        _ => Err(ApiError::invalid_token(
            "`Authorization` must be `Bearer` and one token",
        )),
    }
}

/// The login of the user with these claims.
///
/// # Errors
///
/// 401 for invalid claims of a member. The service issues no token with such claims.
fn login(claims: &Claims) -> Result<Login, ApiError> {
    let database = DatabaseName::new(&claims.database);
    if let Some(member) = &claims.member {
        return Ok(Login {
            role: group_role(&claims.database, &member.group)
                .map(RoleName::new)
                .map_err(|_| ApiError::invalid_token("the token names no group"))?,
            role_use: RoleUse::Member(Arc::new(as_member(claims, member)?)),
            database,
        });
    }
    let session = u128::from_be_bytes(*claims.session.as_bytes());
    Ok(Login {
        database,
        role: RoleName::new(&claims.subject),
        role_use: if claims.shared {
            RoleUse::Anonymous
        } else {
            RoleUse::User(session)
        },
    })
}

/// The identity of a member for policies: `tidegate.user_id()` returns the member's id, and
/// `tidegate.claims()` returns the properties of the token.
fn as_member(claims: &Claims, member: &MemberClaims) -> Result<Member, ApiError> {
    let properties = match &claims.properties {
        Some(properties) => serde_json::to_string(properties).map_err(ApiError::internal)?,
        None => "{}".to_owned(),
    };
    let made = Member::new(&member.id, &properties);
    made.map_err(|error| ApiError::invalid_token(error.to_string()))
}
