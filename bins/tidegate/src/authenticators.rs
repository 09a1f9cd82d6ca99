//! Gives every tenant the roles that it needs beside those of its users: the one that lets users
//! connect, and authenticators.

use std::time::Duration;

use tidegate_admin::Admin;
use tidegate_identity::UserDirectory;
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_store::{Tenant, Tenants};
use tokio::time::{MissedTickBehavior, interval};

use crate::pool::UserPool;
use crate::service::Service;

/// How often tenants are looked at that may lack something: those of an older release are found at
/// the start, and what such a release's nodes took away while both served is given again.
const PROVIDE: Duration = Duration::from_hours(1);

/// Works beside a node that serves.
pub(crate) struct AuthenticatorUpkeep {
    admin: Admin,
    tenants: Tenants,
    directory: UserDirectory,
    pool: UserPool,
}

impl AuthenticatorUpkeep {
    pub(crate) fn new(service: &Service, pool: UserPool) -> Self {
        Self {
            admin: service.admin.clone(),
            tenants: service.tenants.clone(),
            directory: service.users(),
            pool,
        }
    }

    /// Works for as long as it is polled.
    pub(crate) async fn run(self) {
        let mut ticks = interval(PROVIDE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.tenants.list().await {
                Ok(tenants) => {
                    for tenant in &tenants {
                        self.provide_one(tenant).await;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot list tenants to make missing roles");
                }
            }
        }
    }

    async fn provide_one(&self, tenant: &Tenant) {
        let users = match self.directory.users(&tenant.name).await {
            Ok(users) => users,
            Err(error) => {
                tracing::warn!(tenant = tenant.name, %error, "missing roles were not made; next attempt in an hour");
                return;
            }
        };
        let shared = users.into_iter().filter(|user| user.default_user);
        let shared: Vec<_> = shared.map(|user| user.role).collect();
        let database = DatabaseName::new(&tenant.name);
        let owner = RoleName::new(&tenant.owner_role);
        let provided = self.admin.provide_roles(&database, &owner, &shared);
        match provided.await {
            Ok(()) => self.pool.distrust(&database),
            Err(error) => {
                tracing::warn!(tenant = tenant.name, %error, "missing roles were not made; next attempt in an hour");
            }
        }
    }
}
