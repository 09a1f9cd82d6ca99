//! Creates the roles that a tenant needs besides those of its users: the role that lets users
//! connect, and the authenticators.

use std::time::Duration;

use tidegate_admin::Admin;
use tidegate_identity::UserDirectory;
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_store::{Tenant, Tenants};
use tokio::time::{MissedTickBehavior, interval};

use crate::pool::UserPool;
use crate::service::Service;

/// How often tenants are checked for missing roles. Roles that an older release lacked are created
/// at the start. Nodes of an older release may revoke what they do not know, so the check is
/// repeated.
const INTERVAL: Duration = Duration::from_hours(1);

/// Creates missing roles of all tenants while [`run`](Self::run) is polled.
pub(crate) struct RoleMaintenance {
    admin: Admin,
    tenants: Tenants,
    directory: UserDirectory,
    pool: UserPool,
}

impl RoleMaintenance {
    pub(crate) fn new(service: &Service, pool: UserPool) -> Self {
        Self {
            admin: service.admin.clone(),
            tenants: service.tenants.clone(),
            directory: service.users(),
            pool,
        }
    }

    /// Never ends.
    pub(crate) async fn run(self) {
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

    async fn provide(&self, tenant: &Tenant) {
        let users = match self.directory.users(&tenant.name).await {
            Ok(users) => users,
            Err(error) => {
                tracing::warn!(database = tenant.name, %error, "could not create missing roles; retrying in an hour");
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
                tracing::warn!(database = tenant.name, %error, "could not create missing roles; retrying in an hour");
            }
        }
    }
}
