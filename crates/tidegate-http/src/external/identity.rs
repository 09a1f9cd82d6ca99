//! Finds the user or the group of a tenant that the claims of a verified token name. A claim is
//! compared with existing names and never becomes part of a statement.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use serde_json::{Map, Value};
use tidegate_identity::{
    ExternalMember, IdentityService, StoreError, Timestamp, User, UserKey, UserName, group_role,
    inexact_number,
};
use tidegate_issuers::{GroupLogins, IssuerRecord, IssuerRegistry, NamedRole};
use tidegate_oauth::{Claims, IssuerStore, MemberClaims, Scope, Scopes};
use tidegate_sql::{DatabaseName, InvalidMember, Login, Member, RoleName, RoleUse};
use tokio::sync::Mutex;

use super::ExternalToken;
use crate::error::ApiError;

/// How long the result of a look-up of names is used without asking the store.
const CACHE_TTL: Duration = Duration::from_secs(4);
/// The maximum number of cached look-ups, one for each database and list of names.
const CACHED_NAMES: usize = 10_000;
/// Claims that differ in every token of a person. They are left out of the claims for policies, so
/// that a renewed token has the same claims as the previous token. `uti`, `aio` and `rh` are claims
/// of Entra ID. `fva` is a claim of Clerk: the age of the verification in minutes.
const PER_TOKEN_CLAIMS: [&str; 11] = [
    "exp", "nbf", "iat", "jti", "nonce", "at_hash", "c_hash", "uti", "aio", "rh", "fva",
];

/// The user or the member of a group that a token names.
#[derive(Clone, Debug)]
pub(crate) struct ExternalUser {
    /// The claims of the requests that are made with the token.
    pub(crate) claims: Arc<Claims>,
    /// The login of a member of a group; `None` if the token identifies a user of the tenant, whose
    /// login is made from `claims`.
    pub(crate) member: Option<Login>,
    pub(crate) token: Arc<ExternalToken>,
}

impl ExternalUser {
    /// Whether the statements of both users run as the same role and, for members of a group, with
    /// the same claims.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let role = |user: &Self| (user.claims.subject.clone(), user.claims.shared);
        let recorded = |user: &Self| {
            let member = user.claims.member.clone();
            member.map(|member| (member, user.claims.properties.clone()))
        };
        role(self) == role(other)
            && recorded(self) == recorded(other)
            && self.member == other.member
    }
}

/// Finds the user, or the member of a group, that a token names.
pub(super) struct Identities {
    issuers: Arc<IssuerRegistry>,
    groups: Arc<dyn GroupLogins>,
    users: Arc<dyn IssuerStore>,
    roles: Cache<String, (Option<NamedRole>, Instant)>,
    /// Locked while the role of a group is made able to log in, so that only one request does this
    /// at a time.
    enabling: Mutex<()>,
}

impl Identities {
    pub(super) fn new(
        issuers: Arc<IssuerRegistry>,
        groups: Arc<dyn GroupLogins>,
        users: Arc<dyn IssuerStore>,
    ) -> Self {
        Self {
            issuers,
            groups,
            users,
            roles: Cache::new(CACHED_NAMES),
            enabling: Mutex::default(),
        }
    }

    /// The user of a token: the user that the user claim names, or else the first group or user
    /// that the role claim names, or else the issuer's default role.
    ///
    /// # Errors
    ///
    /// 403 if neither a claim nor the default role names a user or a group; 401 if the user is
    /// disabled, or if the claims are invalid for a member of a group; 503 if the store is down.
    pub(super) async fn of(
        &self,
        service: &IdentityService,
        token: &Arc<ExternalToken>,
    ) -> Result<ExternalUser, ApiError> {
        let record = token.issuer.record();
        // The record of a member is read even if the issuer no longer creates records, or if the
        // token names a user, because a disabled member must be refused.
        let recorded = service
            .external_member(&record.database, &member_id(token))
            .await
            .map_err(ApiError::from_bearer)?;
        if recorded.as_ref().is_some_and(|user| user.disabled) {
            return Err(disabled());
        }
        if let Some(name) = &token.token.user
            && let Some(user) = self.user(token, name).await?
        {
            return Ok(user);
        }
        let default = record.settings.default_role.iter();
        let names: Vec<String> = token
            .token
            .roles
            .iter()
            .chain(default)
            .filter(|name| is_name(record, name))
            .cloned()
            .collect();
        let found = match self.role(record, names).await? {
            Some(NamedRole::User(name)) => self.user(token, &name).await?,
            Some(NamedRole::Group { group, .. }) => {
                Some(member_of_group(service, token, (&group, recorded)).await?)
            }
            None => None,
        };
        found.ok_or_else(|| no_identity(record))
    }

    async fn user(
        &self,
        token: &Arc<ExternalToken>,
        name: &str,
    ) -> Result<Option<ExternalUser>, ApiError> {
        let record = token.issuer.record();
        if !is_name(record, name) {
            return Ok(None);
        }
        let key = UserKey::new(&record.database, name);
        let found = self.users.user(&key).await.map_err(ApiError::from_bearer)?;
        found.map(|user| as_user(token, user)).transpose()
    }

    /// Finds the group or user whose name comes first in `names`; `None` if no group or user has
    /// any of the names. The role of a group is made able to log in.
    async fn role(
        &self,
        record: &IssuerRecord,
        names: Vec<String>,
    ) -> Result<Option<NamedRole>, ApiError> {
        if names.is_empty() {
            return Ok(None);
        }
        // Names of databases, groups and users contain no slash, so the key is unambiguous.
        let key = format!("{}/{}", record.database, names.join("/"));
        if let Some((known, asked_at)) = self.roles.get(&key)
            && asked_at.elapsed() < CACHE_TTL
        {
            return Ok(known);
        }
        let found = self.find(&record.database, &names).await;
        let found = found.map_err(ApiError::from_bearer)?;
        self.roles.insert(key, (found.clone(), Instant::now()));
        Ok(found)
    }

    async fn find(
        &self,
        database: &str,
        names: &[String],
    ) -> Result<Option<NamedRole>, StoreError> {
        let store = self.issuers.store();
        let find = || store.named_role(database, names);
        let cannot_log_in = |found: &Option<NamedRole>| {
            matches!(
                found,
                Some(NamedRole::Group {
                    can_log_in: false,
                    ..
                })
            )
        };
        let found = find().await?;
        if !cannot_log_in(&found) {
            return Ok(found);
        }
        let _guard = self.enabling.lock().await;
        // While this request waited for the lock, another request may have made the group able to
        // log in.
        let found = find().await?;
        if let Some(NamedRole::Group { group, .. }) = &found
            && cannot_log_in(&found)
        {
            self.groups.enable(database, group).await?;
        }
        Ok(found)
    }
}

/// Whether a name in a token may be the name of a user or a group. The owner is excluded, so that
/// no token of an external issuer can identify the owner.
fn is_name(record: &IssuerRecord, name: &str) -> bool {
    name != record.database && UserName::parse(name).is_ok()
}

/// The claims for requests with a token. The calling function adds the claims of the user or group.
/// The scopes do not allow managing the tenant, because only a user who has signed in with this
/// service may do that.
fn claims(token: &ExternalToken, user: &str) -> Claims {
    let expires_at = i64::try_from(token.token.expires_at).unwrap_or(i64::MAX);
    Claims {
        session: token.session,
        client_id: String::new(),
        database: token.issuer.record().database.clone(),
        user: user.to_owned(),
        subject: String::new(),
        member: None,
        owner: false,
        shared: false,
        scopes: Scopes::of(&[Scope::Read, Scope::Write, Scope::Methods, Scope::Sql]),
        actor: None,
        properties: None,
        email: None,
        issued_at: Timestamp::default(),
        expires_at: Timestamp::from_seconds(expires_at),
    }
}

/// The user for a token that names a user of the tenant.
///
/// # Errors
///
/// 401 if the user is disabled.
fn as_user(token: &Arc<ExternalToken>, user: User) -> Result<ExternalUser, ApiError> {
    if user.disabled {
        return Err(disabled());
    }
    let claims = Claims {
        subject: user.subject().into_owned(),
        member: MemberClaims::of(&user).map(Box::new),
        shared: user.default_user,
        properties: user.properties.map(Box::new),
        email: user.email,
        ..claims(token, &user.key.name)
    };
    Ok(ExternalUser {
        claims: Arc::new(claims),
        member: None,
        token: Arc::clone(token),
    })
}

/// The id of a member: the name of the issuer, a colon and the subject. No user has such an id,
/// because the names of users contain no colon. No other issuer can issue a token with this id.
fn member_id(token: &ExternalToken) -> String {
    format!("{}:{}", token.issuer.record().name, token.token.subject)
}

/// The user for a member of a group. `recorded` is the member's record; `None` if there is none. If
/// the issuer creates members, writes a record for the member. With the record, the owner can
/// disable or convert the member, or set its properties.
async fn member_of_group(
    service: &IdentityService,
    token: &Arc<ExternalToken>,
    (group, recorded): (&str, Option<User>),
) -> Result<ExternalUser, ApiError> {
    let (record, verified, id) = (token.issuer.record(), &token.token, member_id(token));
    let claim = |name| verified.claims.get(name).and_then(Value::as_str);
    let name = claim("preferred_username").or_else(|| claim("email"));
    let external = ExternalMember {
        database: &record.database,
        issuer: &record.name,
        id: &id,
        group,
        name: name.unwrap_or(&verified.subject),
    };
    let recorded = if record.settings.create_members {
        if recorded.as_ref().is_none_or(User::is_member) {
            // The claims are checked before a record is written, because a token that is refused
            // must not create or change a record.
            let properties = recorded.and_then(|user| user.properties);
            as_member(token, (group, &id), properties)?;
        }
        let recorded = service.record_external_member(&external).await;
        recorded.map_err(ApiError::from_bearer)?
    } else {
        recorded
    };
    match recorded {
        Some(user) if user.disabled || !user.is_member() => as_user(token, user),
        recorded => {
            let properties = recorded.and_then(|user| user.properties);
            as_member(token, (group, &id), properties)
        }
    }
}

/// The user for a member of a group. Policies read the claims of the token that the issuer's
/// settings select, without [`PER_TOKEN_CLAIMS`], and the properties in `properties`. A property
/// replaces the claim with the same name.
fn as_member(
    token: &Arc<ExternalToken>,
    (group, id): (&str, &str),
    properties: Option<Map<String, Value>>,
) -> Result<ExternalUser, ApiError> {
    let (record, verified) = (token.issuer.record(), &token.token);
    let properties = properties.unwrap_or_default();
    let mut own = record.settings.policy_claims(&verified.claims);
    own.retain(|name, _| {
        !PER_TOKEN_CLAIMS.contains(&name.as_str()) && !properties.contains_key(name)
    });
    if let Some(path) = inexact_number(&own) {
        let reason = format!("the number in its claim `{path}` has more than 64 bits");
        return Err(unusable(record, &reason, true));
    }
    own.extend(properties);
    let own_text = serde_json::to_string(&own).map_err(ApiError::internal)?;
    let member = Member::new(id, &own_text)
        .map_err(|error| unusable(record, &error.to_string(), error != InvalidMember::Id))?;
    let role = group_role(&record.database, group).map_err(ApiError::internal)?;
    let claims = Claims {
        subject: role.clone(),
        properties: Some(Box::new(own)),
        ..claims(token, id)
    };
    Ok(ExternalUser {
        claims: Arc::new(claims),
        member: Some(Login {
            database: DatabaseName::new(&record.database),
            role: RoleName::new(role),
            role_use: RoleUse::Member(Arc::new(member)),
        }),
        token: Arc::clone(token),
    })
}

/// 401: the token is valid, but policies cannot use its claims (if `are_claims` is true) or its id.
fn unusable(record: &IssuerRecord, reason: &str, are_claims: bool) -> ApiError {
    let advice = if are_claims {
        format!(
            "; the setting `claims` of the issuer {} lists the claims that policies need",
            record.name
        )
    } else {
        String::new()
    };
    let text = format!("the token cannot be used for a group: {reason}{advice}");
    ApiError::invalid_token(text)
}

/// 401: the token is valid, but its user is disabled. Other claims and the default role are not
/// tried for such a token.
fn disabled() -> ApiError {
    ApiError::invalid_token("the token is not accepted, its user is disabled")
}

/// 403: the token is valid, but names no user or group of the tenant.
fn no_identity(record: &IssuerRecord) -> ApiError {
    let claims: Vec<String> = [&record.settings.user_claim, &record.settings.role_claim]
        .into_iter()
        .flatten()
        .map(|path| format!("`{path}`"))
        .collect();
    let text = if claims.is_empty() {
        format!(
            "the issuer {} has no `user_claim`, no `role_claim` and no `default_role` that is a \
             user or group of the database",
            record.name
        )
    } else {
        format!(
            "the token is valid, but {} names no user or group of the database, and the issuer {} \
             has no `default_role` that is one",
            claims.join(" or "),
            record.name
        )
    };
    ApiError::insufficient_privileges(text)
}
