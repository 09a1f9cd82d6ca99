//! The functions `tidegate.user_id()`, `tidegate.claims()` and `tidegate.claim(text)` in tenants'
//! databases, and the ids and claims that they return for users with a role.

use std::time::Duration;

use tidegate_service::{ClaimsFunctions, ClaimsState, claims_state, install_claims};
use tidegate_sql::{DatabaseName, RoleName};
use tokio_postgres::error::SqlState;

use super::session::{AdvisoryLock, Session};
use super::{Admin, Result};

/// The generation that the key of a tenant's functions has until the key is first rotated.
pub const FIRST_CLAIMS_GENERATION: i32 = 1;

/// The longest wait for the lock that [`Admin::provide_claims`] takes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The id and the claims that `tidegate.user_id()` and `tidegate.claims()` return for a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleIdentity {
    /// The role for which the functions return these values.
    pub role: RoleName,
    /// The result of `tidegate.user_id()`; `None` for NULL.
    pub user_id: Option<String>,
    /// The result of `tidegate.claims()`: a JSON object that `jsonb` can store.
    pub claims: String,
}

impl RoleIdentity {
    /// Whether the functions return this identity even if the table of identities has no row for
    /// the role.
    fn is_default(&self, database: &str) -> bool {
        let name = self.role.as_str().strip_prefix(database);
        let name = name.and_then(|rest| rest.strip_prefix('/'));
        name.is_some() && name == self.user_id.as_deref() && self.claims == "{}"
    }
}

/// Selects whether the administrator owns the table of identities and its schema. Another owner
/// could run code in the administrator's session by a trigger or a view.
const OWNS_IDENTITIES: &str = "SELECT EXISTS ( \
    SELECT FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_roles t ON t.oid = c.relowner \
    JOIN pg_catalog.pg_roles s ON s.oid = n.nspowner \
    JOIN pg_catalog.pg_roles m ON m.rolname = current_user \
    WHERE n.nspname = 'tidegate_private' AND c.relname = 'identities' AND c.relkind = 'r' \
      AND (t.oid = m.oid OR m.rolsuper AND t.rolsuper) \
      AND (s.oid = m.oid OR m.rolsuper AND s.rolsuper))";

const WRITE: &str = "INSERT INTO tidegate_private.identities AS i (role, user_id, claims) \
    VALUES ($1::text::name, $2::text, $3::text::jsonb) \
    ON CONFLICT (role) DO UPDATE SET user_id = excluded.user_id, claims = excluded.claims \
    WHERE (i.user_id, i.claims) IS DISTINCT FROM (excluded.user_id, excluded.claims)";

const DELETE: &str = "DELETE FROM tidegate_private.identities WHERE role = $1::text::name";

const DIFFERENCES: &str = "SELECT coalesce(w.role, i.role::text) \
    FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), \
                    pg_catalog.unnest($3::text[])) AS w (role, user_id, claims) \
    FULL JOIN tidegate_private.identities i ON i.role::text = w.role \
    WHERE i.role IS NULL OR w.role IS NULL \
       OR (w.user_id, w.claims::jsonb) IS DISTINCT FROM (i.user_id, i.claims) \
    ORDER BY 1";

async fn owns_identities(session: &Session) -> Result<bool> {
    Ok(session.client.query_one(OWNS_IDENTITIES, &[]).await?.get(0))
}

/// Deletes the identity that is stored for a role. Also called for a role that is dropped, because
/// otherwise a later role of the same name would get its claims. Does nothing in a database without
/// the functions of claims.
pub(super) async fn delete_identity(session: &Session, role: &str) -> Result<()> {
    if owns_identities(session).await? {
        session.client.execute(DELETE, &[&role]).await?;
    }
    Ok(())
}

impl Admin {
    /// The functions of claims that a database should have, with the key of this `generation`.
    pub(super) fn claims_functions(&self, database: &str, generation: i32) -> ClaimsFunctions {
        let key = self.passwords.claims_key(database, generation);
        ClaimsFunctions {
            generation,
            key: key.halves(),
        }
    }

    /// Creates the functions of claims in a tenant's database if they are missing. Replaces them if
    /// they are not the functions of this release with the key of this `generation`. Returns the
    /// resulting state. Several nodes may call this at the same time.
    ///
    /// # Errors
    ///
    /// Errors of the connection, and [`Error::Busy`](super::Error::Busy).
    pub async fn provide_claims(
        &self,
        database: &DatabaseName,
        generation: i32,
    ) -> Result<ClaimsState> {
        let mut session = self.open(database.as_str()).await?;
        let wanted = self.claims_functions(database.as_str(), generation);
        let state = claims_state(&session.client, &wanted).await?;
        if state != ClaimsState::Outdated {
            return Ok(state);
        }
        let lock = AdvisoryLock {
            key: &format!("tidegate claims of {database}"),
            others: "others create the functions of claims of this tenant",
            timeout: LOCK_TIMEOUT,
        };
        // The lock is taken in the administrator's database. In the tenant's database users could
        // hold the same lock for as long as they like.
        let home = self.open_admin_database().await?;
        home.lock(&lock).await?;
        Ok(install_claims(&mut session.client, &wanted).await?)
    }

    /// Calls [`Self::provide_claims`] for a new tenant, and stores the identity of its owner.
    /// Errors are only logged, because nodes retry.
    pub(super) async fn try_to_provide_claims(&self, database: &DatabaseName, owner: &RoleName) {
        let identity = RoleIdentity {
            role: owner.clone(),
            user_id: Some(database.to_string()),
            claims: "{}".to_owned(),
        };
        let provided = async {
            let state = self
                .provide_claims(database, FIRST_CLAIMS_GENERATION)
                .await?;
            self.set_identity(database, &identity).await?;
            Ok::<_, super::Error>(state)
        };
        match provided.await {
            Ok(ClaimsState::Current) => {}
            Ok(state) => {
                tracing::warn!(%database, ?state, "could not create tidegate.user_id(), tidegate.claims() and tidegate.claim(); `tidegate doctor` prints what is missing");
            }
            Err(error) => {
                tracing::warn!(%database, %error, "could not create tidegate.user_id(), tidegate.claims() and tidegate.claim(); retrying within an hour");
            }
        }
    }

    /// Stores the identity that the functions return for a role. Deletes the stored identity
    /// instead if the functions would return the same identity without it. Does nothing in a
    /// database without the functions.
    ///
    /// # Errors
    ///
    /// Errors of the connection.
    pub async fn set_identity(
        &self,
        database: &DatabaseName,
        identity: &RoleIdentity,
    ) -> Result<()> {
        let session = self.open(database.as_str()).await?;
        let role = identity.role.as_str();
        if identity.is_default(database.as_str()) {
            return delete_identity(&session, role).await;
        }
        if owns_identities(&session).await? {
            let RoleIdentity {
                user_id, claims, ..
            } = identity;
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&role, user_id, claims];
            session.client.execute(WRITE, &values).await?;
        }
        Ok(())
    }

    /// Deletes the identity of a role that no longer belongs to a user.
    ///
    /// # Errors
    ///
    /// Errors of the connection.
    pub async fn delete_identity(&self, database: &DatabaseName, role: &RoleName) -> Result<()> {
        delete_identity(&self.open(database.as_str()).await?, role.as_str()).await
    }

    /// The roles whose row in the table of identities is not as `wanted` requires: the row differs
    /// or is missing, or the role is not in `wanted`. For an identity that the functions return by
    /// default, the table must have no row. `wanted` must contain all users of the tenant. The
    /// result is empty in a database without the functions.
    ///
    /// # Errors
    ///
    /// Errors of the connection.
    pub async fn differing_identities(
        &self,
        database: &DatabaseName,
        wanted: &[RoleIdentity],
    ) -> Result<Vec<String>> {
        let session = self.open(database.as_str()).await?;
        if !owns_identities(&session).await? {
            return Ok(Vec::new());
        }
        let wanted = wanted
            .iter()
            .filter(|identity| !identity.is_default(database.as_str()));
        let (mut roles, mut ids, mut claims) = (Vec::new(), Vec::new(), Vec::new());
        for identity in wanted {
            roles.push(identity.role.as_str());
            ids.push(identity.user_id.as_deref());
            claims.push(identity.claims.as_str());
        }
        let found = session
            .client
            .query(DIFFERENCES, &[&roles, &ids, &claims])
            .await;
        match found {
            Ok(rows) => Ok(rows.iter().map(|row| row.get(0)).collect()),
            // Another session has just dropped the schema with its tenant.
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}
