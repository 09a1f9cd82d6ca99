//! Creates the roles and functions that a tenant needs besides the roles of its users: the role
//! that lets users connect, the authenticators, and the functions that return claims.

use std::collections::HashSet;
use std::time::Duration;

use tidegate_admin::{Admin, ClaimsState};
use tidegate_identity::{Accounts, User, UserKey};
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_store::{Tenant, Tenants};
use tokio::time::{MissedTickBehavior, interval};

use crate::group_logins;
use crate::pool::UserPool;
use crate::roles;
use crate::service::Service;

/// The interval between checks of the tenants for missing roles. The first check, at the start of
/// the node, creates the roles that an older release did not create. Later checks are needed while
/// nodes of an older release run: such nodes may revoke grants that only newer releases make.
const INTERVAL: Duration = Duration::from_hours(1);

/// Creates missing roles of all tenants while [`run`](Self::run) is polled.
pub(crate) struct RoleMaintenance {
    admin: Admin,
    tenants: Tenants,
    accounts: Accounts,
    pool: UserPool,
    /// The databases in which the functions that return claims cannot be created. The failure is
    /// logged once for each database.
    without_claims: HashSet<String>,
}

impl RoleMaintenance {
    pub(crate) fn new(service: &Service, pool: UserPool) -> Self {
        Self {
            admin: service.admin.clone(),
            tenants: service.tenants.clone(),
            accounts: service.accounts(),
            pool,
            without_claims: HashSet::new(),
        }
    }

    /// Provides the roles and claims of all tenants immediately and then at every interval, until
    /// the future is dropped.
    pub(crate) async fn run(mut self) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.tenants.list().await {
                Ok(tenants) => {
                    for tenant in &tenants {
                        self.provide(tenant).await;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot list tenants to create missing roles");
                }
            }
        }
    }

    async fn provide(&mut self, tenant: &Tenant) {
        let users = match self
            .accounts
            .directory()
            .users_with_role(&tenant.name)
            .await
        {
            Ok(users) => users,
            Err(error) => {
                tracing::warn!(database = tenant.name, %error, "could not create missing roles; retrying in an hour");
                return;
            }
        };
        let shared = users.iter().filter(|user| user.default_user);
        let shared: Vec<_> = shared.filter_map(|user| user.role.clone()).collect();
        let database = DatabaseName::new(&tenant.name);
        let owner = RoleName::new(&tenant.owner_role);
        let provided = self.admin.provide_roles(&database, &owner, &shared);
        match provided.await {
            Ok(()) => self.pool.invalidate_authenticators(&database),
            Err(error) => {
                tracing::warn!(database = tenant.name, %error, "could not create missing roles; retrying in an hour");
            }
        }
        let groups = group_logins::provide(&self.admin, &self.accounts, &database);
        if let Err(error) = groups.await {
            tracing::warn!(%database, %error, "could not let the groups of members log in; retrying in an hour");
        }
        if let Err(error) = self.provide_claims(tenant, &users).await {
            tracing::warn!(database = tenant.name, %error, "could not update the functions of claims; retrying in an hour");
        }
    }

    /// Creates, in a tenant's database, the functions that return claims. Then compares the stored
    /// identities with `users`. Corrects each identity that differs, and deletes the identities of
    /// roles without a user. If the database does not allow the functions, logs this once. Logs it
    /// again only if the functions existed in between.
    async fn provide_claims(
        &mut self,
        tenant: &Tenant,
        users: &[User],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let database = DatabaseName::new(&tenant.name);
        let provided = self
            .admin
            .provide_claims(&database, tenant.claims_generation);
        let state = provided.await?;
        if state != ClaimsState::Current {
            if self.without_claims.insert(tenant.name.clone()) {
                tracing::warn!(%database, ?state, "could not create tidegate.user_id(), tidegate.claims() and tidegate.claim(); `tidegate doctor` prints what is missing");
            }
            return Ok(());
        }
        self.without_claims.remove(&tenant.name);
        let identities: Vec<_> = users.iter().filter_map(roles::identity).collect();
        let differing = self.admin.differing_identities(&database, &identities);
        for role in differing.await? {
            self.correct(&database, &role, users).await?;
        }
        Ok(())
    }

    /// Corrects the claims that are stored for one role. Reads the record of its user again,
    /// because the record may have changed since `users` was read.
    async fn correct(
        &self,
        database: &DatabaseName,
        role: &str,
        users: &[User],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let known = users.iter().find(|user| user.role.as_deref() == Some(role));
        let named = role
            .strip_prefix(database.as_str())
            .and_then(|rest| rest.strip_prefix('/'));
        let key = known.map(|user| user.key.clone());
        let key = key.or_else(|| Some(UserKey::new(database.as_str(), named?)));
        // The identity is deleted before the user is read again. If another request creates a user
        // of this name in between, the code below writes the identity of the new user.
        if known.is_none() {
            let role = RoleName::new(role);
            self.admin.delete_identity(database, &role).await?;
        }
        if let Some(key) = key {
            self.accounts.write_claims(&key).await?;
        }
        Ok(())
    }
}
